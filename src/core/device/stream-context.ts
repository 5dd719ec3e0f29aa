// A stream, as those know it who put records into it.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';
import type { DeviceCore } from './device-core.js';

/** What the use of an array does if another stream used it before: waits for that, throws if nothing orders the two, or neither. */
export type Ordering = 'tracked' | 'checked' | 'explicit';

/** Takes a timestamp before an operation's first record. */
interface Timer {
  start(core: DeviceCore, timeline: Timeline): void;
}

/** A stream, as far as its operations and copies need it. */
export interface StreamContext {
  readonly core: DeviceCore;
  readonly timeline: Timeline;
  readonly ordering: Ordering;
  /** Its uses are those of a `read`. */
  readonly isReadback?: boolean;
  /** Of a stream with timing. */
  readonly timer?: Timer | undefined;
}
