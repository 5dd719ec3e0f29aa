// Why the host called an operation late: what its thread did before the call.
import type { Delay } from './delay.js';
import type { Reason } from './explained.js';
import type { RecordedOperation, RecordedSpan } from './recorded.js';
import type { RecordedStreams } from './recorded-streams.js';

/** Stages that name work of the device, not of the host. */
const DEVICE_STAGE = /^(?:upload|download|launch )/;

/** The labels of the lanes of `overlap`. */
const LANE = /^lane \d+$/;

interface Candidate {
  readonly reason: Reason;
  readonly rank: number;
  readonly span: RecordedSpan;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The parts of a time before the call. Where several spans are open, the one that says most is the reason. */
export function hostDelays(streams: RecordedStreams, late: RecordedOperation, fromMs: number, toMs: number): Delay[] {
  if (!(toMs > fromMs)) return [];
  const candidates = candidatesOf(streams, late, fromMs, toMs);
  const edges = [...new Set([fromMs, toMs, ...candidates.flatMap(({ fromMs: start, toMs: end }) => [start, end])])].toSorted(
    (a, b) => a - b,
  );
  const found: Delay[] = [];
  for (const [n, start] of edges.slice(0, -1).entries()) {
    const end = edges[n + 1] as number;
    let best: Candidate | undefined;
    for (const one of candidates) if (one.fromMs <= start && one.toMs >= end && one.rank > (best?.rank ?? 0)) best = one;
    found.push({ reason: best?.reason ?? 'host', fromMs: start, toMs: end, late, because: best?.span });
  }
  return found;
}

function candidatesOf(streams: RecordedStreams, late: RecordedOperation, fromMs: number, toMs: number): Candidate[] {
  const found: Candidate[] = [];
  const waits: RecordedSpan[] = [];
  let stage: RecordedSpan | undefined;
  for (const span of streams.spansIn(fromMs, toMs)) {
    // What was still open at the call did not hold it up.
    const isOver = span.endMs <= toMs;
    if (span.kind === 'collection') found.push(part('collection', 5, span, fromMs, toMs));
    else if (span.kind === 'staging') found.push(part('pageable', 4.8, span, fromMs, toMs));
    else if (span.kind === 'stall') found.push(part('stall', 3, span, fromMs, toMs));
    else if (span.kind === 'wait' && isOver && isWaitOf(span, late)) waits.push(span);
    else if (span.kind === 'stage' && isOver && isStageOf(span, late) && span.endMs > (stage?.endMs ?? fromMs)) stage = span;
  }
  let untilMs = toMs;
  // Code awaits one after the other. Of waits at the same time the one that ended last held the call up.
  for (const wait of waits.toReversed()) {
    if (wait.startMs >= untilMs) continue;
    const awaited = wait.awaited && streams.at(wait.awaited);
    // The operation ran, so the host could not go on. Later, something else of the thread may have been in the way.
    const ranMs = Math.min(Math.max(awaited?.endMs ?? fromMs, fromMs), untilMs);
    found.push(part('await', 4, wait, fromMs, ranMs), part('await', 2, wait, fromMs, untilMs));
    untilMs = wait.startMs;
  }
  if (stage !== undefined) found.push(part('stage', stage.name.startsWith('cpu ') ? 4.5 : 3.5, stage, fromMs, toMs));
  return found.filter(({ fromMs: start, toMs: end }) => end > start);
}

function part(reason: Reason, rank: number, span: RecordedSpan, fromMs: number, toMs: number): Candidate {
  return { reason, rank, span, fromMs: Math.max(span.startMs, fromMs), toMs: Math.min(span.endMs, toMs) };
}

/** Lanes do not wait for each other's operations. */
function isWaitOf({ awaited }: RecordedSpan, { stream }: RecordedOperation): boolean {
  return awaited === undefined || awaited.stream === stream || !(LANE.test(stream) && LANE.test(awaited.stream));
}

function isStageOf({ lane, name, device }: RecordedSpan, { stream, device: own }: RecordedOperation): boolean {
  return !DEVICE_STAGE.test(name) && device === own && stream === `lane ${lane}`;
}
