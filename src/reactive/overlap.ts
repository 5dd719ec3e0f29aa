// `overlap`: items go through a stage on N lanes at once, and the source is pulled only when a lane is free.
//
// RxJS's `mergeMap(stage, N)` takes all values from its source at once and keeps them in memory. Here a slow stage holds back
// the source, and a slow consumer that iterates holds back the stage.
import type { Observable, OperatorFunction } from 'rxjs';
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import type { Stream } from '../core/api/stream.js';
import { isAbortSignal } from '../core/waits/abort-listeners.js';
import { checkErrorOptions, type ErrorOptions } from './error-policy.js';
import { Meter, type StageReport } from './meter.js';
import { checkOptionsGiven } from './missing-option.js';
import { observable, type Sink } from './observe.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { OVERLAP_OPTIONS } from './option-names.js';
import { type ItemCounts, OverlapRun } from './overlap-run.js';
import { checkLayout, type Devices } from './lane-pool.js';
import { checkSource, type OverflowOptions, type PushSource, type Source } from './sources.js';
import { checkStage, type Stage } from './stage.js';

/** Options of lanes: how many items are in flight, on which streams, and what happens on errors. */
export interface LaneOptions<T = unknown> extends ErrorOptions<T> {
  /**
   * Items in flight on each device, 1 to 1024. 'auto' starts with 3 lanes and adds more while all are occupied and the throughput grows.
   * Default: the number of `streams`, or 3 without them.
   */
  readonly depth?: number | 'auto';
  /** Streams for the lanes to use in turn; they stay open. Default: every lane creates its own. */
  readonly streams?: readonly Stream[];
}

/** Options of `overlap`. Bad values are an ArgumentError of the call. */
export interface OverlapOptions<T = unknown> extends LaneOptions<T> {
  /** True (default): results in the order of the source. False: as they are ready. */
  readonly ordered?: boolean;
  /** Ends the run with an AbortError, after the running stages have settled. */
  readonly signal?: AbortSignal;
}

/** What a run has done until now or until its end. */
export interface OverlapReport extends Readonly<ItemCounts> {
  /** Items whose stage succeeded. */
  readonly items: number;
  /** Items whose stage failed and that `onError` skipped. */
  readonly skipped: number;
  /** Values that `overflow` dropped. */
  readonly dropped: number;
  /** Attempts after the first one, of all items. */
  readonly retried: number;
  /** The number of lanes, over all devices. */
  readonly depth: number;
  /** How long the run took, or has taken so far, in milliseconds. */
  readonly wallMs: number;
  /** How busy each part of the run was. */
  readonly stages: readonly StageReport[];
  /** The busiest part by name; 'lanes' when all lanes were occupied by work that nothing measured; 'none' before the first run. */
  readonly bottleneck: string;
  /** The `busyShare` of the bottleneck. At 1 it never waits, so more lanes do not make the run faster. */
  readonly bottleneckBusy: number;
}

/**
 * The results of `overlap`. A subscriber gets each result as soon as it is ready. An iteration takes results: a lane is freed only when its
 * result was taken and the next one requested, so a slow consumer holds back the source.
 *
 * Nothing runs before a subscription or an iteration. Each of them is a separate run with its own lanes.
 */
export interface Overlapped<R> extends Observable<R>, AsyncIterable<R> {
  /** The report of the run that was started last. */
  readonly report: () => OverlapReport;
}

/**
 * Sends items through a stage on `depth` lanes at once, so that copies and kernels of different items overlap: multi-buffering by hand in
 * CUDA and CuPy, a bounded `mergeMap` that pulls in RxJS. With several devices, the device with the fewest items takes the next one, and
 * results keep the order of the source. An Observable as source needs `overflow`. Throws ArgumentError for a bad option or source,
 * UnavailableError without rxjs. A run ends with the first error of its source or of a stage, or with an AbortError; instead of an
 * UpstreamError it reports the error's `cause`. On a closed device the run fails with a StateError when it starts.
 * @example for await (const result of overlap(device, files, { depth: 3 }, stage)) save(result);
 */
