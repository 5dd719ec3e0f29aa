// Order between streams as far as a device has to do with it: the waits that its streams submit, frees, which come after
// every use, and the streams of other devices that use its memory.
// Thread: owner.
import { DeviceLostError, LimitError, StateError } from '../base/errors.js';
import type { Storage } from '../memory/storage.js';
import type { Clock } from '../timeline/clock.js';
import type { WaitCause } from '../timeline/operation-log.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { refuseHeld } from '../waits/held.js';
import type { DeviceCore } from './device-core.js';
import type { HandleTable } from './handles.js';
import { type HiddenStreams, hiddenTimelines } from './hidden-streams.js';

/** Frees that wait for different streams at the same time; further ones share them, which delays nothing but memory. */
const MAX_RECLAIMERS = 4;

export class OrderBook {
  readonly #core: DeviceCore;
  readonly #memory: HandleTable;
  /** For frees that have to wait: on one of the program's streams, later work would wait as well. */
  readonly #reclaimers: HiddenStreams<Timeline>;
  /** Disposed while the device had no room for the record. */
  #unfreed: Storage[] = [];
  /** Streams of other devices that use memory of this one, and their last tickets that do. */
  readonly #visitors: Map<Timeline, number> = new Map();

  constructor(core: DeviceCore, memory: HandleTable) {
    this.#core = core;
    this.#memory = memory;
    this.#reclaimers = hiddenTimelines(core, MAX_RECLAIMERS, 'frees');
  }

  /** Later records of `timeline` come after a point of another stream, of any device, as the program asked. False: they already do. */
  order(timeline: Timeline, other: Timeline, ticket: number, cause: WaitCause, clock: Clock | undefined): boolean {
    const isNeeded = this.wait(timeline, other, ticket, cause);
    timeline.hand.follow(other.hand, ticket, clock);
    return isNeeded;
  }

  /** The same, and the clocks know nothing of it. */
  wait(timeline: Timeline, other: Timeline, ticket: number, cause: WaitCause = 'array'): boolean {
    if (other === timeline || timeline.hand.hasWaited(other.hand, ticket)) return false;
    const core = this.#core;
    if (other.hasReached(ticket)) {
      // If it faulted, that spoils what it wrote before this stream reads it.
      if (core.timelines.has(other)) core.failures.note(other);
      timeline.hand.noteWait(other.hand, ticket);
      return false;
    }
    core.submit(timeline, core.encoder.wait(timeline.slot, other.channel.id, other.slot, ticket));
    timeline.hand.noteWait(other.hand, ticket);
    timeline.log.wait(timeline.last, cause, other, ticket);
    return true;
  }

  /** Gives device memory back in stream order; called once per storage. */
  free(storage: Storage): void {
    const core = this.#core;
    if (core.state === 'closed' || core.state === 'lost') return;
    try {
      const uses = [...storage.uses()];
      const timeline = this.#freeingStream(uses);
      for (const use of uses) this.wait(timeline, use.timeline, use.ticket);
      this.freeOn(timeline, storage.handle);
    } catch (error) {
      // Disposing never fails: the check tries again when there is room, and a device that is gone took the memory along.
      if (error instanceof LimitError) this.#unfreed.push(storage);
      else if (!(error instanceof DeviceLostError || error instanceof StateError)) throw error;
    }
  }

  /** Gives device memory back after what this stream of the device was given so far. */
  freeOn(timeline: Timeline, handle: number): void {
    const core = this.#core;
    const ticket = core.submit(timeline, core.encoder.free(timeline.slot, handle));
    this.#memory.giveBack(handle, timeline, ticket);
  }

  /** Tries again what there was no room for; are some left? */
  freeRest(): boolean {
    const unfreed = this.#unfreed;
    this.#unfreed = [];
    for (const storage of unfreed) this.free(storage);
    return this.#unfreed.length > 0;
  }

  /** A stream of another device uses memory of this one. */
  visitedBy(timeline: Timeline, ticket: number): void {
    if (!this.#visitors.has(timeline)) {
      for (const [visitor, last] of this.#visitors) if (visitor.hasReached(last)) this.#visitors.delete(visitor);
    }
    this.#visitors.set(timeline, ticket);
  }

  /** Why the running function may not wait for `visitorsLeft`. */
  refuseVisitors(): StateError | undefined {
    for (const [timeline, ticket] of this.#visitors) {
      const refused = refuseHeld(timeline, ticket);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  /** Resolves when no stream of another device uses memory of this one any more, or this one is lost. */
  async visitorsLeft(): Promise<void> {
    const { progress, lost } = this.#core;
    const withdrawals: (() => void)[] = [];
    for (const [timeline, ticket] of this.#visitors) {
      this.#visitors.delete(timeline);
      if (timeline.hasReached(ticket)) continue;
      const left = new Promise<void>((resolve) => {
        // What a lost device was to do with it is never done.
        withdrawals.push(progress.add(timeline, { ticket, holdsLoop: true, settle: resolve, lose: () => resolve() }));
      });
      await Promise.race([left, lost]);
    }
    for (const withdraw of withdrawals) withdraw();
  }

  /** A stream of the device that comes after the uses as it is, one of those that used it if possible. */
  #freeingStream(uses: readonly Point[]): Timeline {
    const isOwn = (timeline: Timeline): boolean => this.#core.timelines.has(timeline) && !timeline.isEnding;
    const user = uses.find(({ timeline }) => isOwn(timeline) && isBehind(timeline, uses));
    if (user !== undefined) return user.timeline;
    const home = this.#core.home as Timeline;
    return isBehind(home, uses) ? home : this.#reclaimers.take();
  }
}

/** Does later work of the stream come after all of these already? */
function isBehind(timeline: Timeline, uses: readonly Point[]): boolean {
  return uses.every(({ timeline: other, ticket }) => {
    return other === timeline || other.hasReached(ticket) || timeline.hand.hasWaited(other.hand, ticket);
  });
}
