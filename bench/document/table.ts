// The tables of docs/benchmarks.md: one for each group of rows, over the reports of one backend. With several machines, a cell has the
// median of their medians and, in parentheses, the smallest and the largest; with one, the 10th and the 90th percentile of its run.
import { goalText, judge } from '../suite/goals.js';
import { number, spread } from '../suite/console-table.js';
import { type Absent, type Figure, figureOf, isAbsent, type Report, type Result } from '../suite/report.js';
import type { Row, RowGroup } from '../suite/rows.js';

/** By row: why it misses its goal. */
export type Reasons = Readonly<Record<string, string>>;

function medianOf(values: readonly number[]): number {
  return figureOf(values).p50;
}

/** Of one side of a row. */
function cell(figures: readonly (Figure | Absent)[]): string {
  const present = figures.filter((one): one is Figure => !isAbsent(one));
  const [first] = present;
  if (first === undefined) return 'absent';
  if (present.length === 1) return spread(first);
  const medians = present.map(({ p50 }) => p50);
  return `${number(medianOf(medians))} (${number(Math.min(...medians))} to ${number(Math.max(...medians))})`;
}

function p99Of(results: readonly Result[]): string {
  const values = results.flatMap(({ ours }) => (isAbsent(ours) ? [] : [ours.p99]));
  return values.length === 0 ? '' : number(medianOf(values));
}

/** `met`, `missed`, or on how many machines it was met. */
function verdict(row: Row, backend: 'cpu' | 'cuda', results: readonly Result[]): string {
  const goals = row.goals?.[backend] ?? [];
  return goals
    .map((goal) => {
      const judged = results.map((result) => judge(goal, result)).filter((one) => one !== 'open');
      const met = judged.filter((one) => one === 'met').length;
      const text =
        judged.length === 0 ? 'open' : met === judged.length ? 'met' : met === 0 ? '**missed**' : `met on ${met} of ${judged.length}`;
      return `${goalText(goal, row.unit)}: ${text}`;
    })
    .join('<br>');
}

/** Undefined if no report has a row of the group. */
export function groupTable(group: RowGroup, backend: 'cpu' | 'cuda', reports: readonly Report[], reasons: Reasons): string | undefined {
  const rows = group.rows.flatMap((row) => {
    const results = reports.flatMap((report) => report.results.filter(({ id }) => id === row.id));
    return results.length === 0 ? [] : [{ row, results }];
  });
  if (rows.length === 0) return undefined;
  const peers = [...new Set(rows.flatMap(({ results }) => results.flatMap((result) => Object.keys(result.peers))))];
  const hasP99 = rows.some(({ row }) => row.goals?.[backend]?.some(({ of = 'p50' }) => of !== 'p50'));
  const head = ['', 'unit', 'Millrace', ...(hasP99 ? ['p99'] : []), ...peers, 'goal'];
  const lines = rows.map(({ row, results }) => [
    row.what,
    row.unit,
    cell(results.map(({ ours }) => ours)),
    ...(hasP99 ? [p99Of(results)] : []),
    ...peers.map((peer) => {
      const figures = results.flatMap((result) => result.peers[peer] ?? []);
      return figures.length === 0 ? '' : cell(figures);
    }),
    verdict(row, backend, results),
  ]);
  const table = [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  const missed = rows.flatMap(({ row, results }) => {
    if (!/missed|met on/.test(verdict(row, backend, results))) return [];
    return [`- ${row.what}: ${reasons[`${backend}/${row.id}`] ?? 'the reason is not known yet.'}`];
  });
  return [table, ...(missed.length === 0 ? [] : ['Missed:', missed.join('\n')])].join('\n\n');
}
