// What happened before what, for `checked` streams: vector clocks.
//
// A clock says of other streams up to which ticket they come before this stream's next record. A wait takes over the clock
// that the point had which it names, so events and operations hold the clock of their moment; clocks are never changed, only
// replaced, and thousands of records share one. What the program saw finished comes before everything it submits later, on
// every stream, so that needs one number a stream, `seen`, and no clock has to name it again.
//
// Nothing of this is kept before the first checked stream of the thread, but for `seen` and the direct waits, which everybody
// notes. From them the clocks start: what was before is ordered if it may be. Clock entries refer only to clock entries: a clock keeps no
// stream and no device.
// Thread: owner.

/** How many direct waits a stream notes before it looks for those that streams have left behind. */
const FEW = 64;

export type Clock = ReadonlyMap<ClockEntry, number>;

const EMPTY: Clock = new Map();
let areKept = false;
/** How often a stream was lost with its device before it had come to its end. */
let losses = 0;
/** Those of open streams, until clocks are kept. */
const openEntries: Set<ClockEntry> = new Set();

/** A stream's place in the clocks. */
export class ClockEntry {
  /** The program saw that everything up to this ticket has finished. */
  seen: number = 0;
  /** Of the stream's next record; undefined before clocks are kept. */
  clock: Clock | undefined = areKept ? EMPTY : undefined;
  /** Its device was lost when it had come to this ticket. */
  lostAfter: number = Number.POSITIVE_INFINITY;
  /** Of those that its clock was looked through for. */
  #losses = losses;
  /** The clock it began with. */
  #first: Clock = EMPTY;
  /** How far into other streams this one waits on the device, or need not; later work need not wait again. */
  readonly #waited: Map<ClockEntry, number> = new Map();
  #limit = FEW;

  /** Its stream is open. */
  begin(): void {
    if (!areKept) openEntries.add(this);
  }

  /** Its stream has finished and is closed: whatever stands after it, nothing is left to wait for. */
  end(): void {
    for (const [other, ticket] of this.clock ?? this.#reachable()) other.#see(ticket);
    this.lose();
  }

  /**
   * Its stream is lost: nothing is left to wait for, and of what it waited for nothing is known. `reached`: where it ended, unless what
   * was accepted still runs. Who waits for more goes on at once and fails, so that order by way of it never comes.
   */
  lose(reached: number = Number.POSITIVE_INFINITY): void {
    if (reached !== Number.POSITIVE_INFINITY) {
      this.lostAfter = reached;
      losses++;
    }
    this.seen = Number.POSITIVE_INFINITY;
    this.clock = areKept ? EMPTY : undefined;
    this.#waited.clear();
    openEntries.delete(this);
  }

  /** Does it wait for the other, at this ticket or later? */
  hasWaited(other: ClockEntry, ticket: number): boolean {
    return (this.#waited.get(other) ?? 0) >= ticket;
  }

  /** It waits for the other, or found that reached. */
  noteWait(other: ClockEntry, ticket: number): void {
    this.#waited.set(other, ticket);
    if (this.#waited.size <= this.#limit) return;
    for (const entry of this.#waited.keys()) if (entry.seen === Number.POSITIVE_INFINITY) this.#waited.delete(entry);
    this.#limit = Math.max(FEW, 2 * this.#waited.size);
  }

  /** Does the other's record come before the next one here, and before whatever follows that? */
  comesAfter(other: ClockEntry, ticket: number): boolean {
    this.#dropVoid();
    return other === this || other.seen >= ticket || (this.clock?.get(other) ?? 0) >= ticket;
  }

  /** From now on it comes after the other's point; `clock` is the one that the point had. */
  follow(other: ClockEntry, ticket: number, clock: Clock | undefined): void {
    if (!areKept || other === this) return;
    this.#dropVoid();
    const others = standing(clock ?? other.#first);
    // That the ticket is known says nothing of the clock: waits that need no record add to one and not to the other.
    if (this.comesAfter(other, ticket) && this.#comesAfterAll(others)) return;
    const merged = new Map<ClockEntry, number>();
    for (const known of [this.clock ?? EMPTY, others]) {
      for (const [entry, at] of known) if (entry !== this && entry.seen < at && (merged.get(entry) ?? 0) < at) merged.set(entry, at);
    }
    if (other.seen < ticket && (merged.get(other) ?? 0) < ticket) merged.set(other, ticket);
    this.clock = merged;
  }

  /** The program saw it finished up to this ticket, which had this clock. */
  see(ticket: number, clock: Clock | undefined): void {
    this.#see(ticket);
    if (areKept) for (const [other, at] of standing(clock ?? this.#first)) other.#see(at);
  }

  /** Clocks are kept from now on. */
  start(): void {
    this.clock = this.#reachable();
    this.#first = this.clock;
  }

  /** Which order it had by way of a lost stream cannot be told any more: what it waits for itself stays. */
  #dropVoid(): void {
    if (this.#losses === losses) return;
    this.#losses = losses;
    if (this.clock === undefined || standing(this.clock) === this.clock) return;
    this.clock = new Map([...this.#waited].filter(([entry, at]) => entry.seen < at));
  }

  #comesAfterAll(clock: Clock): boolean {
    for (const [entry, at] of clock) if (!this.comesAfter(entry, at)) return false;
    return true;
  }

  #see(ticket: number): void {
    if (this.seen < ticket) this.seen = ticket;
  }

  /** Everything it may come after by waits: which of them came first is not known. */
  #reachable(): Clock {
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

/** The clock, unless it names more of a lost stream than that has reached. */
function standing(clock: Clock): Clock {
  if (losses > 0) for (const [entry, at] of clock) if (entry.lostAfter < at) return EMPTY;
  return clock;
}

export function areClocksKept(): boolean {
  return areKept;
}

/** There is a checked stream. */
export function keepClocks(): void {
  if (areKept) return;
  for (const entry of openEntries) entry.start();
  areKept = true;
  for (const entry of openEntries) if (entry.seen > 0) entry.see(entry.seen, entry.clock);
  openEntries.clear();
}
