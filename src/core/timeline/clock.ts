// What happened before what, for `checked` streams: vector clocks.
//
// A clock says of other streams up to which ticket they come before this stream's next record. A wait takes over the clock
// that the point had which it names, so events and operations hold the clock of their moment; clocks are never changed, only
// replaced, and thousands of records share one. What the program saw finished comes before everything it submits later, on
// every stream, so that needs one number a stream, `seen`, and no clock has to name it again.
//
// Nothing of this is kept before the first checked stream of the thread, but for `seen` and the direct waits, which everybody
// notes. From them the clocks start: what was before is ordered if it may be. Hands refer to hands alone: a clock keeps no
// stream and no device.
// Thread: owner.

/** How many direct waits a stream notes before it looks for those that streams have left behind. */
const FEW = 64;

export type Clock = ReadonlyMap<Hand, number>;

const EMPTY: Clock = new Map();
let areKept = false;
/** Those of open streams, until clocks are kept. */
const hands: Set<Hand> = new Set();

/** A stream's place in the clocks. */
export class Hand {
  /** The program saw that everything up to this ticket has finished. */
  seen: number = 0;
  /** Of the stream's next record; undefined before clocks are kept. */
  clock: Clock | undefined = areKept ? EMPTY : undefined;
  /** The clock it began with. */
  #first: Clock = EMPTY;
  /** How far into other streams this one waits on the device, or need not; later work need not wait again. */
  readonly #waited: Map<Hand, number> = new Map();
  #limit = FEW;

  /** Its stream is open. */
  begin(): void {
    if (!areKept) hands.add(this);
  }

  /** Its stream has finished and is closed: whatever stands after it, nothing is left to wait for. */
  end(): void {
    for (const [other, ticket] of this.clock ?? this.#reachable()) other.#see(ticket);
    this.lose();
  }

  /** Its stream is lost: nothing is left to wait for, and of what it waited for nothing is known. */
  lose(): void {
    this.seen = Number.POSITIVE_INFINITY;
    this.clock = areKept ? EMPTY : undefined;
    this.#waited.clear();
    hands.delete(this);
  }

  /** Does it wait for the other, at this ticket or later? */
  hasWaited(other: Hand, ticket: number): boolean {
    return (this.#waited.get(other) ?? 0) >= ticket;
  }

  /** It waits for the other, or found that reached. */
  noteWait(other: Hand, ticket: number): void {
    this.#waited.set(other, ticket);
    if (this.#waited.size <= this.#limit) return;
    for (const hand of this.#waited.keys()) if (hand.seen === Number.POSITIVE_INFINITY) this.#waited.delete(hand);
    this.#limit = Math.max(FEW, 2 * this.#waited.size);
  }

  /** Does the other's record come before the next one here, and before whatever follows that? */
  comesAfter(other: Hand, ticket: number): boolean {
    return other === this || other.seen >= ticket || (this.clock?.get(other) ?? 0) >= ticket;
  }

  /** From now on it comes after the other's point; `clock` is the one that the point had. */
  follow(other: Hand, ticket: number, clock: Clock | undefined): void {
    if (!areKept || other === this) return;
    const others = clock ?? other.#first;
    // That the ticket is known says nothing of the clock: waits that need no record add to one and not to the other.
    if (this.comesAfter(other, ticket) && this.#comesAfterAll(others)) return;
    const merged = new Map<Hand, number>();
    for (const known of [this.clock ?? EMPTY, others]) {
      for (const [hand, at] of known) if (hand !== this && hand.seen < at && (merged.get(hand) ?? 0) < at) merged.set(hand, at);
    }
    if (other.seen < ticket && (merged.get(other) ?? 0) < ticket) merged.set(other, ticket);
    this.clock = merged;
  }

  /** The program saw it finished up to this ticket, which had this clock. */
  see(ticket: number, clock: Clock | undefined): void {
    this.#see(ticket);
    if (areKept) for (const [other, at] of clock ?? this.#first) other.#see(at);
  }

  /** Clocks are kept from now on. */
  start(): void {
    this.clock = this.#reachable();
    this.#first = this.clock;
  }

  #comesAfterAll(clock: Clock): boolean {
    for (const [hand, at] of clock) if (!this.comesAfter(hand, at)) return false;
    return true;
  }

  #see(ticket: number): void {
    if (this.seen < ticket) this.seen = ticket;
  }

  /** Everything it may come after by waits: which of them came first is not known. */
  #reachable(): Clock {
    const reached = new Map<Hand, number>();
    const open: Hand[] = [this];
    for (let hand = open.pop(); hand !== undefined; hand = open.pop()) {
      for (const [other, ticket] of hand.#waited) {
        if (other === this) continue;
        if (!reached.has(other)) open.push(other);
        if ((reached.get(other) ?? 0) < ticket) reached.set(other, ticket);
      }
    }
    return reached;
  }
}

export function areClocksKept(): boolean {
  return areKept;
}

/** There is a checked stream. */
export function keepClocks(): void {
  if (areKept) return;
  for (const hand of hands) hand.start();
  areKept = true;
  for (const hand of hands) if (hand.seen > 0) hand.see(hand.seen, hand.clock);
  hands.clear();
}
