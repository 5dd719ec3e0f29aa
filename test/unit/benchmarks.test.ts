// What the benchmarks make of their measurements: figures, verdicts on goals, tables and charts.
import { expect, test } from 'vitest';
import { groupChart } from '../../bench/document/chart.js';
import { groupTable } from '../../bench/document/table.js';
import { goalText, judge } from '../../bench/suite/goals.js';
import { figureOf, type Report, type Result } from '../../bench/suite/report.js';
import { GROUPS, type RowGroup } from '../../bench/suite/rows.js';

const result = (id: string, ours: number[], peers: Record<string, number[] | string> = {}): Result => ({
  id,
  ours: figureOf(ours),
  peers: Object.fromEntries(
    Object.entries(peers).map(([name, one]) => [name, typeof one === 'string' ? { absent: one } : figureOf(one)] as const),
  ),
});
const report = (...results: Result[]): Report => ({
  at: '2026-01-01T00:00:00.000Z',
  device: { id: 'cuda:0', backend: 'cuda', name: 'a GPU' },
  machine: 'a machine',
  versions: {},
  command: 'a command',
  seconds: 1,
  results,
});
const group: RowGroup = {
  name: 'copies',
  title: 'Copies <and> more',
  rows: [{ id: 'up', what: 'up, 1 MiB', unit: 'GB/s', isRate: true, goals: { cuda: [{ least: 1, peer: 'CuPy' }, { least: 20 }] } }],
};

test('a figure has the median and the percentiles of its measurements', () => {
  const { p50, p10, p99, min, max, count } = figureOf(Array.from({ length: 100 }, (_, n) => 99 - n));
  expect({ p50, p10, p99, min, max, count }).toEqual({ p50: 50, p10: 10, p99: 99, min: 0, max: 99, count: 100 });
  expect(() => figureOf([])).toThrow('no measurements');
});

test('a goal is met or missed by the median, the 99th percentile or the ratio to a peer, and open without one of the sides', () => {
  const one = result('up', [10, 10, 30], { CuPy: [8], PyTorch: 'not installed' });
  expect(judge({ most: 10 }, one)).toBe('met');
  expect(judge({ most: 9 }, one)).toBe('missed');
  expect(judge({ most: 20, of: 'p99' }, one)).toBe('missed');
  expect(judge({ most: 3, of: 'p99/p50' }, one)).toBe('met');
  expect(judge({ most: 2.9, of: 'p99/p50' }, one)).toBe('missed');
  expect(judge({ least: 1.25, peer: 'CuPy' }, one)).toBe('met');
  expect(judge({ least: 1.3, peer: 'CuPy' }, one)).toBe('missed');
  expect(judge({ least: 1, peer: 'PyTorch' }, one)).toBe('open');
  expect(judge({ least: 1, peer: 'cuda.core' }, one)).toBe('open');
  expect(judge({ least: 1 }, { ...one, ours: { absent: 'one GPU' } })).toBe('open');
  expect(goalText({ most: 20, of: 'p99' }, 'us')).toBe('p99 ≤ 20 us');
  expect(goalText({ most: 3, of: 'p99/p50' }, 'us')).toBe('p99 ≤ 3 × p50');
  expect(goalText({ least: 0.99, peer: 'CuPy' }, 'GB/s')).toBe('≥ 0.99 of CuPy');
});

test('a table shows the percentiles of one machine, the spread of several, and a reason for what is missed', () => {
  const first = report(result('up', [19, 21, 30], { CuPy: [10], PyTorch: 'not installed' }));
  expect(groupTable(group, 'cuda', [first], {})).toBe(
    [
      '|  | unit | Millrace | CuPy | PyTorch | goal |',
      '| --- | --- | --- | --- | --- | --- |',
      '| up, 1 MiB | GB/s | 21.0 (19.0 to 30.0) | 10.0 | absent | ≥ 1 of CuPy: met<br>≥ 20 GB/s: met |',
    ].join('\n'),
  );
  const second = report(result('up', [15], { CuPy: [20] }));
  const table = groupTable(group, 'cuda', [first, second], { 'cuda/up': 'a reason.' });
  expect(table).toContain(
    '| 21.0 (15.0 to 21.0) | 20.0 (10.0 to 20.0) | absent | ≥ 1 of CuPy: met on 1 of 2<br>≥ 20 GB/s: met on 1 of 2 |',
  );
  expect(table).toMatch(/Missed:\n\n- up, 1 MiB: a reason\.$/);
  expect(groupTable(group, 'cuda', [report()], {})).toBeUndefined();
});

test('a chart has a bar for each side that is present, longer for more, and none of a group without peers', () => {
  const chart = groupChart(group, [report(result('up', [20], { CuPy: [10], PyTorch: 'not installed' }))])!;
  const bars = [...chart.matchAll(/<rect class="s(\d)" x="330" y="\d+" width="([\d.]+)"/g)].map(([, side, width]) => [side, Number(width)]);
  expect(bars).toEqual([
    ['0', 404],
    ['1', 202],
  ]);
  expect(chart).toContain('Copies &lt;and&gt; more');
  expect(chart).not.toContain('PyTorch');
  expect(groupChart(group, [report(result('up', [20]))])).toBeUndefined();
});

test('every row has an id of its own', () => {
  const ids = GROUPS.flatMap(({ rows }) => rows.map(({ id }) => id));
  expect(new Set(ids).size).toBe(ids.length);
});
