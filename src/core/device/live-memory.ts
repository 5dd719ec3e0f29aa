// The device memory that arrays and textures of this thread hold: V8 is told of it, so that it collects forgotten arrays; an allocation that
// cannot fit waits for one collection; and the error of a failed allocation tells what is used, by which arrays.
// Thread: owner.
import type { BackendName } from '../../protocol/reports.js';
import { hasForgotten } from '../base/forgotten.js';
import { setImmediate } from '../base/timers.js';
import type { Timeline } from '../timeline/timeline.js';

export interface LiveArray {
  readonly byteLength: number;
  readonly description: string;
  /** Its place in the list, or -1. */
  livePlace: number;
}

export interface LiveDevice {
  readonly channel: {
    readonly backend: BackendName;
    weigh(bytes: number): void;
    collectGarbage(): void;
    releaseHold(stream: number, ticket: number): void;
  };
  readonly info: { readonly totalMemoryBytes: number };
  readonly isGone: boolean;
  /** Submits a HOLD record. */
  holdStream(timeline: Timeline): number;
}

/**
 * V8 collects each time that it was told of 64 MiB more. A collection costs milliseconds. Filling the CPU device's memory takes longer than
 * its collections; a full GPU counts as this much, so filling it causes 16.
 */
const FULL_GPU_BYTES = 2 ** 30;
/** V8 is told late: of more memory in these steps, and of less in the larger ones, because pipelines allocate and free in turns. */
const MORE_BYTES = 2 ** 24;
const LESS_BYTES = 2 ** 28;
/** There is less room for arrays than memory: blocks of the CPU device are up to a quarter larger, and a GPU has other users. */
const FULL_PART = 3 / 4;
/** After a collection, the next one comes at the earliest when so much more of the memory is used. */
const AGAIN_PART = 1 / 64;
/** The turns of the event loop in which V8 finalizes what it collected. */
const TURNS = 4;
const MOST_LISTED = 10;
/** The CPU device takes longer to allocate so many bytes than to find the line that does it (10 to 25 us). */
const LARGE_BYTES = 2 ** 22;
/** A GPU is filled by thousands of arrays of less than this part of its memory, and finding a line takes it longer than allocating. */
const LARGE_PART = 1 / 8192;

export class LiveMemory {
  readonly #device: LiveDevice;
  /** A list: tables by array and by record took a twentieth of an operation on small arrays. */
  readonly #arrays: LiveArray[] = [];
  /** The record that allocates each. */
  readonly #timelines: Timeline[] = [];
  readonly #tickets: number[] = [];
  /** What V8 is told of each byte. */
  readonly #weight: number;
  /** The least size of arrays whose source line is known in any case. */
  readonly largeBytes: number;
  #bytes = 0;
  #toldBytes = 0;
  #fullBytes: number;
  /** Streams that wait for the collection. */
  #held: { readonly timeline: Timeline; readonly ticket: number }[] = [];

  constructor(device: LiveDevice) {
    this.#device = device;
    const { totalMemoryBytes } = device.info;
    this.#fullBytes = totalMemoryBytes * FULL_PART;
    this.largeBytes = device.channel.backend === 'cpu' ? LARGE_BYTES : Math.max(LARGE_BYTES, totalMemoryBytes * LARGE_PART);
    this.#weight = device.channel.backend === 'cpu' ? 1 : Math.min(1, FULL_GPU_BYTES / totalMemoryBytes);
  }

  add(array: LiveArray, timeline: Timeline, ticket: number): void {
    array.livePlace = this.#arrays.push(array) - 1;
    this.#timelines.push(timeline);
    this.#tickets.push(ticket);
    this.#count(array.byteLength);
  }

