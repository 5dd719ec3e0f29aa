// The only code that settles promises: who waits for which ticket, and how the loop learns that it was reached.
//
// After a waiter is added the words are polled by setImmediate for at most POLL_MS, which catches short work within two
// microseconds; then the device is asked for one wake at the first ticket that somebody waits for. Where waits lasted
// longer than the poll of late, the poll is skipped, but for one in PROBE_EVERY, so that it comes back when work gets
// short again. Without a waiter nothing runs. Waiters of a stream are sorted by ticket: one read early may be for a
// later ticket than one read late.
//
// One Progress serves all devices of a thread. Dropped: a wake per waiter (10,000 took 4 ms instead of 1), polling
// without end (a core burnt), and Atomics.waitAsync (does not hold the loop).
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';

/** Covers short kernels; costs at most this much of the loop's time per wait that lasts longer. */
const POLL_MS = 0.05;
const PROBE_EVERY = 16;
/** Looks per turn of the loop while polling: a look costs 0.1 us, a turn with its system calls ten times that. */
const LOOKS_PER_TURN = 8;
const NEVER = Number.POSITIVE_INFINITY;

export interface Waiter {
  readonly ticket: number;
  /** Does it keep the process alive? Promises do, observers do not. */
  readonly holdsLoop: boolean;
  /** Called once: the ticket was reached. Must not throw. */
  settle(): void;
  /** Called once instead: it never will be. Must not throw. */
  lose(error: Error): void;
}

/** The waiters of one stream. */
class Line {
  readonly timeline: Timeline;
  /** Called before waiters are settled, so that they find the failures of what completed. */
  readonly onMove: () => void;
  /** Sorted by ticket, first to settle first, from `head` on. */
  waiters: Waiter[] = [];
  head = 0;
  /** The lowest ticket a wake was asked for. */
  armed: number = NEVER;
  /** When the wait of the present first waiter began, and a running mean of how long they took. */
  sinceMs = 0;
  meanMs = 0;
  skipped = 0;

  constructor(timeline: Timeline, onMove: () => void) {
    this.timeline = timeline;
    this.onMove = onMove;
  }

  get first(): Waiter | undefined {
    return this.waiters[this.head];
  }

  /** Is the poll likely to see its first waiter's ticket reached? */
  isWorthPolling(): boolean {
    if (this.meanMs <= POLL_MS) return true;
    this.skipped = (this.skipped + 1) % PROBE_EVERY;
    return this.skipped === 0;
  }
}

export class Progress {
  readonly #holdLoop: (on: boolean) => void;
  readonly #lines: Map<Timeline, Line> = new Map();
  /** Lines with waiters. */
  readonly #waiting: Set<Line> = new Set();
  #holders = 0;
  #isPolling = false;
  #pollUntilMs = 0;

  /** `holdLoop` keeps the process alive while promises wait. */
  constructor(holdLoop: (on: boolean) => void) {
    this.#holdLoop = holdLoop;
  }

  /** Makes a stream known. `onMove` runs before each settling of its waiters. */
  join(timeline: Timeline, onMove: () => void): void {
    this.#lines.set(timeline, new Line(timeline, onMove));
  }

  /** The stream is gone; it has no waiters left, or they are lost. */
  leave(timeline: Timeline): void {
    this.#lines.delete(timeline);
  }

