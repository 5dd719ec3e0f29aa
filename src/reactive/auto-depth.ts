// `depth: 'auto'`: adds lanes while more of them give more throughput, and takes steps back that gave none.
//
// The items in flight when the number of lanes changes are not measured, nor are the first ones, for which memory and streams are made. A step
// with a small gain, which may have been chance, is taken back for one more measurement.

/** The lanes of a run, which AutoDepth adds and removes. */
export interface LaneCount {
  readonly count: number;
  grow(by: number): boolean;
  shrink(by: number): void;
}

/** A step must give this much more throughput to be kept. */
const LEAST_GAIN = 1.05;
/** A step that gave less is tried once more. */
const SURE_GAIN = 1.25;
/** If all lanes are occupied for a smaller share of the time than this, the lanes do not limit the run. */
const SATURATED_SHARE = 0.8;
/** Items measured for each decision: at least this many, and several for each lane; for small items as many as fill this time. */
const LEAST_WINDOW = 12;
const LEAST_WINDOW_MS = 4;

interface Step {
  readonly by: number;
  readonly gain: number;
  /** The throughput after it. */
  readonly rate: number;
}

export class AutoDepth {
  readonly #lanes: LaneCount;
  readonly #now: () => number;
  /** Items that pass before the next measurement begins. */
  #passing: number;
  #done = 0;
  #sinceMs: number;
  #occupiedMs = 0;
  #occupiedSinceMs: number | undefined;
  #rateBefore = 0;
  #lastStep = 0;
  /** The steps that were kept. */
  readonly #kept: Step[] = [];
  /** The step that was taken back for a measurement. */
  #doubted: Step | undefined;
  #isSettled = false;

  constructor(lanes: LaneCount, now: () => number) {
    this.#lanes = lanes;
    this.#now = now;
    this.#sinceMs = now();
    this.#passing = 2 * lanes.count;
  }

  /** Says whether all lanes are occupied. */
  setOccupied(isOccupied: boolean): void {
    if (isOccupied === (this.#occupiedSinceMs !== undefined)) return;
    const nowMs = this.#now();
    if (this.#occupiedSinceMs !== undefined) this.#occupiedMs += nowMs - this.#occupiedSinceMs;
    this.#occupiedSinceMs = isOccupied ? nowMs : undefined;
  }

  /** An item has passed its stage. */
  countItem(): void {
    if (this.#isSettled) return;
    if (this.#passing > 0) {
      if (--this.#passing === 0) this.#restart(this.#now());
      return;
    }
    if (++this.#done < Math.max(LEAST_WINDOW, 4 * this.#lanes.count)) return;
    const nowMs = this.#now();
    const windowMs = nowMs - this.#sinceMs;
    if (windowMs < LEAST_WINDOW_MS) return;
    const occupiedMs = this.#occupiedMs + (this.#occupiedSinceMs === undefined ? 0 : nowMs - this.#occupiedSinceMs);
    const rate = this.#done / windowMs;
    this.#restart(nowMs);
    if (this.#doubted !== undefined) this.#judge(this.#doubted, rate);
    else if (this.#lastStep > 0 && rate < this.#rateBefore * LEAST_GAIN) {
      this.#lanes.shrink(this.#lastStep);
      this.#doubtLast();
    } else {
      if (this.#lastStep > 0) this.#kept.push({ by: this.#lastStep, gain: rate / this.#rateBefore, rate });
      this.#lastStep = 0;
      // Otherwise the source or the consumer limits the run. Measure again over the next items.
      if (occupiedMs >= SATURATED_SHARE * windowMs) this.#grow(rate);
    }
  }

  #grow(rate: number): void {
    this.#rateBefore = rate;
    this.#lastStep = Math.max(1, Math.floor(this.#lanes.count / 2));
    if (this.#lanes.grow(this.#lastStep)) this.#passing = 2 * this.#lanes.count;
    else this.#doubtLast();
  }

  /** No further step is of use. Takes the last one that was kept back to see whether it was, if its gain was small. */
  #doubtLast(): void {
    const last = this.#kept.pop();
    this.#isSettled = last === undefined || last.gain >= SURE_GAIN;
    this.#doubted = this.#isSettled ? undefined : last;
    if (this.#doubted === undefined) return;
    this.#lanes.shrink(this.#doubted.by);
    this.#passing = 2 * this.#lanes.count;
  }

  #judge(doubted: Step, rate: number): void {
    if (doubted.rate < rate * LEAST_GAIN) {
      this.#doubtLast();
    } else {
      this.#lanes.grow(doubted.by);
      this.#isSettled = true;
    }
  }

  #restart(nowMs: number): void {
    this.#done = 0;
    this.#sinceMs = nowMs;
    this.#occupiedMs = 0;
    if (this.#occupiedSinceMs !== undefined) this.#occupiedSinceMs = nowMs;
  }
}
