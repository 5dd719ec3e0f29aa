// What a run of the benchmarks writes: figures by row, with the machine and the versions. bench/document.ts reads reports of several machines.

/** Measurements of one thing, in the unit of its row. */
export interface Figure {
  readonly count: number;
  readonly p10: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly min: number;
  readonly max: number;
}

export interface Absent {
  /** Why the peer has no figure. */
  readonly absent: string;
}

export interface Result {
  /** The row's, in rows.ts. */
  readonly id: string;
  readonly ours: Figure | Absent;
  readonly peers: Readonly<Record<string, Figure | Absent>>;
  readonly note?: string;
}

export interface Report {
  readonly at: string;
  readonly device: { readonly id: string; readonly backend: 'cpu' | 'cuda'; readonly name: string };
  /** The machine and the versions, in one line. */
  readonly machine: string;
  /** By peer. */
  readonly versions: Readonly<Record<string, string>>;
  readonly command: string;
  readonly seconds: number;
  readonly results: readonly Result[];
}

export function isAbsent(one: Figure | Absent): one is Absent {
  return 'absent' in one;
}

export function figureOf(values: readonly number[]): Figure {
  if (values.length === 0) throw new Error('There are no measurements.');
  const sorted = values.toSorted((a, b) => a - b);
  const at = (q: number): number => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
  return { count: sorted.length, p10: at(0.1), p50: at(0.5), p90: at(0.9), p99: at(0.99), min: sorted[0]!, max: sorted.at(-1)! };
}
