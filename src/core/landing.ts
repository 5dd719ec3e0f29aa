// Bytes on their way from page-locked memory into an ordinary array, which the device cannot reach: copied on the loop
// when the device has finished, in slices, so that a large read never holds the loop for more than a moment.
// Thread: owner.
import { StateError } from './errors.js';
import type { Timeline } from './timeline.js';

/** Bytes copied in one turn of the loop: about half a millisecond. */
const TURN_BYTES = 4 * 2 ** 20;

interface Job {
  readonly from: Uint8Array;
  readonly into: Uint8Array;
  at: number;
  readonly finish: (error?: Error) => void;
}

export class LandingQueue {
  #jobs: Job[] = [];
  #leftBytes = TURN_BYTES;
  #isScheduled = false;
  /** Of each stream, those that have not settled. */
  readonly #expected: Map<Timeline, Set<Landing>> = new Map();

  /** Copies `from` into `into`, at once if this turn has room for it. `into` may have been detached by its owner meanwhile. */
  land(from: Uint8Array, into: Uint8Array, finish: (error?: Error) => void): void {
    this.#jobs.push({ from, into, at: 0, finish });
    if (this.#jobs.length === 1) this.#run();
  }

  /** Bytes that a stream is to send to an ordinary array; `done` promises of the stream wait for those before them. */
  expect(timeline: Timeline, landing: Landing): void {
    let landings = this.#expected.get(timeline);
    if (landings === undefined) this.#expected.set(timeline, (landings = new Set()));
    landings.add(landing);
    const set = landings;
    void landing.settled.then(() => set.delete(landing));
  }

  /** Resolves when everything up to the ticket has landed; undefined when it has. */
  landed(timeline: Timeline, ticket: number): Promise<unknown> | undefined {
    const landings = this.#expected.get(timeline);
    if (landings === undefined || landings.size === 0) return undefined;
    const earlier = [...landings].filter((landing) => landing.ticket <= ticket && !landing.isSettled);
    return earlier.length === 0 ? undefined : Promise.all(earlier.map((landing) => landing.settled));
  }

  /** The stream is closed. */
  forget(timeline: Timeline): void {
    this.#expected.delete(timeline);
  }

  #run(): void {
    let job = this.#jobs[0];
    while (job !== undefined && this.#leftBytes > 0) {
      if (job.into.byteLength !== job.from.byteLength) {
        this.#jobs.shift();
        job.finish(new StateError('ERR_MILLRACE_STATE', 'The array that a copy goes to was detached or resized before its bytes arrived.'));
      } else {
        const end = Math.min(job.at + this.#leftBytes, job.from.byteLength);
        if (job.at < end) job.into.set(job.from.subarray(job.at, end), job.at);
        this.#leftBytes -= end - job.at;
        job.at = end;
        if (end === job.from.byteLength) {
          this.#jobs.shift();
          job.finish();
        }
      }
      job = this.#jobs[0];
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

/** A copy into an ordinary array: done when the bytes are there, or when the operation failed. Never rejects. */
export class Landing {
  readonly ticket: number;
  readonly settled: Promise<void>;
  isSettled: boolean = false;
  /** What kept the bytes from arriving although the device did its part. */
  error: Error | undefined = undefined;
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
