// What a page of a timeline holds, of recordings that are written here.
import { describe, expect, test } from 'vitest';
import { chromeTrace } from '../../../src/recording/chrome-trace.js';
import { Explainer } from '../../../src/recording/explain.js';
import { pageDataOf } from '../../../src/recording/page.js';
import type { PageData } from '../../../src/recording/page-data.js';
import type { RecordedOperation, RecordedSpan } from '../../../src/recording/recorded.js';
import { summaryOf } from '../../../src/recording/summary.js';

type Given = Partial<RecordedOperation> & Pick<RecordedOperation, 'ticket' | 'kind'>;

/** A stream that does not say otherwise is labelled "same", whatever its slot. */
function operation(slot: number, facts: Given): RecordedOperation {
  return { device: 'cpu', stream: 'same', slot, ...facts };
}

function dataOf(operations: readonly RecordedOperation[], spans: readonly RecordedSpan[] = []): PageData {
  const recorded = { startMs: 0, endMs: 100, operations, spans };
  const explainer = new Explainer({ ...recorded, devices: [] });
  return pageDataOf({ ...recorded, dropped: 0, gaps: () => explainer.gaps(), summary: () => summaryOf(explainer.recording, explainer) });
}

describe('S1224 the data of a page', () => {
  test('S1224 may have no operation at all, and operations of which no time is known yet', () => {
    expect(dataOf([])).toMatchObject({ rows: [], gaps: [], endNs: 1e8 });
    const without = operation(0, { ticket: 1, kind: 'launch', id: 1 });
    expect(dataOf([without]).rows).toEqual([]);
    const { rows } = dataOf([without, operation(0, { ticket: 2, kind: 'launch', submittedMs: 5 })]);
    expect(rows[0]!.levels[0]).toMatchObject({ starts: [5e6], lengths: [-1], operations: { tickets: [2] } });
  });

  test('S1224 streams of one label have a row each, with their own gaps and arrows', () => {
    const run = (slot: number, ticket: number, startMs: number, more: Partial<RecordedOperation> = {}): RecordedOperation =>
      operation(slot, {
        ticket,
        kind: 'launch',
        label: `of ${slot}`,
        startMs,
        endMs: startMs + 1,
        submittedMs: startMs,
        issuedMs: startMs,
        ...more,
      });
    const after = { device: 'cpu', stream: 'same', slot: 1, ticket: 1, cause: 'event' } as const;
    const operations = [run(0, 1, 1), run(1, 1, 2), run(2, 1, 5, { kind: 'wait', after }), run(1, 2, 40)];
    const { rows, gaps } = dataOf(operations);
    expect(rows.map(({ group, name }) => [group, name])).toEqual(Array.from({ length: 3 }, () => ['cpu', 'same']));
    expect(rows[2]!.levels[0]!.operations!.after.map(([at, row, other]) => [at, row, other])).toEqual([[0, 1, 0]]);
    expect(gaps.map(({ row, startNs, endNs }) => [row, startNs, endNs])).toEqual([[1, 3e6, 40e6]]);
    const { traceEvents } = JSON.parse(chromeTrace({ startMs: 0, endMs: 100, operations, spans: [] })) as {
      traceEvents: { name: string; ph: string; tid: number; args: { name: string } }[];
    };
    expect(traceEvents.filter(({ name }) => name === 'thread_name').map(({ args }) => args.name)).toEqual(['same', 'same', 'same']);
    const [flow] = traceEvents.filter(({ ph }) => ph === 's');
    expect(flow!.tid).toBe(traceEvents.find(({ ph, name }) => ph === 'X' && name === 'of 1')!.tid);
  });

  test('S1224 streams are in the order in which they were made', () => {
    const times = { submittedMs: 1, issuedMs: 1, startMs: 1, endMs: 2 };
    const operations = [2, 0, 1].map((slot) => operation(slot, { ticket: 1, kind: 'launch', stream: `lane ${slot}`, ...times }));
    expect(dataOf(operations).rows.map(({ name }) => name)).toEqual(['lane 0', 'lane 1', 'lane 2']);
  });

  test('S1224 copies have their direction and whether host memory is pageable, launches their threads, waits of the thread what they waited for', () => {
    const times = { submittedMs: 1, issuedMs: 1, startMs: 1, endMs: 2 };
    const { texts, rows } = dataOf(
      [
        operation(0, { ticket: 1, kind: 'copy', direction: 'upload', isPageable: true, at: 'a.ts:1:2', ...times }),
        operation(0, { ticket: 2, kind: 'copy', direction: 'device', isPageable: false, ...times }),
        operation(0, { ticket: 3, kind: 'launch', threads: 64, timedTogether: 3, ...times }),
      ],
      [{ kind: 'wait', name: 'wait', startMs: 1, endMs: 3, awaited: { device: 'cpu', stream: 'same', slot: 0, ticket: 3 } }],
    );
    const [host, stream] = rows;
    const { directions, pageable, threads, sites, timedTogether } = stream!.levels[0]!.operations!;
    const textsOf = (list: readonly (number | null)[]): unknown[] => list.map((at) => at !== null && texts[at]);
    expect(textsOf(directions)).toEqual(['upload', 'device', false]);
    expect(textsOf(sites)).toEqual(['a.ts:1:2', false, false]);
    expect([pageable, threads, timedTogether]).toEqual([
      [true, null, null],
      [null, null, 64],
      [null, null, 3],
    ]);
    expect(host!.levels[0]!.awaited).toEqual([[0, 1, 2]]);
  });
});
