// The parts of a stream that operations and copies use. Stream implements this interface.
//
// Thread: owner.
import type { OrderedStream } from '../ordering/ordered-stream.js';
import type { DeviceCore } from './device-core.js';

export type { Ordering } from '../ordering/ordered-stream.js';

export interface StreamContext extends OrderedStream {
  readonly core: DeviceCore;
}
