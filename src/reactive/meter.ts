// What held a run up: how long its source, its stage and its consumer were each the one that everything waited for.

/**
 * - `source`: a lane was free and the next item had not come.
 * - `stage`: every lane was working.
 * - `consumer`: a result had been handed over and the next one not been asked for.
 */
export type Resource = 'source' | 'stage' | 'consumer';

interface Usage {
  sinceMs: number | undefined;
  busyMs: number;
}

export class Meter {
  readonly #now: () => number;
  readonly #usages: Readonly<Record<Resource, Usage>> = {
    source: { sinceMs: undefined, busyMs: 0 },
    stage: { sinceMs: undefined, busyMs: 0 },
    consumer: { sinceMs: undefined, busyMs: 0 },
  };
  #startMs: number | undefined;
  #endMs: number | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  start(): void {
    this.#startMs = this.#now();
  }

  stop(): void {
    this.#endMs ??= this.#now();
  }

  /** Says that a resource is busy from now on, or no longer. Saying it twice changes nothing. */
  set(resource: Resource, isBusy: boolean): void {
    const usage = this.#usages[resource];
    if (isBusy === (usage.sinceMs !== undefined)) return;
    const nowMs = this.#now();
    if (usage.sinceMs !== undefined) usage.busyMs += nowMs - usage.sinceMs;
    usage.sinceMs = isBusy ? nowMs : undefined;
  }

  /** The busiest resource, and its share of the run's time: 1 when it was never idle. */
  summary(): { readonly bottleneck: Resource | 'none'; readonly share: number } {
    const nowMs = this.#endMs ?? this.#now();
    const wallMs = this.#startMs === undefined ? 0 : nowMs - this.#startMs;
    let bottleneck: Resource | 'none' = 'none';
    let mostMs = 0;
    for (const resource of ['source', 'stage', 'consumer'] as const) {
      const { busyMs, sinceMs } = this.#usages[resource];
      const totalMs = busyMs + (sinceMs === undefined ? 0 : nowMs - sinceMs);
      if (totalMs > mostMs) [bottleneck, mostMs] = [resource, totalMs];
    }
    return { bottleneck, share: wallMs > 0 ? Math.min(1, mostMs / wallMs) : 0 };
  }
}
