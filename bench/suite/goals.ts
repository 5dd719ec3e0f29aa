// Goals of rows, and whether a result meets them.
import { type Absent, type Figure, isAbsent, type Result } from './report.js';

/** A limit on the median, on the 99th percentile, or on the ratio of the median to that of a peer in the same run. */
export interface Goal {
  readonly least?: number;
  readonly most?: number;
  /** Of `least` and `most`: p50 if left out. */
  readonly of?: 'p50' | 'p99' | 'p99/p50';
  /** `least` and `most` are ratios to this peer's median. */
  readonly peer?: string;
}

export type Verdict = 'met' | 'missed' | 'open';

/** As a word or two beside a table's figures: `≤ 9 us`, `≥ 0.99 of CuPy`. */
export function goalText({ least, most, of = 'p50', peer }: Goal, unit: string): string {
  const limit = least === undefined ? `≤ ${most}` : `≥ ${least}`;
  if (of === 'p99/p50') return `p99 ${limit} × p50`;
  const which = of === 'p99' ? 'p99 ' : '';
  return `${which}${limit} ${peer === undefined ? unit : `of ${peer}`}`.trim();
}

function figure(one: Figure | Absent | undefined): Figure | undefined {
  return one === undefined || isAbsent(one) ? undefined : one;
}

/** 'open' where a side has no figure. */
export function judge({ least, most, of = 'p50', peer }: Goal, result: Result): Verdict {
  const ours = figure(result.ours);
  const theirs = peer === undefined ? undefined : figure(result.peers[peer]);
  if (ours === undefined || (peer !== undefined && theirs === undefined)) return 'open';
  const own = of === 'p99/p50' ? ours.p99 / ours.p50 : ours[of];
  const value = theirs === undefined ? own : own / theirs.p50;
  return (least === undefined || value >= least) && (most === undefined || value <= most) ? 'met' : 'missed';
}
