// Copies to ordinary arrays, which the device cannot access. The event loop copies the bytes from page-locked memory in slices, so that a large
// read blocks it only briefly.
// Thread: owner.
import { StateError } from '../base/errors.js';
import { performance, setImmediate } from '../base/timers.js';

/** How long copies block one turn of the event loop. */
const TURN_MS = 0.5;
const MIB = 2 ** 20;
/** The sizes of slices. Several threads share a slice, so the size follows from the speed of the machine. */
const FIRST_SLICE = 4 * MIB;
const SMALLEST_SLICE = MIB;
const LARGEST_SLICE = 32 * MIB;

interface HostCopy {
  readonly from: Uint8Array;
  readonly into: Uint8Array;
  at: number;
  readonly finish: (error?: Error) => void;
}

export class HostCopies {
  readonly #copySlice: (target: Uint8Array, source: Uint8Array) => void;
  readonly #copies: HostCopy[] = [];
  #slice = FIRST_SLICE;
  #leftMs = TURN_MS;
  #isScheduled = false;

  /** `copySlice` copies bytes between two arrays of one size. */
  constructor(copySlice: (target: Uint8Array, source: Uint8Array) => void) {
    this.#copySlice = copySlice;
  }

  /** Copies `from` into `into`, at once if this turn has time for it. User code may have detached `into` meanwhile. */
  copyToHost(from: Uint8Array, into: Uint8Array, finish: (error?: Error) => void): void {
    this.#copies.push({ from, into, at: 0, finish });
    if (this.#copies.length === 1) this.#run();
  }

  #run(): void {
    let copy = this.#copies[0];
    while (copy !== undefined && this.#leftMs > 0) {
      if (copy.into.byteLength !== copy.from.byteLength) {
        this.#copies.shift();
        copy.finish(
          new StateError('ERR_MILLRACE_STATE', 'The destination of a copy was detached or resized before the bytes were copied to it.'),
        );
      } else {
        this.#step(copy);
        if (copy.at === copy.from.byteLength) {
          this.#copies.shift();
          copy.finish();
        }
      }
      copy = this.#copies[0];
    }
    if (this.#leftMs < TURN_MS && !this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => {
        this.#isScheduled = false;
        this.#leftMs = TURN_MS;
        this.#run();
      });
    }
  }

  #step(copy: HostCopy): void {
    const { from, into, at } = copy;
    const end = Math.min(at + this.#slice, from.byteLength);
    const start = performance.now();
    if (at < end) this.#copySlice(into.subarray(at, end), from.subarray(at, end));
    copy.at = end;
    const ms = performance.now() - start;
    this.#leftMs -= ms;
    if (ms > TURN_MS / 2) this.#slice = Math.max(SMALLEST_SLICE, this.#slice / 2);
    else if (end - at === this.#slice && ms < TURN_MS / 4) this.#slice = Math.min(LARGEST_SLICE, this.#slice * 2);
  }
}