  /** The record allocated nothing. The program may drop arrays now, so the next allocation without room waits for a collection again. */
  refused(timeline: Timeline, ticket: number): void {
    this.#fullBytes = this.#device.info.totalMemoryBytes * FULL_PART;
    const place = this.#tickets.findLastIndex((one, at) => one === ticket && this.#timelines[at] === timeline);
    if (place >= 0) this.delete(this.#arrays[place] as LiveArray);
  }

  /** The stream that allocates the memory; undefined where it is not the array's alone. */
  allocatingStream(array: LiveArray): Timeline | undefined {
    return this.#timelines[array.livePlace];
  }

  delete(array: LiveArray): void {
    const place = array.livePlace;
    if (place < 0) return;
    array.livePlace = -1;
    const last = this.#arrays.pop() as LiveArray;
    const [timeline, ticket] = [this.#timelines.pop() as Timeline, this.#tickets.pop() as number];
    if (last !== array) {
      last.livePlace = place;
      this.#arrays[place] = last;
      this.#timelines[place] = timeline;
      this.#tickets[place] = ticket;
    }
    this.#count(-array.byteLength);
  }

  /** Another array has the memory now. */
  replace(array: LiveArray, next: LiveArray): void {
    const place = array.livePlace;
    if (place < 0) return;
    array.livePlace = -1;
    next.livePlace = place;
    this.#arrays[place] = next;
  }

  /** The device is gone, and its memory with it. */
  clear(): void {
    for (const array of this.#arrays) array.livePlace = -1;
    this.#arrays.length = this.#timelines.length = this.#tickets.length = 0;
    this.#count(-this.#bytes);
    if (this.#toldBytes > 0) this.#tell(0);
  }

  /** Whether a stream waits for memory. */
  get isAwaited(): boolean {
    return this.#held.length > 0;
  }

  /** If so many bytes more do not fit, the stream waits for a collection of forgotten arrays. */
  makeRoom(timeline: Timeline, byteLength: number): void {
    const needed = this.#bytes + byteLength;
    if (needed <= this.#fullBytes) return;
    // One hold of a stream is enough: its allocations come one after another.
    if (this.#held.some((held) => held.timeline === timeline)) return;
    this.#held.push({ timeline, ticket: this.#device.holdStream(timeline) });
    if (this.#held.length === 1) setImmediate(() => this.#collect());
  }

  /** The largest first. */
  get arrays(): readonly LiveArray[] {
    return this.#arrays.toSorted((a, b) => b.byteLength - a.byteLength);
  }

  /** For the error of an allocation that left `freeBytes` free, 0 if unknown: what is used, by what, and what to do. */
  use(freeBytes: number): string {
    const { arrays } = this;
    const { totalMemoryBytes } = this.#device.info;
    const others = totalMemoryBytes - freeBytes - this.#bytes;
    const rest = freeBytes > 0 && others > 0 ? `, and ${others} bytes belong to others: other threads and processes, the driver` : '';
    const held = ` ${arrays.length} arrays of this thread hold ${this.#bytes} of ${totalMemoryBytes} bytes${rest}.`;
    const listed = arrays.slice(0, MOST_LISTED).map(({ description }) => description);
    const largest = listed.length === 0 ? '' : ` The largest arrays of this thread are ${listed.join('; ')}.`;
    return `${held}${largest} Dispose arrays that are not needed (using, device.scope), or process less at a time.`;
  }

  #collect(): void {
    this.#device.channel.collectGarbage();
    let turns = 0;
    const next = (): void => {
      if (++turns < TURNS || hasForgotten()) setImmediate(next);
      else this.#release();
    };
    setImmediate(next);
  }

  #release(): void {
    const { channel, info, isGone } = this.#device;
    const held = this.#held;
    this.#held = [];
    this.#fullBytes = Math.max(
      info.totalMemoryBytes * FULL_PART,
      Math.min(this.#bytes, info.totalMemoryBytes) + info.totalMemoryBytes * AGAIN_PART,
    );
    if (isGone) return;
    for (const { timeline, ticket } of held) channel.releaseHold(timeline.slot, ticket);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    const weighed = Math.round(this.#bytes * this.#weight);
    if (weighed >= this.#toldBytes + MORE_BYTES || weighed <= this.#toldBytes - LESS_BYTES) this.#tell(weighed);
  }

  #tell(bytes: number): void {
    this.#device.channel.weigh(bytes - this.#toldBytes);
    this.#toldBytes = bytes;
  }
}
