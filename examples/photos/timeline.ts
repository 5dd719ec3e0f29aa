// When each stage of each photo ran, on which lane: for the overlap figure.

export const STAGES = ['decode', 'upload', 'kernels', 'download', 'encode'] as const;
export type StageName = (typeof STAGES)[number];

/** When something ran, in milliseconds since 1970: a clock that all threads agree on. */
export interface Interval {
  readonly startMs: number;
  readonly endMs: number;
}

export function now(): number {
  return performance.timeOrigin + performance.now();
}

interface Span extends Interval {
  readonly lane: number;
  readonly stage: StageName;
  readonly photo: string;
}

export class Timeline {
  readonly #spans: Span[] = [];

  add(lane: number, stage: StageName, photo: string, interval: Interval): void {
    this.#spans.push({ lane, stage, photo, startMs: interval.startMs, endMs: interval.endMs });
  }

  /** How long at least one lane was in that stage. */
  busyMs(stage: StageName): number {
    const spans = this.#spans.filter((span) => span.stage === stage).toSorted((a, b) => a.startMs - b.startMs);
    let busyMs = 0;
    let coveredMs = -Infinity;
    for (const { startMs, endMs } of spans) {
      busyMs += Math.max(0, endMs - Math.max(startMs, coveredMs));
      coveredMs = Math.max(coveredMs, endMs);
    }
    return busyMs;
  }

  /** The stage that was busy longest: no order of the work could take less time than it. */
  bottleneck(): { readonly stage: StageName; readonly busyMs: number } {
    return STAGES.map((stage) => ({ stage, busyMs: this.busyMs(stage) })).reduce((most, other) =>
      other.busyMs > most.busyMs ? other : most,
    );
  }
}
