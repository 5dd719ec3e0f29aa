// What happened before what, for `checked` streams: vector clocks.
//
// Each stream has a ClockEntry. Its clock maps other streams to tickets: the stream's next record comes after each of them. A wait
// merges the clock of the point that it names into the stream's clock, so events and operations keep the clock of their moment.
// A clock is never changed, only replaced, and thousands of records share one. What the host has observed as finished comes before
// everything that it submits later, on every stream. One number a stream, `observed`, says that, and clocks leave such points out.
//
// Clocks are kept from the thread's first checked stream on. Before that, entries only note `observed` and the direct waits. The first
// clocks are made of those notes: where the notes cannot tell whether one record precedes another, they count as ordered.
// Entries refer only to entries, so a clock keeps no stream and no device alive.
// Thread: owner.
import type { Clock, StreamClock, Timeline } from '../timeline/timeline.js';

/** How many direct waits an entry notes before it drops those for streams that have ended. */
const FEW = 64;

type Entries = ReadonlyMap<ClockEntry, number>;

const EMPTY: Entries = new Map();

/** What the clocks of one thread share. */
export class Clocks {
  areKept: boolean = false;
  /** How many streams were lost with their device before they had finished. */
  losses: number = 0;
  /** The entries of open streams, until clocks are kept. */
  readonly open: Set<ClockEntry> = new Set();

  /** Keeps clocks from now on. */
  keep(): void {
    if (this.areKept) return;
    for (const entry of this.open) entry.start();
    this.areKept = true;
    for (const entry of this.open) if (entry.observed > 0) entry.observe(entry.observed, entry.clock);
    this.open.clear();
  }
}

