// `overlapQueue`: `overlap` over the items of a queue's server. The checks of the call are here, the run is in queue-run.ts.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { isAbortSignal } from '../core/waits/abort-listeners.js';
import { checkErrorOptions, checkMilliseconds, type ErrorPolicy } from '../reactive/error-policy.js';
import type { Devices } from '../reactive/lane-pool.js';
import { checkStage } from '../reactive/stage.js';
import type { QueueSink, QueueSource } from './adapter.js';
import type { QueueOptions, QueueRetries, QueueRun, QueueStage } from './queue-options.js';
import { QueueWork } from './queue-run.js';

const NAMES = ['depth', 'streams', 'stageTimeoutMs', 'onError', 'onFailure', 'signal', 'drainOn', 'drainTimeoutMs'];
const RETRIES: QueueRetries = { retry: 4, delayMs: 1000, backoff: 2, maxDelayMs: 30_000 };

/**
 * Sends the items of a queue through a stage on lanes, as `overlap`, in as many processes as there are. Begins at once and goes on until it is drained.
 * An item is asked for only when a lane is free, and occupies the lane until its result is stored and it is acknowledged. Items of a worker that died
 * are delivered again; results are stored once for each id. Throws ArgumentError for a bad option. The closest in Python is a consumer of Celery with
 * `acks_late` and `prefetch_multiplier=1`.
 * @example
 * const run = overlapQueue(device, natsSource({ ... }), { depth: 4, drainOn: 'SIGTERM' }, resize, natsSink({ ... }));
 * await run.done;
 */
export function overlapQueue<T, R>(device: Devices, source: QueueSource<T>, stage: QueueStage<T, R>, sink: QueueSink<R>): QueueRun;
export function overlapQueue<T, R>(
  device: Devices,
  source: QueueSource<T>,
  opts: QueueOptions,
  stage: QueueStage<T, R>,
  sink: QueueSink<R>,
): QueueRun;
export function overlapQueue<T, R>(
  device: Devices,
  source: QueueSource<T>,
  ...rest: readonly [QueueStage<T, R>, QueueSink<R>] | readonly [QueueOptions, QueueStage<T, R>, QueueSink<R>]
): QueueRun {
  if (arguments.length > 5) refuseSurplus('overlapQueue', arguments, 5);
  const [opts, stage, sink] = rest.length === 2 ? [{}, ...rest] : rest;
  checkOptionNames(opts, NAMES);
  checkAdapter('source', source, 'natsSource(...) or bullmqSource(...)');
  checkStage(stage);
  checkAdapter('sink', sink, 'natsSink(...) or bullmqSink(...)');
  const { depth, streams, stageTimeoutMs, onFailure = () => undefined, signal, drainOn = [], drainTimeoutMs = 5000 } = opts;
  if (signal !== undefined && !isAbortSignal(signal))
    throw badArgument('signal', signal, `The option signal (${show(signal)}) is not an AbortSignal.`);
  if (typeof onFailure !== 'function') throw badArgument('onFailure', onFailure, `onFailure (${show(onFailure)}) is not a function.`);
  const work = new QueueWork<T, R>(device, {
    source,
    stage,
    sink,
    lanes: { ...given({ depth, streams, stageTimeoutMs }) },
    policy: checkRetries(opts.onError),
    onFailure,
    signal,
    drainOn: checkSignals(drainOn),
    drainTimeoutMs: checkMilliseconds('drainTimeoutMs', drainTimeoutMs),
  });
  const { drain, report } = work;
  return { done: work.start(), drain, report, [Symbol.asyncDispose]: async () => void (await drain()) };
}

/** The options that are not undefined. */
function given<O extends object>(opts: O): { [K in keyof O]?: Exclude<O[K], undefined> } {
  return Object.fromEntries(Object.entries(opts).filter(([, value]) => value !== undefined)) as never;
}

function checkAdapter(argument: string, value: unknown, example: string): void {
  if (typeof (value as { readonly open?: unknown } | null | undefined)?.open === 'function') return;
  throw badArgument(argument, value, `The ${argument} (${show(value)}) is no ${argument} of a queue, such as ${example}.`);
}

function checkRetries(onError: QueueOptions['onError'] = RETRIES): ErrorPolicy<unknown> {
  if (onError === 'dead-letter') return checkErrorOptions({ onError: { retry: 0 } });
  if (typeof onError === 'object' && onError !== null) {
    checkOptionNames(onError, ['retry', 'delayMs', 'backoff', 'maxDelayMs', 'when'], 'onError');
    return checkErrorOptions({ onError });
  }
  const example = '{ retry: 3, delayMs: 1000 }';
  throw badArgument('onError', onError, `onError (${show(onError)}) is neither 'dead-letter' nor a retry policy such as ${example}.`);
}

function checkSignals(value: QueueOptions['drainOn']): readonly NodeJS.Signals[] {
  const list: readonly unknown[] = Array.isArray(value) ? (value as readonly unknown[]) : [value];
  const wrong = list.find((name) => typeof name !== 'string' || !/^SIG(?!KILL|STOP)[A-Z0-9]+$/.test(name));
  if (wrong === undefined) return list as readonly NodeJS.Signals[];
  throw badArgument('drainOn', wrong, `drainOn (${show(wrong)}) is not a signal that a process can catch, such as 'SIGTERM'.`);
}
