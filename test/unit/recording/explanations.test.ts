// Explanations of recordings that are written here: what only a GPU, two devices or a lack of memory would show.
import { describe, expect, test } from 'vitest';
import { Explainer } from '../../../src/recording/explain.js';
import type { RecordedOperation } from '../../../src/recording/recorded.js';
import type { Explainable, RecordedDevice } from '../../../src/recording/recorded-streams.js';
import { summaryOf } from '../../../src/recording/summary.js';

const GPU: RecordedDevice = { name: 'cuda:0', hasTimes: true, isGpu: true, threads: 1000 };

type Given = Partial<RecordedOperation> & Pick<RecordedOperation, 'ticket' | 'kind'>;

/** On stream `slot` of the GPU, and called, issued and begun at once. */
function operation(slot: number, startMs: number, endMs: number, facts: Given): RecordedOperation {
  return { device: GPU.name, stream: `s${slot}`, slot, submittedMs: startMs, issuedMs: startMs, startMs, endMs, ...facts };
}

function recorded(operations: readonly RecordedOperation[], device: RecordedDevice = GPU): Explainable {
  return { startMs: 0, endMs: 100, operations, spans: [], devices: [device] };
}

function reasonsOf(recording: Explainable, a: RecordedOperation, b: RecordedOperation): [string, number][] {
  return new Explainer(recording).explain(a, b).map(({ reason, ms }) => [reason, Math.round(ms * 1000) / 1000]);
}

