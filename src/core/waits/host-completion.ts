// The event loop's part of operations: copies to ordinary arrays (host-copies.ts), and functions of the host.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';

interface Expected {
  readonly hostCompletion: HostCompletion;
  /** Resolves when this and all earlier completions of the stream have settled. */
  readonly through: Promise<unknown>;
}

function dropSettled(all: Expected[]): Expected[] {
  while (all[0]?.hostCompletion.isSettled === true) all.shift();
  return all;
}

export class HostCompletions {
  /** The completions of each stream in stream order, from the first that has not settled. */
  readonly #expected: Map<Timeline, Expected[]> = new Map();

  /** Adds a completion of the stream. `done` promises of the stream wait for all earlier completions. */
  expect(timeline: Timeline, hostCompletion: HostCompletion): void {
    let all = this.#expected.get(timeline);
    if (all === undefined) this.#expected.set(timeline, (all = []));
    const before = dropSettled(all).at(-1);
    all.push({
      hostCompletion,
      through: before === undefined ? hostCompletion.settled : Promise.all([before.through, hostCompletion.settled]),
    });
  }

  /** Resolves when all completions up to the ticket have settled; undefined if they have. */
  hostCompleted(timeline: Timeline, ticket: number): Promise<unknown> | undefined {
    const all = this.#expected.get(timeline);
    if (all === undefined || dropSettled(all).length === 0) return undefined;
    let low = 0;
    for (let high = all.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if ((all[middle] as Expected).hostCompletion.ticket <= ticket) low = middle + 1;
      else high = middle;
    }
    return all[low - 1]?.through;
  }

  /** Call it when the stream is closed. */
  forget(timeline: Timeline): void {
    this.#expected.delete(timeline);
  }
}

/** The event loop's part of an operation, as the operation sees it: one completion, or the host functions of a launch of a graph. */
export interface EventLoopPart {
  /** The last ticket of the part. */
  readonly ticket: number;
  readonly isSettled: boolean;
  /** The error of the event loop's part, after the device's part succeeded. */
  readonly error: Error | undefined;
  /** `done` was read, so it reports the error. */
  isAwaited: boolean;
  /** The signal that aborted the event loop's part before it began. */
  readonly givenUp: AbortSignal | undefined;
}

/**
 * The part of an operation that the event loop runs after the device's part: it copies bytes into an ordinary array, or calls a function.
 * Settled when that has finished or the operation has failed. Never rejects.
 */
export class HostCompletion implements EventLoopPart {
  readonly ticket: number;
  readonly settled: Promise<void>;
  isSettled: boolean = false;
  /** The error of the event loop's part, after the device's part succeeded. */
  error: Error | undefined = undefined;
  /** `done` was read, so it reports the error. */
  isAwaited: boolean = false;
  /** The launch of the graph that it belongs to, whose `done` may report the error as well. */
  reporter: { reports(completion: HostCompletion): boolean } | undefined = undefined;
  /** The signal that aborted the event loop's part before it began. */
  givenUp: AbortSignal | undefined = undefined;
  #resolve: () => void = () => undefined;

  constructor(ticket: number) {
    this.ticket = ticket;
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  settle(error?: Error): void {
    this.error = error;
    this.isSettled = true;
    this.#resolve();
  }
}
