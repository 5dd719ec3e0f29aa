// `recording.explain` and `recording.gaps`.
import { badArgument } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { Delay } from './delay.js';
import { DEFAULT_STREAM, Delays } from './delays.js';
import type { Explanation, Gap, GapOptions, Reason } from './explained.js';
import type { RecordedOperation } from './recorded.js';
import { type Explainable, hasRun, RecordedStreams, type Ran } from './recorded-streams.js';
import { explanationOf, isOperation, linesOf, nameOf, remedyOf, withText } from './remedies.js';

const LEAST_GAP_MS = 0.02;
/** How far the causes of a cause are told. */
const LONGEST_CHAIN = 4;

/** An operation of the recording, or what the call that submitted it returned. */
export type Explained = RecordedOperation | { readonly id: number };

interface ExplainedGap {
  readonly gap: Gap;
  readonly delays: readonly Delay[];
}

export class Explainer {
  readonly streams: RecordedStreams;
  readonly recording: Explainable;
  readonly #delays: Delays;
  #usualGaps: readonly ExplainedGap[] | undefined;

  constructor(recording: Explainable) {
    this.recording = recording;
    this.streams = new RecordedStreams(recording);
    this.#delays = new Delays(this.streams);
  }

  /** As `Recording.explain`. */
  explain(a: Explained, b: Explained): readonly Explanation[] {
    const [first, second] = [this.#known('a', a), this.#known('b', b)].toSorted((one, other) => timeOf(one) - timeOf(other)) as [
      RecordedOperation,
      RecordedOperation,
    ];
    if (!this.#hasTimes(first) || !this.#hasTimes(second)) return this.#withoutTimes(first, second);
    const fromMs = first.startMs ?? this.recording.endMs;
    if (!hasRun(second)) return this.explained(this.#delays.of(second, fromMs, this.recording.endMs));
    const queued = this.#queued(second);
    if (hasRun(first) && (queued?.toMs ?? second.startMs) < first.endMs) return linesOf([]);
    return this.explained([...(queued ? [queued] : []), ...this.#delays.of(second, fromMs, second.startMs)]);
  }

  /** Whether both were on the device at the same time. */
  overlap(a: RecordedOperation, b: RecordedOperation): boolean {
    if (!hasRun(a) || !hasRun(b)) return false;
    return Math.max(this.#delays.beganMs(a).ms, this.#delays.beganMs(b).ms) < Math.min(a.endMs, b.endMs);
  }

  /** As `Recording.gaps`. */
  gaps(opts: GapOptions = {}): readonly Gap[] {
    return this.gapsWithDelays(opts).map(({ gap }) => gap);
  }

  gapsWithDelays(opts: GapOptions): readonly ExplainedGap[] {
    checkOptionNames(opts, ['minMs']);
    const { minMs = LEAST_GAP_MS } = opts;
    if (typeof minMs !== 'number' || !(minMs >= 0))
      throw badArgument('minMs', minMs, `The option minMs (${String(minMs)}) is not a number of at least 0.`, 0);
    if (minMs !== LEAST_GAP_MS) return this.#gapsFrom(minMs);
    this.#usualGaps ??= this.#gapsFrom(minMs);
    return this.#usualGaps;
  }

  #gapsFrom(minMs: number): readonly ExplainedGap[] {
    const found: ExplainedGap[] = [];
    for (const { device, stream, operations, work } of this.streams.streams) {
      let before: Ran | undefined;
      for (const after of work) {
        const startMs = before?.endMs ?? Math.max(this.recording.startMs, operations[0]?.submittedMs ?? after.startMs);
        const { startMs: endMs } = after;
        if (endMs - startMs >= minMs && endMs > startMs) {
          const delays = this.#delays.of(after, startMs, endMs);
          const gap = {
            device: device.name,
            stream,
            startMs,
            endMs,
            ...(before && { before }),
            after,
            explanations: this.explained(delays),
          };
          found.push({ gap, delays });
        }
        if (before === undefined || after.endMs > before.endMs) before = after;
      }
    }
    return found.toSorted((a, b) => a.gap.startMs - b.gap.startMs);
  }

  /** The parts of each gap, and of each operation that a GPU had and could not begin. */
  *losses(): Iterable<readonly Delay[]> {
    for (const { delays } of this.gapsWithDelays({})) yield delays;
    for (const { device, work } of this.streams.streams) {
      if (!device.isGpu) continue;
      for (const operation of work) {
        const queued = this.#queued(operation);
        if (queued !== undefined) yield [queued];
      }
    }
  }

  /** Parts with the same reason and cause are one explanation. */
  explained(delays: readonly Delay[]): readonly Explanation[] {
    const byReason: Map<Reason, Map<unknown, { ms: number; longest: Delay }>> = new Map();
    for (const delay of delays) {
      const ms = delay.toMs - delay.fromMs;
      let causes = byReason.get(delay.reason);
      if (causes === undefined) byReason.set(delay.reason, (causes = new Map()));
      // Of several collections the longest one is named.
      const cause = isOperation(delay.because) ? delay.because : undefined;
      const known = causes.get(cause);
      if (known === undefined) causes.set(cause, { ms, longest: delay });
      else {
        if (ms > known.longest.toMs - known.longest.fromMs) known.longest = delay;
        known.ms += ms;
      }
    }
    const costs = [...byReason.values()].flatMap((causes) => [...causes.values()]).toSorted((a, b) => b.ms - a.ms);
    return linesOf(costs.map(({ ms, longest }) => explanationOf({ ...longest, ms, chain: this.#chainOf(longest.because) })));
  }

  /** What a cause waited for in turn. */
  #chainOf(because: Delay['because']): readonly RecordedOperation[] {
    const chain: RecordedOperation[] = [];
    let cause = isOperation(because) ? because : undefined;
    while (cause !== undefined && chain.length < LONGEST_CHAIN) {
      const before = this.streams.before(cause);
      const isHeldUp = before?.kind === 'wait' && before.after !== undefined && (before.endMs ?? 0) > (before.startMs ?? 0);
      cause = isHeldUp && before.after !== undefined ? this.streams.at(before.after) : undefined;
      if (cause !== undefined) chain.push(cause);
    }
    return chain;
  }

  #queued(operation: Ran): Delay | undefined {
    const { ms: toMs, because } = this.#delays.beganMs(operation);
    if (because === undefined) return undefined;
    return { reason: operation.kind === 'copy' ? 'copy-engine' : 'device-busy', fromMs: operation.startMs, toMs, late: operation, because };
  }

  #known(name: string, operation: Explained): RecordedOperation {
    const isObject = typeof operation === 'object' && operation !== null;
    const known = isObject && ('ticket' in operation ? this.streams.at(operation) : this.#ofId(operation.id));
    if (known) return known;
    throw badArgument(
      name,
      operation,
      `The argument ${name} is no operation of this recording: take one of recording.operations, or what launch, copy and the other calls return.`,
      undefined,
    );
  }

  /** What a call submitted, which may be several records: the last one. */
  #ofId(id: number): RecordedOperation | undefined {
    // What the library adds by itself has no id.
    return typeof id === 'number' ? this.recording.operations.findLast((operation) => operation.id === id) : undefined;
  }

  #hasTimes(operation: RecordedOperation): boolean {
    return this.streams.of(operation)?.device.hasTimes ?? false;
  }

  /** What the times of the host and the order of the records tell. */
  #withoutTimes(first: RecordedOperation, second: RecordedOperation): readonly Explanation[] {
    const found: Explanation[] = [];
    const { operations = [] } = this.streams.of(second) ?? {};
    const isSameStream = this.streams.of(first) === this.streams.of(second);
    for (const wait of operations) {
      if (wait.after === undefined || wait.ticket > second.ticket || (isSameStream && wait.ticket < first.ticket)) continue;
      const because = this.streams.at(wait.after);
      if (because !== undefined)
        found.push(
          explanationOf({
            reason: wait.after.cause === 'host' ? 'hold' : wait.after.cause,
            ms: 0,
            late: wait,
            because,
            chain: this.#chainOf(because),
          }),
        );
    }
    if (isSameStream) {
      const reason = first.stream === DEFAULT_STREAM ? 'default-stream' : 'order';
      found.push(explanationOf({ reason, ms: 0, late: second, because: first, chain: [] }));
    }
    const fromMs = first.issuedMs ?? first.submittedMs;
    const toMs = second.issuedMs;
    if (fromMs !== undefined && toMs !== undefined && toMs > fromMs)
      found.unshift(...this.explained(this.#delays.of({ ...second }, fromMs, toMs)));
    const text = `The recording has no times of device ${second.device}, so what it tells of ${nameOf(second)} is what the host knows.`;
    return linesOf([...found, withText({ reason: 'unknown', ms: 0, text, remedy: remedyOf('unknown') })]);
  }
}

function timeOf({ startMs, issuedMs, submittedMs }: RecordedOperation): number {
  return startMs ?? issuedMs ?? submittedMs ?? Infinity;
}
