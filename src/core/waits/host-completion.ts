// Bytes on their way from page-locked memory into an ordinary array, which the device cannot reach: copied on the loop
// when the device has finished, in slices, so that a large read never holds the loop for more than a moment.
// Thread: owner.
import { StateError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';

/** Bytes copied in one turn of the loop: about half a millisecond. */
const TURN_BYTES = 4 * 2 ** 20;

interface HostCopy {
  readonly from: Uint8Array;
  readonly into: Uint8Array;
  at: number;
  readonly finish: (error?: Error) => void;
}

interface Expected {
  readonly hostCompletion: HostCompletion;
  /** Resolves when it and all before it have settled. */
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
  /** Of each stream, in its order, from the first that has not settled on. */
  readonly #expected: Map<Timeline, Expected[]> = new Map();

  /** Copies `from` into `into`, at once if this turn has room for it. `into` may have been detached by its owner meanwhile. */
  copyToHost(from: Uint8Array, into: Uint8Array, finish: (error?: Error) => void): void {
    this.#copies.push({ from, into, at: 0, finish });
    if (this.#copies.length === 1) this.#run();
  }

  /** Bytes that a stream is to send to an ordinary array; `done` promises of the stream wait for those before them. */
  expect(timeline: Timeline, hostCompletion: HostCompletion): void {
    let all = this.#expected.get(timeline);
    if (all === undefined) this.#expected.set(timeline, (all = []));
    const before = dropSettled(all).at(-1);
    all.push({
      hostCompletion,
      through: before === undefined ? hostCompletion.settled : Promise.all([before.through, hostCompletion.settled]),
    });
  }

  /** Resolves when everything up to the ticket has reached the host; undefined when it has. */
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

  /** The stream is closed. */
  forget(timeline: Timeline): void {
    this.#expected.delete(timeline);
  }

  #run(): void {
    let copy = this.#copies[0];
    while (copy !== undefined && this.#leftBytes > 0) {
      if (copy.into.byteLength !== copy.from.byteLength) {
        this.#copies.shift();
        copy.finish(
          new StateError('ERR_MILLRACE_STATE', 'The destination of a copy was detached or resized before the bytes were copied to it.'),
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

/**
 * What the loop has to do for an operation when the device has done its part: bring the bytes of a copy into an ordinary array, call a
 * function. Settled when it has, or when the operation failed; never rejects.
 */
export class HostCompletion {
  readonly ticket: number;
  readonly settled: Promise<void>;
  isSettled: boolean = false;
  /** What kept the bytes from arriving although the device did its part. */
  error: Error | undefined = undefined;
  /** Somebody asked for `done`, and hears of the error. */
  isAwaited: boolean = false;
  /** Aborted when the loop's part was given up before its time. */
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
