// Which stream a `read` goes by: one that waits for nothing but the last writes to the bytes.
// Thread: owner.
import { HiddenStreams } from '../device/hidden-streams.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import type { DeviceContext } from './device-context.js';
import type { Stream } from './stream.js';

/** Reads that wait at the same time for different writers, each on a stream of its own; further ones share them. */
const MAX_READERS = 8;

export class Readers {
  readonly #context: DeviceContext;
  readonly #hidden: HiddenStreams<Stream>;

  /** `make` makes a stream of the device. */
  constructor(context: DeviceContext, make: (label: string) => Stream) {
    this.#context = context;
    this.#hidden = new HiddenStreams(
      MAX_READERS,
      (reader) => reader.timeline.isComplete,
      (nth) => make(nth === 1 ? 'readback' : `readback-${nth}`),
    );
  }

  /** The writer's, unless that has gone on to something else; `streamOf` knows the program's streams. */
  take(writes: readonly Point[], streamOf: (timeline: Timeline) => Stream | undefined): Stream {
    const [first] = writes;
    const isOne = writes.every(({ timeline }) => timeline === first?.timeline);
    const writer = first !== undefined && isOne ? streamOf(first.timeline) : undefined;
    if (writer?.isOpen === true) {
      const { last, isComplete } = writer.timeline;
      if (isComplete || writes.some(({ ticket }) => ticket === last)) return writer;
    }
    const { core, defaultStream } = this.#context;
    // Nothing to wait for, on the device or in the queue; or the device is closed, and this refuses.
    const areReached = writes.every(({ timeline, ticket }) => timeline.hasReached(ticket));
    if ((areReached && defaultStream.timeline.isComplete) || core.state !== 'open') return defaultStream;
    return this.#hidden.take();
  }
}