/** The vector clock of one stream. */
export class ClockEntry implements StreamClock {
  /** The host has observed that everything up to this ticket has finished. */
  observed: number = 0;
  /** The clock of the stream's next record; undefined before clocks are kept. */
  clock: Entries | undefined;
  /** The last ticket that finished before the stream was lost with its device. */
  lostAfter: number = Number.POSITIVE_INFINITY;
  readonly #clocks: Clocks;
  /** The value of `Clocks.losses` when the clock was last checked for lost streams. */
  #losses: number;
  /** The stream's first clock. */
  #first: Entries = EMPTY;
  /** For other streams, the ticket up to which this stream waits on the device, or need not wait. */
  readonly #waited: Map<ClockEntry, number> = new Map();
  #limit = FEW;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
    this.clock = clocks.areKept ? EMPTY : undefined;
    this.#losses = clocks.losses;
  }

  begin(): void {
    if (!this.#clocks.areKept) this.#clocks.open.add(this);
  }

  end(): void {
    for (const [other, ticket] of this.clock ?? this.#reachable()) other.#observe(ticket);
    this.lose();
  }

  /**
   * The stream has ended: nothing is left to wait for. `reached` is for a stream that was lost with its device, and is the last ticket
   * that finished; it is left out if the device still runs what it accepted. A stream that waits for a later ticket continues at once
   * and fails, so a wait for such a ticket orders nothing.
   */
  lose(reached: number = Number.POSITIVE_INFINITY): void {
    if (reached !== Number.POSITIVE_INFINITY) {
      this.lostAfter = reached;
      this.#clocks.losses++;
    }
    this.observed = Number.POSITIVE_INFINITY;
    this.clock = this.#clocks.areKept ? EMPTY : undefined;
    this.#waited.clear();
    this.#clocks.open.delete(this);
  }

  /** Does the stream wait, on the device, for this ticket of the other stream or a later one? */
  hasWaited(other: ClockEntry, ticket: number): boolean {
    return (this.#waited.get(other) ?? 0) >= ticket;
  }

  /** Notes that the stream waits for this ticket of the other stream, or found it completed. */
  noteWait(other: ClockEntry, ticket: number): void {
    this.#waited.set(other, ticket);
    if (this.#waited.size <= this.#limit) return;
    for (const entry of this.#waited.keys()) if (entry.observed === Number.POSITIVE_INFINITY) this.#waited.delete(entry);
    this.#limit = Math.max(FEW, 2 * this.#waited.size);
  }

  /** Does the next record of this stream come after that ticket of the other one? */
  comesAfter(other: ClockEntry, ticket: number): boolean {
    this.#dropLost();
    return other === this || other.observed >= ticket || (this.clock?.get(other) ?? 0) >= ticket;
  }

  /** From now on the stream comes after that ticket of the other one. `clock` is the clock of that point. */
  follow(other: ClockEntry, ticket: number, clock: Clock | undefined): void {
    if (!this.#clocks.areKept || other === this) return;
    this.#dropLost();
    const others = this.#standing(clock ?? other.#first);
    // The stream may come after the ticket and not after its clock: waits that submit no record add to a clock and not to a ticket.
    if (this.comesAfter(other, ticket) && this.#comesAfterAll(others)) return;
    const merged = new Map<ClockEntry, number>();
    for (const known of [this.clock ?? EMPTY, others]) {
      for (const [entry, at] of known) if (entry !== this && entry.observed < at && (merged.get(entry) ?? 0) < at) merged.set(entry, at);
    }
    if (other.observed < ticket && (merged.get(other) ?? 0) < ticket) merged.set(other, ticket);
    this.clock = merged;
  }

  observe(ticket: number, clock: Clock | undefined): void {
    this.#observe(ticket);
    if (this.#clocks.areKept) for (const [other, at] of this.#standing(clock ?? this.#first)) other.#observe(at);
  }

  /** The host has observed the ticket, or nobody keeps clocks and so nobody asks whether it has. */
  isSettled(ticket: number): boolean {
    return !this.#clocks.areKept || this.observed >= ticket;
  }

  /** Will later records of this stream come after that ticket of the other one, as far as the host knows without a further wait? */
  isKnownAfter(other: ClockEntry, ticket: number): boolean {
    return this.#clocks.areKept ? this.comesAfter(other, ticket) : other === this || this.hasWaited(other, ticket);
  }

  followed(): ReadonlyMap<StreamClock, number> {
    return this.#reachable();
  }

  /** Makes the first clock of the stream. */
  start(): void {
    this.clock = this.#reachable();
    this.#first = this.clock;
  }

  /** A lost stream may have ended before a wait for it did: of a clock that names such a ticket, only the stream's own waits are kept. */
  #dropLost(): void {
    if (this.#losses === this.#clocks.losses) return;
    this.#losses = this.#clocks.losses;
    if (this.clock === undefined || this.#standing(this.clock) === this.clock) return;
    this.clock = new Map([...this.#waited].filter(([entry, at]) => entry.observed < at));
  }

  #comesAfterAll(clock: Entries): boolean {
    for (const [entry, at] of clock) if (!this.comesAfter(entry, at)) return false;
    return true;
  }

  #observe(ticket: number): void {
    if (this.observed < ticket) this.observed = ticket;
  }

  /** The clock; an empty one if it names a ticket that a lost stream did not reach. */
  #standing(clock: Clock): Entries {
    // Only entries make clocks.
    const entries = clock as Entries;
    if (this.#clocks.losses > 0) for (const [entry, at] of entries) if (entry.lostAfter < at) return EMPTY;
    return entries;
  }

  /** Everything that the stream reaches over noted waits. The notes do not say which wait came first. */
  #reachable(): Entries {
    const reached = new Map<ClockEntry, number>();
    const open: ClockEntry[] = [this];
    for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
      for (const [other, ticket] of entry.#waited) {
        if (other === this) continue;
        if (!reached.has(other)) open.push(other);
        if ((reached.get(other) ?? 0) < ticket) reached.set(other, ticket);
      }
    }
    return reached;
  }
}

/** The entry of a stream. Every Timeline carries one, which its AccessTracker made. */
export function entryOf(timeline: Timeline): ClockEntry {
  return timeline.clockEntry as ClockEntry;
}
