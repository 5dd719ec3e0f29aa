// What programs on several streams mean, as plainly as it can be said: arrays that the calls change one after another,
// and a vector clock for each stream and for the host that says which calls come before which.

/** For each stream, how many of its calls come before. */
export type Clock = readonly number[];

export interface Range {
  readonly array: number;
  /** Elements `from` up to, and without, `to`: of a strided part its bounds. */
  readonly from: number;
  readonly to: number;
  readonly isWrite: boolean;
}
interface Access extends Range {
  readonly stream: number;
  readonly clock: Clock;
}

export class OrderModel {
  readonly values: Uint32Array[];
  readonly #clocks: Clock[];
  readonly #accesses: Access[][];
  readonly #isChecked: readonly boolean[];
  #host: Clock;

  constructor(arrays: number, length: number, isChecked: readonly boolean[]) {
    this.values = Array.from({ length: arrays }, () => new Uint32Array(length));
    this.#accesses = this.values.map(() => []);
    this.#isChecked = isChecked;
    this.#host = isChecked.map(() => 0);
    this.#clocks = isChecked.map(() => this.#host);
  }

  /** What everything that the stream has been given so far, and all before it, amounts to. */
  clockOf(stream: number): Clock {
    return this.#clocks[stream]!;
  }

  /** The stream's later calls come after these. */
  wait(stream: number, clock: Clock): void {
    this.#clocks[stream] = joined(this.#clocks[stream]!, clock);
  }

  /** The program has seen these finished. */
  observe(clock: Clock): void {
    this.#host = joined(this.#host, clock);
  }

  /** The slot holds a new array of zeros, made by this stream. */
  make(stream: number, array: number): void {
    this.values[array]!.fill(0);
    this.#accesses[array] = [];
    this.use(stream, [{ array, from: 0, to: this.values[array]!.length, isWrite: true }]);
  }

  /**
   * The streams that a checked stream would race with: then nothing was done. A tracked one waits for what is in its way, and
   * races with none.
   */
  use(stream: number, ranges: readonly Range[]): readonly number[] {
    const known = joined(this.#clocks[stream]!, this.#host);
    const unordered = ranges
      .flatMap((range) => this.#accesses[range.array]!.filter((access) => conflicts(access, range)))
      .filter((access) => access.clock[access.stream]! > known[access.stream]!);
    if (unordered.length > 0 && this.#isChecked[stream]!) return [...new Set(unordered.map((access) => access.stream))];
    const clock = [...unordered.reduce((all, access) => joined(all, access.clock), known)];
    clock[stream]!++;
    this.#clocks[stream] = clock;
    for (const range of ranges) this.#accesses[range.array]!.push({ ...range, stream, clock });
    return [];
  }
}

function conflicts(a: Range, b: Range): boolean {
  return (a.isWrite || b.isWrite) && a.from < b.to && b.from < a.to;
}

function joined(a: Clock, b: Clock): Clock {
  return a.map((count, stream) => Math.max(count, b[stream]!));
}