  /** Returns what withdraws the waiter. */
  add(timeline: Timeline, waiter: Waiter): () => void {
    const line = this.#lines.get(timeline);
    if (line === undefined) {
      // A closed stream: everything of it has finished.
      queueMicrotask(() => waiter.settle());
      return () => undefined;
    }
    const { waiters } = line;
    let at = waiters.length;
    if (at > line.head && (waiters[at - 1] as Waiter).ticket > waiter.ticket) at = upperBound(waiters, line.head, waiter.ticket);
    waiters.splice(at, 0, waiter);
    if (waiters.length - line.head === 1) {
      line.sinceMs = performance.now();
      this.#waiting.add(line);
    }
    if (waiter.holdsLoop && this.#holders++ === 0) this.#holdLoop(true);
    if (at === line.head) this.#watch(line);
    return () => this.#withdraw(line, waiter);
  }

  /** Something was reached: the native side rang. */
  wake(): void {
    this.drain();
    this.#arm();
  }

  /** Settles what was reached; says whether anybody still waits. */
  drain(): boolean {
    for (const line of this.#waiting) this.#drain(line);
    return this.#waiting.size > 0;
  }

  /** Nothing more will be reached on this stream: what was reached is settled, the rest is told. */
  lose(timeline: Timeline, error: Error): void {
    const line = this.#lines.get(timeline);
    if (line === undefined) return;
    this.#drain(line);
    const rest = line.waiters.slice(line.head);
    line.waiters = [];
    line.head = 0;
    this.#waiting.delete(line);
    for (const waiter of rest) {
      this.#release(waiter);
      waiter.lose(error);
    }
  }

  #drain(line: Line): void {
    let first = line.first;
    if (first === undefined) return;
    const { completed } = line.timeline;
    if (first.ticket > completed) return;
    line.onMove();
    // `onMove` may have withdrawn it.
    first = line.first;
    const nowMs = performance.now();
    line.meanMs += (nowMs - line.sinceMs - line.meanMs) / 4;
    line.sinceMs = nowMs;
    while (first !== undefined && first.ticket <= completed) {
      line.head++;
      this.#release(first);
      first.settle();
      first = line.first;
    }
    this.#compact(line);
  }

  /** The head of a line has moved. */
  #compact(line: Line): void {
    if (line.first === undefined) {
      line.waiters = [];
      line.head = 0;
      this.#waiting.delete(line);
    } else if (line.head > 1024 && line.head * 2 > line.waiters.length) {
      line.waiters = line.waiters.slice(line.head);
      line.head = 0;
    }
  }

  #watch(line: Line): void {
    if (this.#isPolling) return;
    if (line.isWorthPolling()) {
      this.#isPolling = true;
      this.#pollUntilMs = performance.now() + POLL_MS;
      setImmediate(this.#poll);
    } else if (this.#armLine(line)) {
      // Reached meanwhile; settling waits for a turn of its own, so that `add` never settles anything itself.
      setImmediate(() => this.wake());
    }
  }

  readonly #poll = (): void => {
    let waits = this.drain();
    for (let look = 1; waits && look < LOOKS_PER_TURN; look++) waits = this.drain();
    if (!waits) {
      this.#isPolling = false;
    } else if (performance.now() < this.#pollUntilMs) {
      setImmediate(this.#poll);
    } else {
      this.#isPolling = false;
      this.#arm();
    }
  };

  /** Asks for a wake for every stream with waiters, and settles those that need none. */
  #arm(): void {
    for (const line of this.#waiting) {
      while (line.first !== undefined && this.#armLine(line)) this.#drain(line);
    }
  }

  /** True when the first waiter's ticket is reached already. */
  #armLine(line: Line): boolean {
    const ticket = line.first?.ticket ?? NEVER;
    // A wake for a ticket that was reached is spent, or comes for nothing: the poll may have seen it first.
    if (line.armed <= line.timeline.completed) line.armed = NEVER;
    if (ticket >= line.armed) return false;
    if (!line.timeline.channel.arm(line.timeline.slot, ticket)) {
      line.armed = ticket;
      return false;
    }
    // The ticket was reached while it was armed. What this line knows of an earlier `arm` is not relied on any more: the
    // caller settles what was reached and arms again for the next waiter.
    line.armed = NEVER;
    return line.timeline.hasReached(ticket);
  }

  #withdraw(line: Line, waiter: Waiter): void {
    const at = line.waiters.indexOf(waiter, line.head);
    if (at < 0) return;
    this.#release(waiter);
    // One signal gives up many waits in their order: each is the first then, and none is moved.
    if (at === line.head) line.head++;
    else line.waiters.splice(at, 1);
    this.#compact(line);
  }

  #release(waiter: Waiter): void {
    if (waiter.holdsLoop && --this.#holders === 0) this.#holdLoop(false);
  }
}

/** The first place after all waiters of at most this ticket. */
function upperBound(waiters: readonly Waiter[], from: number, ticket: number): number {
  let low = from;
  let high = waiters.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((waiters[middle] as Waiter).ticket <= ticket) low = middle + 1;
    else high = middle;
  }
  return low;
}
