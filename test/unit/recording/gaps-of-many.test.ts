// Gaps of as many operations as a recording keeps, or of a quarter of them.
import { expect, test } from 'vitest';
import { IS_LONG } from '../../support/long.js';
import { Explainer } from '../../../src/recording/explain.js';
import type { RecordedOperation, RecordedSpan } from '../../../src/recording/recorded.js';

const COUNT = IS_LONG ? 100_000 : 25_000;
const STREAMS = 8;

/** Streams of two devices. Each operation takes 50 us, 100 us after the one before; the host waits for each, and for the last one all the time. */
function recorded(): { readonly operations: RecordedOperation[]; readonly spans: RecordedSpan[]; readonly endMs: number } {
  const operations: RecordedOperation[] = [];
  const spans: RecordedSpan[] = [];
  for (let n = 0; n < COUNT; n++) {
    const slot = n % STREAMS;
    const ticket = 1 + Math.floor(n / STREAMS);
    const startMs = 0.15 * ticket;
    const point = { device: `cpu:${slot % 2}`, stream: `s${slot}`, slot, ticket };
    operations.push({ ...point, kind: 'launch', submittedMs: startMs - 0.01, issuedMs: startMs - 0.005, startMs, endMs: startMs + 0.05 });
    spans.push({ kind: 'wait', name: 'wait', startMs: startMs - 0.01, endMs: startMs + 0.06, awaited: point });
  }
  const endMs = 0.15 * (COUNT / STREAMS) + 1;
  spans.push({ kind: 'wait', name: 'wait', startMs: 0, endMs });
  return { operations, spans, endMs };
}

test(
  `S1209 the gaps of ${COUNT} operations are found without a walk over all of them for each`,
  () => {
    const { operations, spans, endMs } = recorded();
    const explainer = new Explainer({ startMs: 0, endMs, operations, spans, devices: [] });
    const gaps = explainer.gaps();
    expect(gaps).toHaveLength(COUNT - STREAMS);
    for (const { stream, before, after, startMs, endMs: untilMs, explanations } of gaps.filter((_, at) => at % 997 === 0)) {
      expect([before!.ticket, before!.slot, before!.device, stream]).toEqual([
        after.ticket - 1,
        after.slot,
        after.device,
        `s${after.slot}`,
      ]);
      expect(untilMs - startMs).toBeCloseTo(0.1, 6);
      expect(explanations.reduce((sum, { ms }) => sum + ms, 0)).toBeCloseTo(0.1, 6);
      // The wait that ended before the call, and not the long one, which was still open.
      expect(explanations.find(({ reason }) => reason === 'await')?.because).toMatchObject({ awaited: { ticket: before!.ticket } });
    }
    // A walk over all of them for each takes at least 25 times as long: a minute for the quarter.
  },
  IS_LONG ? 120_000 : 30_000,
);

test('S1209 spans that begin or end at the times that are asked for, or at the same time, are neither lost nor told twice', () => {
  const spanOf = (startMs: number, endMs: number): RecordedSpan => ({ kind: 'wait', name: `${startMs} ${endMs}`, startMs, endMs });
  const times = [0, 1, 1, 2, 3, 3, 5, 8];
  const spans = times.flatMap((startMs) => times.filter((endMs) => endMs >= startMs).map((endMs) => spanOf(startMs, endMs)));
  const { streams } = new Explainer({ startMs: 0, endMs: 8, operations: [], spans, devices: [] });
  for (const [fromMs, toMs] of [...times, 2.5, 9].flatMap((from) => [...times, 2.5, 9].map((to) => [from, to] as const))) {
    const expected = spans.filter(({ startMs, endMs }) => startMs < toMs && endMs > fromMs).toSorted((a, b) => a.endMs - b.endMs);
    expect(streams.spansIn(fromMs, toMs)).toEqual(expected);
  }
  expect(new Explainer({ startMs: 0, endMs: 8, operations: [], spans: [], devices: [] }).streams.spansIn(0, 8)).toEqual([]);
});
