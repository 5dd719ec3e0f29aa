// `millrace/collectives`: operations that several devices do together.
export { openCommunicator } from './communicator.js';
export type { Collective, CollectiveOptions, Communicator, Reduction, RootOptions } from './types.js';
