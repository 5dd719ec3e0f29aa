// The events of a graph that was captured with timing: one before each launch, on its stream, and one behind each node.
//
// The latter are nodes of the graph on its device, behind those of the capture, whose numbers stay as they are. No other node comes after
// them.
// Thread: owner.
import { EventKind, RecordEventRecord } from '../../protocol/protocol.gen.js';
import type { DeviceCore } from '../device/device-core.js';
import type { Timeline } from '../timeline/timeline.js';
import type { WaitOptions } from '../waits/wait.js';
import { askElapsed, EventHandle, stamp } from './event-handles.js';

export class NodeTimers {
  readonly #core: DeviceCore;
  /** Of the latest launch. */
  #begin: EventHandle | undefined = undefined;
  /** Of the launch that is submitted next. */
  #next: EventHandle | undefined = undefined;
  /** One for each node. */
  readonly #ends: readonly EventHandle[];

  constructor(core: DeviceCore, nodeCount: number) {
    this.#core = core;
    this.#ends = Array.from({ length: nodeCount }, () => new EventHandle(core, EventKind.TIMING));
  }

  /** The records of the events, each with the nodes that it comes after. */
  *records(): Iterable<{ readonly record: Uint8Array<ArrayBuffer>; readonly after: readonly number[] }> {
    const record = ({ handle, kind }: EventHandle): Uint8Array<ArrayBuffer> => {
      const { encoder } = this.#core;
      // A getter of a launch's argument may make the graph: the launch is half written then.
      const written = encoder.block.slice(0, RecordEventRecord.BYTE_SIZE);
      // A node is of no stream.
      const bytes = encoder.block.slice(0, encoder.recordEvent(0, handle, kind));
      encoder.block.set(written);
      return bytes;
    };
    for (const [node, end] of this.#ends.entries()) yield { record: record(end), after: [node] };
  }

  /** A launch comes next on the stream, after all its waits. */
  begin(timeline: Timeline): void {
    // Of a launch that was refused.
    this.#next?.release();
    this.#next = undefined;
    this.#next = stamp(this.#core, timeline);
  }

  /** The launch was submitted. */
  noteLaunch(timeline: Timeline, ticket: number): void {
    this.#begin?.release();
    this.#begin = this.#next;
    this.#next = undefined;
    for (const end of this.#ends) end.noteLaunch(timeline, ticket);
  }

  /** The graph is closed. */
  release(): void {
    for (const event of [this.#begin, this.#next, ...this.#ends]) event?.release();
  }

  /** When each node ended, in milliseconds since the beginning of the latest launch, which has finished. */
  async ended(opts: WaitOptions | undefined): Promise<number[]> {
    const begin = this.#begin as EventHandle;
    return Promise.all(this.#ends.map((end) => askElapsed(begin, end, opts)));
  }
}
