// How long each part of a run was busy: its source, its consumer, its lanes, and the stages that operators and `lane.time` name.

/** One part of a run. */
export interface StageReport {
  /**
   * 'source', 'lanes', 'consumer', or the name of a stage: 'upload', 'launch blur', 'download', 'cpu encode', or that of `lane.time`. 'build
   * blur' is the time that a first launch waited for its kernel's build: `await device.compile(blur)` before the run avoids it.
   */
  readonly name: string;
  /** How long the part was busy, in milliseconds; work of several lanes at the same time counts once. */
  readonly busyMs: number;
  /** `busyMs` as a part of the run's time, from 0 to 1. */
  readonly busyShare: number;
}

interface Usage {
  /** The number of `begin` calls without their `end`. */
  active: number;
  sinceMs: number;
  busyMs: number;
}

/** If the lanes are busier by this share than every measured part, they did work that nothing measured. */
const UNMEASURED_SHARE = 0.2;

export class Meter {
  readonly #now: () => number;
  readonly #usages: Map<string, Usage> = new Map();
  #startMs: number | undefined;
  #endMs: number | undefined;
  #items = 0;

  constructor(now: () => number) {
    this.#now = now;
    for (const name of ['source', 'lanes', 'consumer']) this.#usages.set(name, { active: 0, sinceMs: 0, busyMs: 0 });
  }

  /** Counts the items that lanes took, from 0 on. */
  nextItem(): number {
    return this.#items++;
  }

  start(): void {
    this.#startMs ??= this.#now();
  }

  stop(): void {
    this.#endMs ??= this.#now();
  }

  /** Counts one more piece of work; the part is busy until each has ended. */
  begin(name: string): void {
    let usage = this.#usages.get(name);
    if (!usage) this.#usages.set(name, (usage = { active: 0, sinceMs: 0, busyMs: 0 }));
    if (usage.active++ === 0) usage.sinceMs = this.#now();
  }

  end(name: string): void {
    const usage = this.#usages.get(name);
    if (!usage || usage.active === 0) return;
    if (--usage.active === 0) usage.busyMs += this.#now() - usage.sinceMs;
  }

  /** Sets whether a part is busy from now on. Idempotent. */
  set(name: string, isBusy: boolean): void {
    if (isBusy === (this.#usages.get(name)?.active ?? 0) > 0) return;
    if (isBusy) this.begin(name);
    else this.end(name);
  }

  /** The time since `start`, or between `start` and `stop`. */
  get wallMs(): number {
    return this.#startMs === undefined ? 0 : (this.#endMs ?? this.#now()) - this.#startMs;
  }

  stages(): readonly StageReport[] {
    const { wallMs } = this;
    const nowMs = this.#endMs ?? this.#now();
    return [...this.#usages].map(([name, usage]) => {
      const busyMs = usage.busyMs + (usage.active > 0 ? Math.max(0, nowMs - usage.sinceMs) : 0);
      return { name, busyMs, busyShare: wallMs > 0 ? Math.min(1, busyMs / wallMs) : 0 };
    });
  }

  /**
   * The busiest part. A stage is more informative than 'lanes', so the result is 'lanes' only if they are much busier than every measured
   * part.
   */
  bottleneck(): { readonly name: string; readonly busyShare: number } {
    let busiest = { name: 'none', busyShare: 0 };
    let lanesShare = 0;
    for (const { name, busyShare } of this.stages()) {
      if (name === 'lanes') lanesShare = busyShare;
      else if (busyShare > busiest.busyShare) busiest = { name, busyShare };
    }
    return lanesShare > busiest.busyShare + UNMEASURED_SHARE ? { name: 'lanes', busyShare: lanesShare } : busiest;
  }
}
