// `depth: 'auto'`: adds lanes while more of them give more throughput, and takes the last step back when it gave none.

/** The lanes of a run, which AutoDepth adds and removes. */
export interface LaneCount {
  readonly count: number;
  grow(by: number): boolean;
  shrink(by: number): void;
}

/** A step must give this much more throughput to be kept. */
const LEAST_GAIN = 1.05;
/** If all lanes are occupied for a smaller share of the time than this, the lanes do not limit the run. */
const SATURATED_SHARE = 0.8;
/** Items measured for each decision: at least this many, and several for each lane. */
const LEAST_WINDOW = 12;

export class AutoDepth {
  readonly #lanes: LaneCount;
  readonly #now: () => number;
  #done = 0;
  #sinceMs: number;
  #occupiedMs = 0;
  #occupiedSinceMs: number | undefined;
  #rateBefore = 0;
  #lastStep = 0;
  #isSettled = false;

  constructor(lanes: LaneCount, now: () => number) {
    this.#lanes = lanes;
    this.#now = now;
    this.#sinceMs = now();
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
    if (this.#isSettled || ++this.#done < Math.max(LEAST_WINDOW, 4 * this.#lanes.count)) return;
    const nowMs = this.#now();
    const windowMs = nowMs - this.#sinceMs;
    const occupiedMs = this.#occupiedMs + (this.#occupiedSinceMs === undefined ? 0 : nowMs - this.#occupiedSinceMs);
    const rate = this.#done / Math.max(windowMs, 1e-3);
    this.#restart(nowMs);
    if (this.#lastStep > 0 && rate < this.#rateBefore * LEAST_GAIN) {
      this.#lanes.shrink(this.#lastStep);
      this.#isSettled = true;
    } else if (occupiedMs < SATURATED_SHARE * windowMs) {
      // The source or the consumer limits the run. Measure again over the next items.
      this.#lastStep = 0;
    } else {
      this.#rateBefore = rate;
      this.#lastStep = Math.max(1, Math.floor(this.#lanes.count / 2));
      if (!this.#lanes.grow(this.#lastStep)) this.#isSettled = true;
    }
  }

  #restart(nowMs: number): void {
    this.#done = 0;
    this.#sinceMs = nowMs;
    this.#occupiedMs = 0;
    if (this.#occupiedSinceMs !== undefined) this.#occupiedSinceMs = nowMs;
  }
}
