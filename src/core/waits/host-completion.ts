// The event loop's part of operations. A copy to an ordinary array, which the device cannot access, is completed by the event loop: it
// copies the bytes from page-locked memory in slices, so that a large read blocks the loop only briefly.
// Thread: owner.
import { StateError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';

/** The bytes copied in one turn of the event loop: about 0.5 ms. */
const TURN_BYTES = 4 * 2 ** 20;

interface HostCopy {
  readonly from: Uint8Array;
  readonly into: Uint8Array;
  at: number;
  readonly finish: (error?: Error) => void;
}

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
  #copies: HostCopy[] = [];
  #leftBytes = TURN_BYTES;
  #isScheduled = false;
  /** The completions of each stream in stream order, from the first that has not settled. */
  readonly #expected: Map<Timeline, Expected[]> = new Map();

  /** Copies `from` into `into`, at once if this turn has room for it. User code may have detached `into` meanwhile. */
  copyToHost(from: Uint8Array, into: Uint8Array, finish: (error?: Error) => void): void {
    this.#copies.push({ from, into, at: 0, finish });
    if (this.#copies.length === 1) this.#run();
  }

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

  #run(): void {
    let copy = this.#copies[0];
    while (copy !== undefined && this.#leftBytes > 0) {
      if (copy.into.byteLength !== copy.from.byteLength) {
        this.#copies.shift();
        copy.finish(
          new StateError(
            'ERR_MILLRACE_STATE',
            'The destination of a copy was detached or resized before the copy: keep the array unchanged until `done`.',
          ),
        );
      } else {
        const end = Math.min(copy.at + this.#leftBytes, copy.from.byteLength);
        if (copy.at < end) copy.into.set(copy.from.subarray(copy.at, end), copy.at);
        this.#leftBytes -= end - copy.at;
        copy.at = end;
        if (end === copy.from.byteLength) {
          this.#copies.shift();
          copy.finish();
        }
      }
      copy = this.#copies[0];
    }
    if (this.#leftBytes < TURN_BYTES && !this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => {
        this.#isScheduled = false;
        this.#leftBytes = TURN_BYTES;
        this.#run();
      });
    }
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