describe('explanations', () => {
  test('S1208 a copy of a GPU waits for the engine of its direction, and not for the other one', () => {
    const a = operation(1, 10, 30, { ticket: 1, kind: 'copy', direction: 'upload' });
    // Its stream came to it at once, and the events around it tell so.
    const b = operation(2, 11, 50, { ticket: 1, kind: 'copy', direction: 'upload' });
    const c = operation(3, 11, 50, { ticket: 1, kind: 'copy', direction: 'download' });
    const recording = recorded([a, b, c]);
    expect(reasonsOf(recording, a, b)).toEqual([
      ['copy-engine', 19],
      ['host', 1],
    ]);
    expect(reasonsOf(recording, a, c)).toEqual([]);
    const explainer = new Explainer(recording);
    expect([explainer.overlap(a, b), explainer.overlap(a, c)]).toEqual([false, true]);
    expect(summaryOf(recording, explainer).reasons[0]).toMatchObject({ reason: 'copy-engine', ms: 19, count: 1, share: 0.19 });
  });

  test('S1208 a launch waits for another one that has all of the GPU, and not for a smaller one', () => {
    for (const threads of [1000, 999]) {
      const a = operation(1, 0, 20, { ticket: 1, kind: 'launch', threads });
      const b = operation(2, 5, 25, { ticket: 1, kind: 'launch', threads: 1, submittedMs: 0, issuedMs: 0 });
      const found = reasonsOf(recorded([a, b]), a, b);
      expect(found.filter(([reason]) => reason === 'device-busy')).toEqual(threads === 1000 ? [['device-busy', 20]] : []);
    }
  });

  test('S1208 what parked an operation is the reason, from when it parked to the next one', () => {
    const a = operation(1, 0, 1, { ticket: 1, kind: 'launch' });
    for (const [parked, kind, reason] of [
      ['window', 'launch', 'window'],
      ['memory', 'alloc', 'memory'],
      ['pinning', 'copy', 'pinning'],
      ['peer', 'copy', 'peer'],
      ['transfer', 'copy', 'pageable'],
      ['transfer', 'graph', 'graph'],
      ['compile', 'launch', 'compile'],
      ['host', 'external', 'hold'],
    ] as const) {
      const b = operation(2, 22, 30, {
        ticket: 1,
        kind,
        submittedMs: 2,
        issuedMs: 20,
        parked: [
          { reason: 'stream', fromMs: 3 },
          { reason: parked, fromMs: 5 },
        ],
      });
      expect(reasonsOf(recorded([a, b]), a, b)).toEqual(
        expect.arrayContaining([
          [reason, 15],
          ['stream', 2],
          ['latency', 2],
          ['host', 2],
          ['issue', 1],
        ]),
      );
    }
  });

  test('S1208 an allocation before it, and a wait whose stream was free long before, are told apart', () => {
    const a = operation(1, 0, 8, { ticket: 1, kind: 'launch', label: 'A' });
    const alloc = operation(2, 2, 6, { ticket: 1, kind: 'alloc', submittedMs: 0, issuedMs: 2 });
    const after = { device: GPU.name, stream: 's1', slot: 1, ticket: 1, cause: 'event' } as const;
    const wait = operation(2, 6, 9, { ticket: 2, kind: 'wait', after });
    const b = operation(2, 9, 10, { ticket: 3, kind: 'launch', label: 'B', submittedMs: 6, issuedMs: 6 });
    const [first, ...others] = new Explainer(recorded([a, alloc, wait, b])).explain(a, b);
    expect(first).toMatchObject({ reason: 'memory', ms: 4, because: { kind: 'alloc' } });
    expect(others.map(({ reason, ms }) => [reason, ms])).toEqual(
      expect.arrayContaining([
        ['event', 2],
        ['latency', 1],
        ['issue', 2],
      ]),
    );
  });

  test('S1208 an operation that has not begun is explained up to the end, and equal labels of streams are kept apart', () => {
    const a = operation(1, 10, 20, { ticket: 1, kind: 'launch', stream: 'same' });
    const { startMs: _, endMs: __, issuedMs: ___, ...held } = operation(2, 10, 0, { ticket: 1, kind: 'launch', stream: 'same' });
    const b = { ...held, parked: [{ reason: 'memory', fromMs: 12 }] as const };
    expect(reasonsOf(recorded([a, b]), a, b)).toEqual([
      ['memory', 88],
      ['issue', 2],
    ]);
  });

  test('S1209 the first gap of a stream begins when it was first given something, and short ones are left out', () => {
    const alloc = operation(1, 5, 5, { ticket: 1, kind: 'alloc' });
    const first = operation(1, 8, 9, { ticket: 2, kind: 'launch' });
    const next = operation(1, 9.001, 10, { ticket: 3, kind: 'launch' });
    const last = operation(1, 20, 21, { ticket: 4, kind: 'fill' });
    const gaps = new Explainer(recorded([alloc, first, next, last])).gaps();
    expect(gaps.map(({ startMs, endMs, before }) => [startMs, endMs, before?.ticket])).toEqual([
      [5, 8, undefined],
      [10, 20, 3],
    ]);
  });

  test('S1210 two streams that wait at the same time count once in the share', () => {
    const operations = [1, 2].flatMap((slot) => [
      operation(slot, 0, 10, { ticket: 1, kind: 'launch' }),
      operation(slot, 50, 60, { ticket: 2, kind: 'launch' }),
    ]);
    const recording = recorded(operations);
    const { reasons, busy } = summaryOf(recording, new Explainer(recording));
    expect(reasons).toMatchObject([{ reason: 'host', ms: 80, share: 0.4, count: 2 }]);
    expect(busy).toEqual([
      { device: 'cuda:0', operations: 4, busyMs: 20, share: 0.2 },
      { device: 'cuda:0', stream: 's1', operations: 2, busyMs: 20, share: 0.2 },
      { device: 'cuda:0', stream: 's2', operations: 2, busyMs: 20, share: 0.2 },
    ]);
  });

  test('S1215 without times of the device the order, waits and what parked are told', () => {
    const withoutTimes = ({ startMs: _, endMs: __, ...facts }: RecordedOperation): RecordedOperation => facts;
    const a = withoutTimes(operation(1, 0, 0, { ticket: 1, kind: 'launch' }));
    const b = withoutTimes(
      operation(1, 0, 0, { ticket: 2, kind: 'launch', submittedMs: 1, issuedMs: 9, parked: [{ reason: 'compile', fromMs: 1 }] }),
    );
    const recording = recorded([a, b], { ...GPU, hasTimes: false });
    expect(reasonsOf(recording, a, b)).toEqual([
      ['compile', 8],
      ['host', 1],
      ['order', 0],
      ['unknown', 0],
    ]);
    expect(new Explainer(recording).gaps()).toEqual([]);
    expect(summaryOf(recording, new Explainer(recording)).withoutTimes).toEqual(['cuda:0']);
  });
});
