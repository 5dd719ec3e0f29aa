// `overlap`: items go through a stage on N lanes at once, and the source is pulled only when a lane is free.
//
// It is what `mergeMap(stage, N)` looks like and is not: that takes everything from its source at once and keeps it in
// memory. Here a slow stage holds the source, and (iterating) a slow consumer holds the stage.
import { show } from '../core/base/arguments.js';
import type { Observable } from 'rxjs';
import { ArgumentError } from '../core/base/errors.js';
import type { Device } from '../core/api/device.js';
import type { Stream } from '../core/api/stream.js';
import { openSimd, type Lane } from './lane.js';
import { Meter, type Resource } from './meter.js';
import { observable, type Sink } from './observe.js';
import { OverlapRun } from './overlap-run.js';

/** What a stage returns: a promise or an Observable. Arrays and strings, which RxJS would flatten silently, are not accepted. */
export type Staged<R> = PromiseLike<R> | Observable<R>;
/**
 * Processes one item on a lane; its result or results are emitted when it has succeeded. If it returns neither a promise nor an
 * Observable, the run fails with an ArgumentError.
 */
export type Stage<T, R> = (item: T, lane: Lane) => Staged<R>;
/** The items, pulled one at a time. `return()` is called if the run ends early. */
export type Source<T> = Iterable<T> | AsyncIterable<T> | ReadableStream<T>;

/** How many items are in flight, on which streams, and what a failure does. */
export interface LaneOptions {
  /** Items in flight, 1 to 1024. Default: the number of `streams`, or 3 without them. */
  readonly depth?: number;
  /** Streams for the lanes to use in turn; the run leaves them open. Default: every lane creates its own. */
  readonly streams?: readonly Stream[];
  /** Ends the run with an AbortError, after the running stages have settled. */
  readonly signal?: AbortSignal;
  /**
   * 'fail' (default): the first failure ends the run with its error. 'skip': the item is left out. `retry`: up to so many more attempts
   * per item, then it fails. A lost or closed device always ends the run.
   */
  readonly onError?: 'fail' | 'skip' | { readonly retry: number };
}

/** Options of `overlap`: those of its lanes, and the order of the results. */
export interface OverlapOptions extends LaneOptions {
  /** True (default): results in the order of the source. False: as they are ready. */
  readonly ordered?: boolean;
}

/** How a run went, up to now or to its end. */
export interface OverlapReport {
  /** Items whose stage succeeded. */
  readonly items: number;
  /** Items left out by `onError: 'skip'`. */
  readonly skipped: number;
  /** The number of lanes. */
  readonly depth: number;
  /** What the others waited for longest: the 'source', the 'stage' (all lanes were working), or the 'consumer' of the results. */
  readonly bottleneck: Resource | 'none';
  /** The part of the run, from 0 to 1, in which the bottleneck was busy: 1 if it never waited itself. */
  readonly overlapOfIdeal: number;
}

/**
 * The results of `overlap`. Subscribing pushes: a result is emitted as soon as it is there. Iterating pulls: a lane is freed only when
 * its result was taken and the next one requested, so a slow consumer holds back the source.
 *
 * Nothing runs before one of the two. Each subscription or iteration is a separate run with separate lanes.
 */
export interface Overlapped<R> extends Observable<R>, AsyncIterable<R> {
  /** The report of the run started last. */
  readonly report: () => OverlapReport;
}

const DEFAULT_DEPTH = 3;
/** Each lane holds a stream and arrays; more than this is a mistake for a queue length. */
const MAX_DEPTH = 1024;

const NO_RUN = { bottleneck: 'none', share: 0 } as const;

/**
 * Sends items through a stage on `depth` lanes at once, so that copies and kernels of different items overlap: multi-buffering by hand in
 * CUDA and CuPy, a bounded `mergeMap` that pulls in RxJS. Throws ArgumentError for a bad option or source, UnavailableError without rxjs.
 * A run ends with the first error of its source, a stage or a lane's stream, or with an AbortError.
 * @example for await (const result of overlap(device, files, { depth: 3 }, stage)) save(result);
 */
export function overlap<T, R>(device: Device, source: Source<T>, opts: OverlapOptions, stage: Stage<T, R>): Overlapped<R> {
  const depth = checkCount('depth', opts.depth ?? opts.streams?.length ?? DEFAULT_DEPTH, 1, MAX_DEPTH);
  const { onError = 'fail' } = opts;
  const retries = typeof onError === 'object' ? checkCount('onError.retry', onError.retry, 0, Number.MAX_SAFE_INTEGER) : 0;
  const pulled = checkSource<T>(source);
  let last: { readonly run: OverlapRun<T, R>; readonly meter: Meter } | undefined;

  function start(): OverlapRun<T, R> {
    const meter = new Meter();
    const settings = {
      device,
      source: pulled,
      stage,
      isOrdered: opts.ordered ?? true,
      signal: opts.signal,
      retries,
      isSkipping: onError === 'skip',
      meter,
    };
    const run = new OverlapRun<T, R>(settings, () => openSimd(device, depth, opts.streams));
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
      report: (): OverlapReport => {
        const { bottleneck, share } = last?.meter.summary() ?? NO_RUN;
        return { items: last?.run.itemCount ?? 0, skipped: last?.run.skippedCount ?? 0, depth, bottleneck, overlapOfIdeal: share };
      },
    },
  );
}

/** A run, whatever its items are. */
type Results<R> = Pick<OverlapRun<never, R>, 'next' | 'close'>;

async function push<R>(run: Results<R>, sink: Sink<R>): Promise<void> {
  try {
    for (let result = await run.next(); !result.done; result = await run.next()) sink.next(result.value);
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

function checkCount(argument: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new ArgumentError('ERR_MILLRACE_ARGUMENT', `${argument} (${show(value)}) is not a whole number from ${least} to ${most}.`, {
    argument,
    value,
    limit: value < least ? least : most,
  });
}

function checkSource<T>(source: Source<T>): Iterable<T> | AsyncIterable<T> {
  const value: unknown = source;
  if (typeof value === 'string' || (typeof value === 'object' && value !== null)) {
    if (Symbol.asyncIterator in Object(value) || Symbol.iterator in Object(value)) return value as Iterable<T> | AsyncIterable<T>;
  }
  throw new ArgumentError('ERR_MILLRACE_ARGUMENT', 'The source is neither iterable nor async iterable.', { argument: 'source', value });
}
