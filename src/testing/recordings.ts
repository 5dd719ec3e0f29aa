// What tests expect of a recorded timeline. A failure says why it is not so, and what would change it.
import { AssertionError } from 'node:assert';
import { badArgument, show } from '../core/base/arguments.js';
import { StateError } from '../core/base/errors.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { Explanation } from '../recording/explained.js';
import type { RecordedOperation } from '../recording/recorded.js';
import type { Recording } from '../recording/recording.js';

/** An operation of a recording: itself, the Operation that the call returned, or the label of one or more of them. */
export type NamedOperation = RecordedOperation | { readonly id: number } | string;

type Ran = RecordedOperation & { readonly startMs: number; readonly endMs: number };

/** How many explanations a failure has. */
const MOST_REASONS = 3;
const MOST_NAMES = 10;

/**
 * Throws an AssertionError unless both operations were on the device at the same time, for some time. With labels, one pair is enough. The
 * message has the reasons of `recording.explain`. Throws ArgumentError if the recording does not have an operation, StateError if it does not
 * have its times.
 * @example expectOverlap(recording, 'upload 2', 'blur 1');
 */
export function expectOverlap(recording: Recording, a: NamedOperation, b: NamedOperation): void {
  const operations = operationsOf(recording);
  const [as, bs] = [ranOf(operations, 'a', a), ranOf(operations, 'b', b)];
  let nearest: readonly [Ran, Ran] | undefined;
  let nearestMs = Infinity;
  for (const one of as) {
    for (const other of bs) {
      if (one === other) continue;
      const apartMs = Math.max(one.startMs, other.startMs) - Math.min(one.endMs, other.endMs);
      // A GPU may begin an operation later than its stream came to it.
      if (apartMs < 0 && recording.explain(one, other).length === 0) return;
      if (apartMs < nearestMs) [nearest, nearestMs] = [[one, other], apartMs];
    }
  }
  if (nearest === undefined) throw badArgument('b', b, `The arguments a and b (${show(b)}) name the same operation.`);
  const [one, other] = nearest;
  const reasons = told(recording.explain(one, other));
  fail(`${nameOf(one)} and ${nameOf(other)} did not run at the same time.${reasons}`, expectOverlap);
}

/**
 * Throws an AssertionError if the stream had nothing on the device for more than `maxMs` between two of its operations. The message has the
 * longest gap and its reasons. Throws ArgumentError for a stream with fewer than two operations in the recording, and for wrong options.
 * @param stream The stream, or its label.
 * @example expectNoGap(recording, stream, { maxMs: 1 });
 */
export function expectNoGap(recording: Recording, stream: string | { readonly label: string }, opts: { readonly maxMs: number }): void {
  const operations = operationsOf(recording);
  checkOptionNames(opts, ['maxMs']);
  const { maxMs } = opts ?? {};
  if (typeof maxMs !== 'number' || !(maxMs >= 0))
    throw badArgument('maxMs', maxMs, `The option maxMs (${show(maxMs)}) is not a number of at least 0.`, 0);
  const label = typeof stream === 'string' ? stream : stream?.label;
  const own = operations.filter((operation) => operation.stream === label);
  const ran = own.filter(hasRun);
  if (ran.length < 2) {
    const found =
      own.length > 0 ? `has ${ran.length} operations of stream ${show(label)} with times of the device` : `has no stream ${show(label)}`;
    const known = [...new Set(operations.map((operation) => operation.stream))];
    throw badArgument('stream', stream, `The recording ${found} (at least 2). Its streams are: ${listed(known)}.`, 2);
  }
  const gaps = recording
    .gaps({ minMs: maxMs })
    .filter((gap) => gap.stream === label && gap.before !== undefined && gap.endMs - gap.startMs > maxMs);
  const longest = gaps.toSorted((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs))[0];
  if (longest === undefined) return;
  const { startMs, endMs, after, explanations } = longest;
  const where = `before ${nameOf(after)}, for ${(endMs - startMs).toFixed(2)} ms (maxMs: ${maxMs})`;
  const count = gaps.length === 1 ? '' : `, and ${gaps.length - 1} times more`;
  fail(`Stream ${label} had nothing to do ${where}${count}.${told(explanations)}`, expectNoGap);
}

function operationsOf(recording: Recording): readonly RecordedOperation[] {
  if (typeof recording?.explain === 'function') return recording.operations;
  throw badArgument('recording', recording, `The recording (${show(recording)}) is not a result of recordTimeline.`);
}

function ranOf(operations: readonly RecordedOperation[], name: string, named: NamedOperation): readonly Ran[] {
  const found = operations.filter((operation) => {
    if (typeof named !== 'object' || named === null) return typeof named === 'string' && operation.label === named;
    if ('ticket' in named) return named.ticket === operation.ticket && named.slot === operation.slot && named.device === operation.device;
    return typeof named.id === 'number' && operation.id === named.id;
  });
  if (found.length === 0) {
    const labels = [...new Set(operations.flatMap(({ label = [] }) => label))];
    throw badArgument(name, named, `The recording has no operation ${show(named)}. Its labels are: ${listed(labels)}.`);
  }
  const ran = found.filter(hasRun);
  if (ran.length > 0) return ran;
  const [first] = found as [RecordedOperation];
  const message = `The recording has no times of ${nameOf(first)}: it has not run, or was recorded with deviceTimes: false. Await it, then recording.stop().`;
  throw new StateError('ERR_MILLRACE_STATE', message, { device: first.device });
}

function hasRun(operation: RecordedOperation): operation is Ran {
  return operation.startMs !== undefined && operation.endMs !== undefined;
}

function nameOf({ label, kind, stream }: RecordedOperation): string {
  return `${label ?? kind} on stream ${stream}`;
}

function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  return names.length > MOST_NAMES ? `${names.slice(0, MOST_NAMES).join(', ')}, and ${names.length - MOST_NAMES} more` : names.join(', ');
}

function told(explanations: readonly Explanation[]): string {
  return explanations
    .slice(0, MOST_REASONS)
    .map(({ ms, text, remedy }) => `\n  ${ms.toFixed(2)} ms: ${text}\n    ${remedy}`)
    .join('');
}

function fail(message: string, stackStartFn: (...args: never[]) => unknown): never {
  throw new AssertionError({ message, stackStartFn });
}
