// The only code that settles waits: the waiters of each stream by ticket, and how the event loop notices that a ticket was reached.
//
// After a waiter is added, setImmediate polls the timeline words for at most POLL_MS, which finds the end of short work within 2 us.
// Then the device is asked for one wake at the lowest ticket with a waiter. If recent waits of the stream lasted a little longer, the poll
// lasts a quarter longer than they did. If they lasted longer than `longestPollMs`, the poll is skipped, except for one in PROBE_EVERY, so that
// polling returns when work becomes short again. Without a waiter nothing runs. The waiters of a stream are sorted by ticket, because promises
// need not be read in the order of their tickets.
//
// A turn settles at most SETTLED_PER_TURN waiters, of them about REJECTED_PER_TURN with failures, and none before the failures up to its
// ticket are known; the others follow in the next turns.
//
// One CompletionPolling serves all devices of a thread. Measured and rejected: one wake per waiter (10,000 took 4 ms instead of 1), unbounded
// polling (occupies a core), and Atomics.waitAsync (does not keep the process alive).
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';
import { rejections, SETTLED_PER_TURN } from '../base/loop-turns.js';
import { performance, queueMicrotask, setImmediate } from '../base/timers.js';

/** Covers short kernels. A longer wait costs at most this much time of the event loop. */
const POLL_MS = 0.05;
const PROBE_EVERY = 16;
/** Of the mean of the last waits. */
const POLL_SHARE = 1.25;
/** What a wake adds to a wait. Counted with it, short work that was once woken for would never be polled for again. */
const WAKE_MS = 0.06;
/** Polls per turn of the event loop: a poll costs 0.1 us, a turn with its system calls ten times that. */
const LOOKS_PER_TURN = 8;
const NEVER = Number.POSITIVE_INFINITY;

/**
 * The longest waits that are worth a poll. A wake of the event loop takes 30 to 70 us on virtual machines with a GPU, as much again as a copy of
 * 16 MiB between two of them. With few cores, the poll would take its time from the device's thread.
 */
export function longestPoll(cores: number): number {
  return cores >= 4 ? 0.4 : POLL_MS;
}

export interface Waiter {
  readonly ticket: number;
  /** Whether it keeps the process alive: promises do, observers do not. */
  readonly keepsAlive: boolean;
  /** Called once when the ticket was reached. Must not throw. */
  settle(): void;
  /** Called once instead if the ticket will never be reached. Must not throw. */
  lose(error: Error): void;
}

/** A stream that advances no further. */
interface Lost {
  readonly error: Error;
  readonly completed: number;
  /** Called when it has no waiters any more. */
  readonly tell: () => void;
}

/** The waiters of one stream. */
class Line {
  readonly timeline: Timeline;
  /** Called before waiters are settled, so that they find the failures of what completed. */
  readonly onMove: () => void;
  /** Sorted by ticket from `head` on. */
  waiters: Waiter[] = [];
  head = 0;
  lost: Lost | undefined = undefined;
  /** The lowest ticket for which a wake was requested. */
  armed: number = NEVER;
  /** When the wait of the present first waiter began, and a running mean of the times of these waits. */
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

  /** How long a poll will probably see the first waiter's ticket reached; 0: no poll is worth its time. */
  pollMs(longestMs: number): number {
    if (this.meanMs <= longestMs) return Math.max(POLL_MS, POLL_SHARE * this.meanMs);
    this.skipped = (this.skipped + 1) % PROBE_EVERY;
    return this.skipped === 0 ? POLL_MS : 0;
  }
}

export class CompletionPolling {
  readonly #keepAlive: (on: boolean) => void;
  readonly #longestPollMs: number;
  readonly #lines: Map<Timeline, Line> = new Map();
  /** Lines with waiters. */
  readonly #waiting: Set<Line> = new Set();
  /** Called at each wake: for wakes that tell of no ticket. They must not throw. */
  readonly onWake: Set<() => void> = new Set();
  #holders = 0;
  #isPolling = false;
  #pollUntilMs = 0;
  /** How many waiters this turn may still settle. */
  #left = SETTLED_PER_TURN;
  /** A turn was requested for reached waiters that this one may not settle. */
  #isBehind = false;

