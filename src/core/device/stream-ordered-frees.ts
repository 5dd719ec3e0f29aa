// Stream-ordered frees (`cuMemFreeAsync`): memory and events are freed on a stream of their device, after every record that uses them.
// Thread: owner.
import { DeviceLostError, LimitError, StateError } from '../base/errors.js';
import type { AccessTracker } from '../ordering/access-tracker.js';
import type { OrderedDevice } from '../ordering/ordered-stream.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import type { HandleTable } from './handles.js';
import type { InternalStreams } from './internal-streams.js';

/** The device that the frees are submitted to. */
export interface FreeingDevice extends OrderedDevice {
  readonly tracker: AccessTracker;
  /** The stream for frees that no other stream is better for. */
  readonly home: Timeline | undefined;
  readonly isGone: boolean;
}

/** Something to be freed: memory or an event. */
interface Unused {
  readonly uses: readonly Point[];
  /** Submits the record that frees it. */
  readonly free: (timeline: Timeline) => void;
}

export class StreamOrderedFrees {
  readonly #device: FreeingDevice;
  readonly #memory: HandleTable;
  /** For frees that have to wait: if a stream of user code waited, its later work would wait too. */
  readonly #streams: InternalStreams<Timeline>;
  /** What was disposed while the device had no room for the record. */
  #unfreed: Unused[] = [];

  constructor(device: FreeingDevice, memory: HandleTable, streams: InternalStreams<Timeline>) {
    this.#device = device;
    this.#memory = memory;
    this.#streams = streams;
  }

  /**
   * Frees device memory after its uses. Called once for each handle. `isUrgent`: a stream waits for the memory, so the free does not come
   * behind the records of a stream of user code unless it has to.
   */
  free(handle: number, uses: readonly Point[], isUrgent: boolean = false): void {
    const isApart = isUrgent && uses.every(({ timeline, ticket }) => timeline.hasReached(ticket));
    this.freeAfter(isApart ? [] : uses, (timeline) => this.freeOn(timeline, handle), isApart);
  }

  /** As `free`, of memory that this stream alone used. Returns false if the stream cannot take the record now. */
  freeBehind(timeline: Timeline, handle: number): boolean {
    const device = this.#device;
    if (device.isGone || timeline.isEnding || !device.timelines.has(timeline)) return false;
    try {
      this.freeOn(timeline, handle);
      return true;
    } catch {
      // The other way has the reason, too.
      return false;
    }
  }

  /** Calls `free` with a stream of the device that comes after the uses. Called once for each object. Never throws for want of room. */
  freeAfter(uses: readonly Point[], free: (timeline: Timeline) => void, isApart: boolean = false): void {
    const device = this.#device;
    if (device.isGone) return;
    try {
      const timeline = isApart ? this.#streams.take() : this.#freeingStream(uses);
      for (const use of uses) device.tracker.waitUncounted(device, timeline, use);
      free(timeline);
    } catch (error) {
      // Disposal never fails. `freeRest` tries again when there is room; a device that is gone has freed everything.
      if (error instanceof LimitError) this.#unfreed.push({ uses, free });
      else if (!(error instanceof DeviceLostError || error instanceof StateError)) throw error;
    }
  }

  /** Frees device memory after the records that this stream of the device was given so far. */
  freeOn(timeline: Timeline, handle: number): void {
    const device = this.#device;
    const ticket = device.submit(timeline, device.encoder.free(timeline.slot, handle));
    this.#memory.giveBack(handle, timeline, ticket);
  }

  /** Tries again the frees that there was no room for. Returns whether some are left. */
  freeRest(): boolean {
    const unfreed = this.#unfreed;
    this.#unfreed = [];
    for (const { uses, free } of unfreed) this.freeAfter(uses, free);
    return this.#unfreed.length > 0;
  }

  /** A stream of the device that comes after the uses without a wait, preferably one of the users; else an internal stream. */
  #freeingStream(uses: readonly Point[]): Timeline {
    const { tracker, timelines, home } = this.#device;
    const isOpen = (timeline: Timeline): boolean => timelines.has(timeline) && !timeline.isEnding;
    const user = uses.find(({ timeline }) => isOpen(timeline) && tracker.needsNoWait(timeline, uses));
    if (user !== undefined) return user.timeline;
    return tracker.needsNoWait(home as Timeline, uses) ? (home as Timeline) : this.#streams.take();
  }
}
