// The size of a batch, and how long a batch waits for more requests: as the caller says, or as a target for the latency allows.
//
// With one lane, a request that has just missed a batch waits for the whole batch, so a stage may take half of the target; with N lanes,
// N / (N + 1) of it. The size follows by additive increase and multiplicative decrease, as in TCP and in Clipper: the first batches
// double the size, a full batch that is quick enough adds one, and a batch that takes too long reduces the size in proportion. The size
// does not follow the latency itself: under overload the latency grows with the queue, and smaller batches would lower the throughput.
// Thread: owner.

/** Between a target and what is aimed at: timers and the event loop take their time. */
const MARGIN = 0.9;
/** Batches that the longest likely duration of the next one is taken from. */
const RECENT_BATCHES = 20;
/** Requests that the latency of a report is taken from. */
const RECENT_REQUESTS = 1000;

/** The limits of a batch. */
export interface BatchRules {
  readonly maxItems: number;
  /** Undefined: a batch waits as long as the target allows, or not at all without a target. */
  readonly maxWaitMs: number | undefined;
  readonly targetLatencyMs: number | undefined;
}

/** The batches of a service. */
export interface BatchReport {
  /** Batches that have ended. */
  readonly count: number;
  /** Requests in a batch, on average. */
  readonly meanItems: number;
  /** The largest batch so far. */
  readonly largestItems: number;
  /** The most requests that the next batch has: `maxItems`, or what `targetLatencyMs` allows at present. */
  readonly limitItems: number;
  /** The milliseconds from `run` to its answer that 95 % of the last 1000 requests did not exceed. */
  readonly p95Ms: number;
}

export class BatchSizes {
  readonly #limits: BatchRules;
  /** How long a stage may take. */
  readonly #budgetMs: number;
  #limit: number;
  #isDoubling = true;
  readonly #durations: number[] = [];
  readonly #latencies: number[] = [];
  #count = 0;
  #items = 0;
  #largest = 0;

  constructor(limits: BatchRules, lanes: number) {
    this.#limits = limits;
    const { targetLatencyMs, maxItems } = limits;
    this.#budgetMs = targetLatencyMs === undefined ? Number.POSITIVE_INFINITY : (MARGIN * targetLatencyMs * lanes) / (lanes + 1);
    this.#limit = targetLatencyMs === undefined ? maxItems : 1;
  }

  /** The most requests in the next batch. */
  get limit(): number {
    return this.#limit;
  }

  /** How long a batch that is not full waits, from the call of its first request. */
  get waitMs(): number {
    const { maxWaitMs, targetLatencyMs } = this.#limits;
    if (targetLatencyMs === undefined) return maxWaitMs ?? 0;
    // Before the first batch nothing is known of its duration.
    if (this.#durations.length === 0) return 0;
    const spareMs = MARGIN * targetLatencyMs - percentile95(this.#durations);
    return Math.max(0, Math.min(maxWaitMs ?? spareMs, spareMs));
  }

  /** Records a batch that has ended. `latenciesMs`: the latencies of its requests. */
  note(durationMs: number, latenciesMs: readonly number[]): void {
    const items = latenciesMs.length;
    this.#count++;
    this.#items += items;
    this.#largest = Math.max(this.#largest, items);
    this.#latencies.push(...latenciesMs);
    this.#latencies.splice(0, this.#latencies.length - RECENT_REQUESTS);
    if (this.#limits.targetLatencyMs === undefined) return;
    this.#durations.push(durationMs);
    if (this.#durations.length > RECENT_BATCHES) this.#durations.shift();
    this.#adapt(durationMs, items);
  }

  #adapt(durationMs: number, items: number): void {
    if (durationMs > this.#budgetMs) {
      this.#isDoubling = false;
      this.#limit = Math.max(1, Math.min(this.#limit, Math.floor(items * Math.max(0.5, (MARGIN * this.#budgetMs) / durationMs))));
      // The longer batches before it say nothing of smaller ones.
      this.#durations.length = 0;
      this.#durations.push(Math.min(durationMs, this.#budgetMs));
    } else if (items >= this.#limit) {
      if (2 * durationMs > this.#budgetMs) this.#isDoubling = false;
      this.#limit = Math.min(this.#limits.maxItems, this.#isDoubling ? 2 * this.#limit : this.#limit + 1);
    }
  }

  report(): BatchReport {
    const meanItems = this.#count === 0 ? 0 : this.#items / this.#count;
    return { count: this.#count, meanItems, largestItems: this.#largest, limitItems: this.#limit, p95Ms: percentile95(this.#latencies) };
  }
}

/** 0 of none. */
function percentile95(values: readonly number[]): number {
  if (values.length === 0) return 0;
  return values.toSorted((a, b) => a - b)[Math.ceil(0.95 * values.length) - 1] as number;
}