  /** `keepAlive` keeps the process alive while promises wait. Polls last for at most 1.25 of `longestPollMs`. */
  constructor(keepAlive: (on: boolean) => void, longestPollMs: number = POLL_MS) {
    this.#keepAlive = keepAlive;
    this.#longestPollMs = longestPollMs;
  }

  /** Adds a stream. `onMove` runs each time before its waiters are settled. */
  join(timeline: Timeline, onMove: () => void): void {
    this.#lines.set(timeline, new Line(timeline, onMove));
  }

  /** Removes a stream, after it has reached the tickets of its waiters or these were lost. */
  leave(timeline: Timeline): void {
    const line = this.#lines.get(timeline);
    // A lost stream leaves with its last waiter.
    if (line === undefined || line.lost !== undefined) return;
    this.#drain(line, true);
    this.#lines.delete(timeline);
  }

  /** Adds a waiter. Returns a function that withdraws it. */
  add(timeline: Timeline, waiter: Waiter): () => void {
    const line = this.#add(timeline, waiter);
    return line === undefined ? () => undefined : () => this.#withdraw(line, waiter);
  }

  /** Adds a waiter that nobody withdraws. */
  keep(timeline: Timeline, waiter: Waiter): void {
    this.#add(timeline, waiter);
  }

  #add(timeline: Timeline, waiter: Waiter): Line | undefined {
    const line = this.#lines.get(timeline);
    if (line === undefined) {
      // The stream is closed, so everything in it has finished.
      queueMicrotask(() => waiter.settle());
      return undefined;
    }
    const { waiters } = line;
    let at = waiters.length;
    if (at > line.head && (waiters[at - 1] as Waiter).ticket > waiter.ticket) {
      at = upperBound(waiters, line.head, waiter.ticket);
      waiters.splice(at, 0, waiter);
    } else {
      waiters.push(waiter);
    }
    if (waiters.length - line.head === 1) {
      line.sinceMs = performance.now();
      this.#waiting.add(line);
      timeline.tellAwaited(true);
    }
    if (waiter.keepsAlive && this.#holders++ === 0) this.#keepAlive(true);
    if (at === line.head) this.#watch(line);
    return line;
  }

  /** The addon calls it when an armed ticket was reached. */
  wake(): void {
    this.#left = SETTLED_PER_TURN;
    this.drain();
    this.#arm();
    for (const look of this.onWake) look();
  }

  /** Settles the waiters whose tickets were reached, as many as this turn may. Returns whether waiters remain. */
  drain(): boolean {
    for (const line of this.#waiting) {
      if (this.#isBehind) break;
      this.#drain(line);
    }
    return this.#waiting.size > 0;
  }

  /** Whether the stream has reached the ticket, or has ended or was lost before, and its waiters up to there are settled. */
  hasSettled(timeline: Timeline, ticket: number): boolean {
    const line = this.#lines.get(timeline);
    if (line === undefined) return true;
    return timeline.hasReached(ticket) && (line.first === undefined || line.first.ticket > ticket);
  }

  /**
   * The stream will advance no further, and its failures are known: settles the waiters whose tickets were reached, and calls `lose` of the
   * others, in this turn and the next ones. Then the stream leaves, and the promise resolves.
   */
  lose(timeline: Timeline, error: Error): Promise<void> {
    const line = this.#lines.get(timeline);
    if (line === undefined) return Promise.resolve();
    return new Promise((tell) => {
      line.lost = { error, completed: timeline.completed, tell };
      if (line.first === undefined) this.#compact(line);
      else this.#drain(line);
    });
  }

  #drain(line: Line, isAll: boolean = false): void {
    let first = line.first;
    if (first === undefined) return;
    const { lost } = line;
    const { completed } = lost ?? line.timeline;
    if (lost === undefined && first.ticket > completed) return;
    line.onMove();
    // `onMove` may have withdrawn the first waiter.
    first = line.first;
    const nowMs = performance.now();
    const wakeMs = line.armed <= completed && this.#longestPollMs > POLL_MS ? WAKE_MS : 0;
    // The wake for it has happened, or a poll was faster and the wake will find nothing to do.
    if (line.armed <= completed) line.armed = NEVER;
    line.meanMs += (Math.max(0, nowMs - line.sinceMs - wakeMs) - line.meanMs) / 4;
    line.sinceMs = nowMs;
    const [known, last] = lost === undefined ? [line.timeline.known, completed] : [NEVER, NEVER];
    while (first !== undefined && first.ticket <= last) {
      if (!isAll && (first.ticket > known || rejections.left <= 0 || --this.#left < 0)) {
        this.#goOnLater(line);
        break;
      }
      line.head++;
      this.#release(first);
      if (first.ticket <= completed) first.settle();
      else first.lose((lost as Lost).error);
      first = line.first;
    }
    this.#compact(line);
  }

  #goOnLater(line: Line): void {
    if (this.#isBehind) return;
    this.#isBehind = true;
    // The other lines come first in the next turn.
    this.#waiting.delete(line);
    this.#waiting.add(line);
    setImmediate(() => {
      this.#isBehind = false;
      this.wake();
    });
  }

  /** Call it after the head of a line has moved. */
  #compact(line: Line): void {
    if (line.first === undefined) {
      line.waiters = [];
      line.head = 0;
      this.#waiting.delete(line);
      line.timeline.tellAwaited(false);
      if (line.lost === undefined) return;
      this.#lines.delete(line.timeline);
      line.lost.tell();
    } else if (line.head > 1024 && line.head * 2 > line.waiters.length) {
      line.waiters = line.waiters.slice(line.head);
      line.head = 0;
    }
  }