export function overlap<T, R>(device: Devices, source: Source<T>, stage: Stage<T, R>): Overlapped<R>;
export function overlap<T, R>(
  device: Devices,
  source: PushSource<T>,
  opts: OverlapOptions<T> & OverflowOptions,
  stage: Stage<T, R>,
): Overlapped<R>;
export function overlap<T, R>(device: Devices, source: Source<T>, opts: OverlapOptions<T>, stage: Stage<T, R>): Overlapped<R>;
export function overlap<T, R>(
  device: Devices,
  source: Source<T> | PushSource<T>,
  ...rest: readonly [Stage<T, R>] | readonly [OverlapOptions<T> & Partial<OverflowOptions>, Stage<T, R>]
): Overlapped<R> {
  const [opts, stage] = rest.length === 1 ? [{}, rest[0]] : rest;
  checkOptionNames(opts, OVERLAP_OPTIONS);
  const { signal, ordered = true } = opts;
  if (signal !== undefined && !isAbortSignal(signal))
    throw badArgument('signal', signal, `The option signal (${show(signal)}) is not an AbortSignal${signalHint(signal)}.`);
  checkStage(stage);
  const layout = checkLayout(device, opts.depth, opts.streams);
  const policy = checkErrorOptions<T>(opts);
  const open = checkSource<T>(source, opts);
  let last: { readonly run: OverlapRun<T, R>; readonly meter: Meter } | undefined;

  function start(): OverlapRun<T, R> {
    const meter = new Meter(layout.clock.now);
    const run = new OverlapRun<T, R>({ source: open, layout, stage, policy, isOrdered: ordered, signal, meter });
    last = { run, meter };
    return run;
  }

  return Object.assign(
    observable<R>((sink) => {
      const run = start();
      void push(run, sink);
      return () => void run.close().catch(() => undefined);
    }),
    {
      [Symbol.asyncIterator]: () => iterate(start()),
      report: (): OverlapReport =>
        reportOf(
          last?.meter ?? new Meter(layout.clock.now),
          last?.run.counts ?? NOTHING,
          last?.run.depth ?? layout.depth * layout.devices.length,
        ),
    },
  );
}

/**
 * `overlap` in a pipe: each value of the source Observable goes through the stage on one of the lanes. `overflow` says what happens to
 * values that come while every lane is occupied. Throws as `overlap` does.
 * @example frames$.pipe(overlapMap(device, { overflow: 'latest' }, stage)).subscribe(show);
 */
export function overlapMap<T, R>(device: Devices, opts: OverlapOptions<T> & OverflowOptions, stage: Stage<T, R>): OperatorFunction<T, R> {
  if (arguments.length > 3) refuseSurplus('overlapMap', arguments, 3);
  checkOptionsGiven(opts, 'overlapMap', "overlapMap(device, { overflow: 'latest' }, stage)");
  // Check the options when the operator is made.
  const nothing = observable<T>(() => () => undefined);
  overlap(device, nothing, opts, stage);
  return (source) => overlap(device, source, opts, stage);
}

function signalHint(value: unknown): string {
  return isAbortSignal((value as { readonly signal?: unknown } | null)?.signal) ? ': pass its signal' : '';
}

const NOTHING: ItemCounts = { items: 0, skipped: 0, dropped: 0, retried: 0 };

export function reportOf(meter: Meter, counts: ItemCounts, depth: number): OverlapReport {
  const { name, busyShare } = meter.bottleneck();
  return { ...counts, depth, wallMs: meter.wallMs, stages: meter.stages(), bottleneck: name, bottleneckBusy: busyShare };
}

/** The part of a run that does not depend on the type of its items. */
type Results<R> = Pick<OverlapRun<never, R>, 'next' | 'discardLast' | 'close'>;

async function push<R>(run: Results<R>, sink: Sink<R>): Promise<void> {
  try {
    for (let result = await run.next(); !result.done; result = await run.next()) {
      if (sink.closed) run.discardLast();
      else sink.next(result.value);
    }
    sink.complete();
  } catch (error) {
    sink.error(error);
  }
}

function iterate<R>(run: Results<R>): AsyncIterator<R, undefined> {
  return {
    next: () => run.next(),
    return: async () => {
      await run.close();
      return { done: true, value: undefined };
    },
  };
}
