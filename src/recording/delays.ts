// Why an operation began when it did: the time before it, cut into parts with one reason each. It walks back from the operation. What held it
// up last is the reason, up to the time at which that began; then the walk goes on from there.
import type { WaitCause } from '../core/base/snapshots.js';
import type { Delay } from './delay.js';
import type { Reason } from './explained.js';
import { hostDelays } from './host-delays.js';
import type { Parked, RecordedOperation } from './recorded.js';
import { hasRun, lastIssued, type Ran, type RecordedStreams } from './recorded-streams.js';

const OF_CAUSE: Readonly<Record<WaitCause, Reason>> = { event: 'event', stream: 'stream', array: 'array', host: 'hold' };
/** Parts that are shorter are rounding. */
const LEAST_MS = 1e-4;
/** The label of `device.stream`. */
export const DEFAULT_STREAM = 'default';

export class Delays {
  readonly #streams: RecordedStreams;

  constructor(streams: RecordedStreams) {
    this.#streams = streams;
  }

  /** The parts of a time that ended when the operation began, or that its stream was not held up: the latest first. */
  of(operation: RecordedOperation, fromMs: number, toMs: number): Delay[] {
    const found: Delay[] = [];
    let [late, untilMs]: [RecordedOperation | undefined, number] = [operation, toMs];
    // Waits are told of the operation that they are for.
    let subject = operation;
    while (late !== undefined && untilMs > fromMs) {
      const before = this.#streams.before(late);
      const ended = before && endOf(before);
      const sinceMs = Math.max(fromMs, Math.min(untilMs, ended ?? fromMs));
      if (late.kind !== 'wait') subject = late;
      found.push(...this.#own(late, subject, sinceMs, untilMs));
      if (before === undefined) break;
      untilMs = Math.min(untilMs, sinceMs);
      const beganMs = Math.max(fromMs, Math.min(untilMs, before.startMs ?? untilMs));
      found.push(...this.#running(before, subject, beganMs, untilMs));
      untilMs = beganMs;
      late = before;
    }
    return found.filter(({ fromMs: start, toMs: end }) => end - start > LEAST_MS);
  }

  /**
   * When a GPU began an operation whose stream had come to it before. A copy takes an engine, and a kernel needs room: the one that came
   * first has it until it ends.
   */
  beganMs(operation: Ran): { readonly ms: number; readonly because?: Ran } {
    let because: Ran | undefined;
    // A CPU device tells when a thread took it.
    if (!this.#isOfGpu(operation)) return { ms: operation.startMs };
    for (const other of this.#rivals(operation, operation.startMs, operation.endMs)) {
      const isFirst = other.startMs < operation.startMs && other.endMs < operation.endMs;
      if (isFirst && other.endMs > (because?.endMs ?? operation.startMs)) because = other;
    }
    return because === undefined ? { ms: operation.startMs } : { ms: because.endMs, because };
  }

  /** The time in which an operation before the late one was on the device. */
  #running(before: RecordedOperation, late: RecordedOperation, fromMs: number, toMs: number): Delay[] {
    switch (before.kind) {
      case 'wait':
        return this.#waiting(before, late, fromMs, toMs);
      case 'alloc':
      case 'free':
        return [{ reason: 'memory', fromMs, toMs, late, because: before }];
      case 'host':
        return [{ reason: 'hold', fromMs, toMs, late, because: before }];
      default:
        return [{ reason: before.stream === DEFAULT_STREAM ? 'default-stream' : 'order', fromMs, toMs, late, because: before }];
    }
  }

  /** The time in which the stream was free, and the operation did not begin. */
  #own(late: RecordedOperation, subject: RecordedOperation, fromMs: number, toMs: number): Delay[] {
    const calledMs = clamp(late.submittedMs ?? fromMs, fromMs, toMs);
    const called = hostDelays(this.#streams, subject, fromMs, calledMs);
    if (late.kind === 'wait') return [...this.#waiting(late, subject, calledMs, toMs), ...called];
    const issuedMs = clamp(late.issuedMs ?? toMs, calledMs, toMs);
    return [...this.#ready(late, issuedMs, toMs), ...this.#parked(late, calledMs, issuedMs), ...called];
  }

  /** The stream waited for another one. When that had come so far, it took a moment to go on. */
  #waiting(wait: RecordedOperation, late: RecordedOperation, fromMs: number, toMs: number): Delay[] {
    const { after } = wait;
    const because = after && this.#streams.at(after);
    const reason = after === undefined ? 'event' : OF_CAUSE[after.cause];
    const overMs = clamp(because?.endMs ?? toMs, fromMs, toMs);
    return [
      { reason: 'latency', fromMs: overMs, toMs, late },
      { reason, fromMs, toMs: overMs, late, wait, because },
    ];
  }

  /** The driver did not have it yet. */
  #parked(late: RecordedOperation, fromMs: number, toMs: number): Delay[] {
    const found: Delay[] = [];
    let untilMs = toMs;
    for (const { reason, fromMs: since } of (late.parked ?? []).toReversed()) {
      const start = clamp(since, fromMs, untilMs);
      found.push({ ...this.#reasonOf(reason, late), fromMs: start, toMs: untilMs, late });
      untilMs = start;
    }
    found.push({ reason: 'issue', fromMs, toMs: untilMs, late, because: this.#issuedBefore(late) });
    return found;
  }

  #reasonOf(parked: Parked['reason'], { kind, after }: RecordedOperation): Pick<Delay, 'reason' | 'because'> {
    switch (parked) {
      case 'host':
        return { reason: 'hold' };
      case 'transfer':
        return { reason: kind === 'copy' ? 'pageable' : kind === 'graph' || kind === 'upload-graph' ? 'graph' : 'memory' };
      case 'compile':
        return { reason: kind === 'graph' || kind === 'upload-graph' ? 'graph' : 'compile' };
      case 'array':
      case 'event':
      case 'stream':
        return { reason: 'stream', because: after && this.#streams.at(after) };
      default:
        return { reason: parked };
    }
  }

  /** The operation of another stream that the device's thread was busy with. */
  #issuedBefore({ device, slot, issuedMs = Infinity, submittedMs = 0 }: RecordedOperation): RecordedOperation | undefined {
    let latest: RecordedOperation | undefined;
    for (const stream of this.#streams.streams) {
      if (stream.device.name !== device || stream.operations[0]?.slot === slot) continue;
      const other = lastIssued(stream.operations, issuedMs);
      if (other !== undefined && (other.issuedMs as number) > Math.max(submittedMs, latest?.issuedMs ?? 0)) latest = other;
    }
    return latest;
  }

  /** The driver had it, and its stream was free. */
  #ready(late: RecordedOperation, fromMs: number, toMs: number): Delay[] {
    const found: Delay[] = [];
    let atMs = fromMs;
    if (toMs - fromMs > LEAST_MS) {
      for (const other of this.#rivals(late, fromMs, toMs).toSorted((a, b) => a.startMs - b.startMs)) {
        const [start, end] = [clamp(other.startMs, atMs, toMs), clamp(other.endMs, atMs, toMs)];
        if (end === start) continue;
        found.push({ reason: 'latency', fromMs: atMs, toMs: start, late });
        found.push({
          reason: late.kind === 'copy' && other.kind === 'copy' && this.#isOfGpu(late) ? 'copy-engine' : 'device-busy',
          fromMs: start,
          toMs: end,
          late,
          because: other,
        });
        atMs = end;
      }
    }
    found.push({ reason: 'latency', fromMs: atMs, toMs, late });
    return found;
  }

  #isOfGpu(operation: RecordedOperation): boolean {
    return this.#streams.of(operation)?.device.isGpu ?? false;
  }

  /** What takes the part of the device that the operation needs. */
  #rivals(operation: RecordedOperation, fromMs: number, toMs: number): Ran[] {
    const device = this.#streams.of(operation)?.device;
    const others = this.#streams.otherWork(operation, fromMs, toMs);
    if (device?.isGpu !== true) return others;
    const { direction, kind } = operation;
    const isOfEngine = direction === 'upload' || direction === 'download';
    return others.filter((other) =>
      isOfEngine ? other.direction === direction : kind !== 'copy' && (other.threads ?? 0) >= device.threads,
    );
  }
}

function endOf(operation: RecordedOperation): number | undefined {
  return hasRun(operation) ? operation.endMs : operation.issuedMs;
}

export function clamp(ms: number, fromMs: number, toMs: number): number {
  return Math.min(Math.max(ms, fromMs), toMs);
}
