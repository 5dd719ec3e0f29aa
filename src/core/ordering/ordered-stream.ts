// What the access tracker asks of a stream and of its device. Recorder and StreamContext are OrderedStreams, DeviceCore is an
// OrderedDevice.
// Thread: owner.
import type { Encoder } from '../../protocol/encoder.js';
import type { FailureLog } from '../timeline/failures.js';
import type { Timeline } from '../timeline/timeline.js';

/**
 * What a record of a stream does if another stream used its memory before: it waits for that use, it is refused unless something
 * orders the two, or neither.
 */
export type Ordering = 'tracked' | 'checked' | 'explicit';

export interface OrderedDevice {
  /** 'cuda:0', 'cpu:0'. */
  readonly name: string;
  readonly encoder: Encoder;
  readonly failures: FailureLog;
  /** Its open streams. */
  readonly timelines: ReadonlySet<Timeline>;
  /** Streams of other devices that use its memory: the device stays open until they have finished. */
  readonly peerUsers: { add(timeline: Timeline, ticket: number): void };
  /** Submits the encoded record and returns its ticket. If the device refuses the record, this throws and nothing has changed. */
  submit(timeline: Timeline, bytes: number): number;
}

export interface OrderedStream {
  readonly core: OrderedDevice;
  readonly timeline: Timeline;
  readonly ordering: Ordering;
  /** True for the copy of a `read`. User code cannot name the stream of that copy, so later writes wait for it in every ordering. */
  readonly isReadback?: boolean;
  /** Throws StateError if it is closed. */
  checkOpen?(): void;
  /** Takes the timestamp before an operation's first record, on a stream with timing. */
  readonly timer?: { start(): void } | undefined;
}
