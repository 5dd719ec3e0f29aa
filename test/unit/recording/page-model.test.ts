// What the page of a timeline makes of its data: gaps, arrows and where times are.
import { expect, test } from 'vitest';
import { AWAIT, Model } from '../../../page/model.js';
import { View } from '../../../page/view.js';
import type { PageData, PageOperations } from '../../../src/recording/page-data.js';

const MS = 1e6;
const TEXTS = ['launch', 'first', 'second', 'wait', 'event'];

/** One stream with operations from 20 to 30 ms, called at 15 ms, and from 50 to 60 ms, of which the length may be unknown; and a wait for the first. */
function dataOf(more: { isLastKnown?: boolean; dropped?: number } = {}): PageData {
  const none = [null, null];
  const operations: PageOperations = {
    tickets: [1, 1],
    ids: none,
    bytes: none,
    directions: none,
    pageable: none,
    threads: none,
    sites: none,
    timedTogether: none,
    submitted: [5 * MS, 1 * MS],
    issued: none,
    parked: [],
    after: [],
  };
  const lengths = [10 * MS, more.isLastKnown === false ? -1 : 10 * MS];
  const stream = { starts: [20 * MS, 30 * MS], lengths, kinds: [0, 0], labels: [1, 2], operations };
  const wait = { starts: [18 * MS], lengths: [13 * MS], kinds: [3], labels: [3], awaited: [[0, 1, 0]] as const };
  const reasons = [{ reason: 'latency', ms: 5, text: 'It was issued.', remedy: 'Wait.' }];
  return {
    recordedAt: '2026-01-01T00:00:00.000Z',
    startNs: 0,
    endNs: 100 * MS,
    dropped: more.dropped ?? 0,
    texts: TEXTS,
    rows: [
      { group: 'host', name: 'waits', levels: [wait] },
      { group: 'cpu', name: 's', levels: [stream] },
    ],
    gaps: [{ row: 1, startNs: 15 * MS, endNs: 20 * MS, reasons }],
    costs: [],
    withoutTimes: [],
  };
}

test('S1225 the time before the first and after the last operation of a stream tells that nothing was submitted', () => {
  const model = new Model(dataOf());
  const [, row] = model.rows;
  const gapAt = (ms: number): ReturnType<Model['gapAt']> => model.gapAt(row!, ms * MS);
  const [first, called, between, last] = [gapAt(1)!, gapAt(16)!, gapAt(40)!, gapAt(80)!];
  expect([first, called, between, last].map(({ startNs, endNs }) => [startNs / MS, endNs / MS])).toEqual([
    [0, 15],
    [15, 20],
    [30, 50],
    [60, 100],
  ]);
  expect(model.edgeText(first)).toBe('Nothing was submitted to it before 15.000 000 ms.');
  // From its call on, the recording explains it.
  expect(model.explained(called)?.reasons[0]?.reason).toBe('latency');
  expect([model.edgeText(between), model.edgeText(last)]).toEqual([undefined, 'Nothing was submitted to it after that.']);
  expect(model.gaps().map(({ startNs, endNs }) => [startNs / MS, endNs / MS])).toEqual([
    [15, 20],
    [0, 15],
    [60, 100],
  ]);
  expect(model.gaps().map((gap) => model.edgeText(gap) !== undefined)).toEqual([false, true, true]);
  expect(new Model(dataOf({ dropped: 1 })).edgeText(first)).toContain('The recording has nothing of it before');
});

test('S1225 what is no work of the device does not end a gap', () => {
  // A launch until 30 ms, and an allocation at 40 ms that a launch at 50 ms follows or nothing does.
  const withAlloc = (hasLaunch: boolean): Model => {
    const data = dataOf();
    const [stream] = data.rows[1]!.levels;
    const count = hasLaunch ? 3 : 2;
    const first = <T>(list: readonly T[]): T[] => list.slice(0, count);
    const kinds = first([0, 5, 0]);
    const operations = { ...stream!.operations!, tickets: first([1, 1, 1]), submitted: first([5 * MS, 1 * MS, 1 * MS]) };
    const level = { starts: first([20 * MS, 20 * MS, 10 * MS]), lengths: first([10 * MS, 1, 10 * MS]), kinds, labels: kinds, operations };
    const reasons = [{ reason: 'host', ms: 20, text: 'It came late.', remedy: 'Call.' }];
    const gaps = hasLaunch ? [{ row: 1, startNs: 30 * MS, endNs: 50 * MS, reasons }] : [];
    return new Model({ ...data, texts: [...TEXTS, 'alloc'], rows: [data.rows[0]!, { ...data.rows[1]!, levels: [level] }], gaps });
  };
  for (const [ms, hasLaunch, endMs, text] of [
    [35, true, 50, undefined],
    [45, true, 50, undefined],
    [35, false, 100, 'No kernel, copy, fill or graph was submitted to it after that.'],
    [45, false, 100, 'No kernel, copy, fill or graph was submitted to it after that.'],
  ] as const) {
    const model = withAlloc(hasLaunch);
    const gap = model.gapAt(model.rows[1]!, ms * MS)!;
    expect([gap.startNs / MS, gap.endNs / MS, gap.before, model.edgeText(gap)]).toEqual([30, endMs, 0, text]);
    expect(model.gaps()).toContainEqual(gap);
    // An allocation is no work.
    expect(model.rows[1]!.busyNs / MS).toBe(hasLaunch ? 20 : 10);
  }
});

test('S1225 what may still run has no gap after it', () => {
  const model = new Model(dataOf({ isLastKnown: false }));
  expect(model.rows[1]!.gapAt(80 * MS, model.startNs, model.endNs)).toBeUndefined();
  expect(model.gaps().map(({ startNs }) => startNs / MS)).toEqual([15, 0]);
});

test('S1225 a wait of the thread leads to what it waited for', () => {
  const [arrow] = new Model(dataOf()).arrows;
  expect(arrow).toMatchObject({
    cause: AWAIT,
    from: { row: 1, level: 0, at: 0 },
    to: { row: 0, level: 0, at: 0 },
    fromNs: 30 * MS,
    toNs: 31 * MS,
  });
});

test('S1225 the overview has the axis of the rows when all is seen', () => {
  const view = new View(new Model(dataOf()));
  for (const ns of [0, 20 * MS, 100 * MS]) {
    expect(view.overviewX(ns)).toBeCloseTo(view.x(ns), 6);
    expect(view.overviewNs(view.overviewX(ns))).toBeCloseTo(ns, 0);
  }
  expect(view.overviewX(0)).toBeGreaterThan(1);
  view.zoom(0.25, 200);
  expect([view.overviewX(view.fromNs) > 0, view.overviewX(view.toNs) < view.width]).toEqual([true, true]);
});

test('S1225 a step to what is tiny does not zoom', () => {
  const view = new View(new Model(dataOf()));
  const length = view.toNs - view.fromNs;
  view.reveal(20 * MS, 20 * MS + 1, false);
  expect(view.toNs - view.fromNs).toBe(length);
  view.reveal(20 * MS, 20 * MS + 1);
  expect(view.toNs - view.fromNs).toBeLessThan(length);
});
