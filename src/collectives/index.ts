// `millrace/collectives`: operations that several devices do together.
export { openCommunicator } from './communicator.js';
export { joinCommunicator } from './join/join.js';
export type { JoinOptions } from './join/join.js';
export type { JoinedCollective, JoinedCommunicator, JoinedOptions } from './join/types.js';
export type { Collective, CollectiveOptions, Communicator, Reduction, RootOptions } from './types.js';