  #watch(line: Line): void {
    if (this.#isPolling || line.lost !== undefined) return;
    const pollMs = line.pollMs(this.#longestPollMs);
    if (pollMs > 0) {
      this.#isPolling = true;
      this.#pollUntilMs = performance.now() + pollMs;
      setImmediate(this.#poll);
    } else if (this.#armLine(line)) {
      // The ticket was reached meanwhile. Settle on a later turn, so that `add` never settles a waiter itself.
      setImmediate(() => this.wake());
    }
  }

  readonly #poll = (): void => {
    this.#left = SETTLED_PER_TURN;
    let waits = this.drain();
    for (let look = 1; waits && !this.#isBehind && look < LOOKS_PER_TURN; look++) waits = this.drain();
    if (!waits || this.#isBehind) {
      this.#isPolling = false;
    } else if (performance.now() < this.#pollUntilMs) {
      setImmediate(this.#poll);
    } else {
      this.#isPolling = false;
      this.#arm();
    }
  };

  /** Requests a wake for every stream with waiters. If a first ticket is reached already, settles its waiters. */
  #arm(): void {
    for (const line of this.#waiting) {
      if (line.lost !== undefined) this.#drain(line);
      while (!this.#isBehind && line.lost === undefined && line.first !== undefined && this.#armLine(line)) this.#drain(line);
    }
  }

  /** True when the first waiter's ticket is reached already. */
  #armLine(line: Line): boolean {
    const ticket = line.first?.ticket ?? NEVER;
    // The wake for a reached ticket has happened, or the poll was faster and the wake will find nothing to do.
    if (line.armed <= line.timeline.completed) line.armed = NEVER;
    if (ticket >= line.armed) return false;
    if (!line.timeline.channel.arm(line.timeline.slot, ticket)) {
      line.armed = ticket;
      return false;
    }
    // The ticket was reached while it was armed. Forget the earlier `arm`: the caller settles the waiters and arms again for the
    // next one.
    line.armed = NEVER;
    return line.timeline.hasReached(ticket);
  }

  #withdraw(line: Line, waiter: Waiter): void {
    const at = line.waiters.indexOf(waiter, line.head);
    if (at < 0) return;
    this.#release(waiter);
    // A signal that aborts many waits withdraws them in order, so each is the first one and removing it moves no entry.
    if (at === line.head) line.head++;
    else line.waiters.splice(at, 1);
    this.#compact(line);
  }

  #release(waiter: Waiter): void {
    if (waiter.keepsAlive && --this.#holders === 0) this.#keepAlive(false);
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
