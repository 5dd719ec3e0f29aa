// Order between streams as far as a device has to do with it: the waits that its streams submit, and frees, which
// come after every use.
// Thread: owner.
import type { Encoder } from '../../protocol/encoder.js';
import { DeviceLostError, LimitError, StateError } from '../base/errors.js';
import type { WaitCause } from '../base/snapshots.js';
import type { Clock } from '../timeline/vector-clock.js';
import type { FailureLog } from '../timeline/failures.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import type { HandleTable } from './handles.js';
import type { HiddenStreams } from './hidden-streams.js';

/** Whose streams they are. */
export interface Submitter {
  readonly encoder: Encoder;
  readonly failures: FailureLog;
  /** Its open streams. */
  readonly timelines: ReadonlySet<Timeline>;
  /** Where frees go that no other stream is right for. */
  readonly home: Timeline | undefined;
  readonly isGone: boolean;
  /** Submits the encoded record; its ticket. Refused, it throws and nothing has changed. */
  submit(timeline: Timeline, bytes: number): number;
}

/** What nobody will use any more: memory, an event. */
interface Unused {
  readonly uses: readonly Point[];
  /** Submits the record that frees it. */
  readonly free: (timeline: Timeline) => void;
}

export class StreamDependencies {
  readonly #submitter: Submitter;
  readonly #memory: HandleTable;
  /** For frees that have to wait: on one of the program's streams, later work would wait as well. */
  readonly #reclaimers: HiddenStreams<Timeline>;
  /** Disposed while the device had no room for the record. */
  #unfreed: Unused[] = [];

  constructor(submitter: Submitter, memory: HandleTable, reclaimers: HiddenStreams<Timeline>) {
    this.#submitter = submitter;
    this.#memory = memory;
    this.#reclaimers = reclaimers;
  }

  /** Later records of `timeline` come after a point of another stream, of any device, as the program asked. False: they already do. */
  order(timeline: Timeline, other: Timeline, ticket: number, cause: WaitCause, clock: Clock | undefined = other.at(ticket).clock): boolean {
    const isNeeded = this.wait(timeline, other, ticket, cause);
    timeline.clockEntry.follow(other.clockEntry, ticket, clock);
    return isNeeded;
  }

  /** The same, and the clocks know nothing of it. */
  wait(timeline: Timeline, other: Timeline, ticket: number, cause: WaitCause = 'array'): boolean {
    if (other === timeline || timeline.clockEntry.hasWaited(other.clockEntry, ticket)) return false;
    const submitter = this.#submitter;
    if (other.hasReached(ticket)) {
      // If it faulted, that poisons what it wrote before this stream reads it.
      if (submitter.timelines.has(other)) submitter.failures.note(other);
      timeline.clockEntry.noteWait(other.clockEntry, ticket);
      return false;
    }
    submitter.submit(timeline, submitter.encoder.wait(timeline.slot, other.channel.id, other.slot, ticket));
    timeline.clockEntry.noteWait(other.clockEntry, ticket);
    timeline.log.wait(timeline.last, cause, other, ticket);
    return true;
  }

  /** Gives device memory back after these, its uses; called once for each. */
  free(handle: number, uses: readonly Point[]): void {
    this.giveBack(uses, (timeline) => this.freeOn(timeline, handle));
  }

  /** Has a stream of the device free something after these, its uses: `free` is given which; called once for each. */
  giveBack(uses: readonly Point[], free: (timeline: Timeline) => void): void {
    if (this.#submitter.isGone) return;
    try {
      const timeline = this.#freeingStream(uses);
      for (const use of uses) this.wait(timeline, use.timeline, use.ticket);
      free(timeline);
    } catch (error) {
      // Disposing never fails: the check tries again when there is room, and a device that is gone took it along.
      if (error instanceof LimitError) this.#unfreed.push({ uses, free });
      else if (!(error instanceof DeviceLostError || error instanceof StateError)) throw error;
    }
  }

  /** Gives device memory back after what this stream of the device was given so far. */
  freeOn(timeline: Timeline, handle: number): void {
    const submitter = this.#submitter;
    const ticket = submitter.submit(timeline, submitter.encoder.free(timeline.slot, handle));
    this.#memory.giveBack(handle, timeline, ticket);
  }

  /** Tries again what there was no room for; are some left? */
  freeRest(): boolean {
    const unfreed = this.#unfreed;
    this.#unfreed = [];
    for (const { uses, free } of unfreed) this.giveBack(uses, free);
    return this.#unfreed.length > 0;
  }

  /** A stream of the device that comes after the uses as it is, one of those that used it if possible. */
  #freeingStream(uses: readonly Point[]): Timeline {
    const isOwn = (timeline: Timeline): boolean => this.#submitter.timelines.has(timeline) && !timeline.isEnding;
    const user = uses.find(({ timeline }) => isOwn(timeline) && isBehind(timeline, uses));
    if (user !== undefined) return user.timeline;
    const home = this.#submitter.home as Timeline;
    return isBehind(home, uses) ? home : this.#reclaimers.take();
  }
}

/** Does later work of the stream come after all of these already? */
function isBehind(timeline: Timeline, uses: readonly Point[]): boolean {
  return uses.every(({ timeline: other, ticket }) => {
    return other === timeline || other.hasReached(ticket) || timeline.clockEntry.hasWaited(other.clockEntry, ticket);
  });
}
