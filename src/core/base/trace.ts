// The diagnostics channels of the library: docs/observability.md lists them and their messages. Without a subscriber no message is built.
//
// Node calls subscribers in the asynchronous context of the publisher. For an operation that is the context of the call, for a
// build the context of the first call that needed the kernel, for errors and devices the context in which the device was opened.
import { type Channel as DiagnosticsChannel, channel, tracingChannel } from 'node:diagnostics_channel';
import { performance } from './timers.js';

export const operationsChannel: DiagnosticsChannel = channel('millrace:operation');
export const errorsChannel: DiagnosticsChannel = channel('millrace:error');
export const devicesChannel: DiagnosticsChannel = channel('millrace:device');
export const stagingChannel: DiagnosticsChannel = channel('millrace:staging');

/** The message of `millrace:staging`: bytes were copied between an ordinary typed array and page-locked memory. */
export interface StagingMessage {
  readonly device: string;
  readonly direction: 'from' | 'to';
  readonly bytes: number;
  /** In milliseconds of `performance.now()`. */
  readonly startMs: number;
  readonly endMs: number;
}

/** Shorter copies are not told. */
const LEAST_STAGING_MS = 0.02;

/** Tells of bytes that were copied from an ordinary typed array, or to one. */
export function tellStaging(
  direction: 'from' | 'to',
  bytes: number,
  device: string,
  startMs: number,
  endMs: number = performance.now(),
): void {
  if (endMs - startMs < LEAST_STAGING_MS || !stagingChannel.hasSubscribers) return;
  stagingChannel.publish({ device, direction, bytes, startMs, endMs } satisfies StagingMessage);
}

/** How the traced call ended: set before 'end' of a call, and before 'asyncStart' of a promise. */
export interface TracedEnd<R = unknown> {
  /** What it returned or resolved to. */
  result?: R;
  /** Why it failed. 'error' is published, too. */
  error?: unknown;
}

/** The message of `millrace:compile`: a kernel is built, or found in the cache. */
export interface CompileMessage extends TracedEnd<{ readonly compiler: string; readonly fromCache: boolean; readonly ms: number }> {
  /** The device's name, such as 'cuda:0'. */
  readonly device: string;
  /** The kernel's name. */
  readonly kernel: string;
}

/** The message of `millrace:open`: a call of `openDevice` or `openShared`. `result` is the Device. */
export interface OpenMessage extends TracedEnd {
  /** The name that the call gave: 'auto' if it gave none. */
  readonly device: string;
}

/** The message of `millrace:item`: an attempt to process an item or a batch on a lane of a pipeline. */
export interface ItemMessage extends TracedEnd {
  /** The device's name, such as 'cuda:0'. */
  readonly device: string;
  /** The lane's `index`. */
  readonly lane: number;
  /** The number of the item or batch in its pipeline, from 0 on, in the order in which lanes took them. */
  readonly item: number;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** The message of `millrace:stage`: a part of an item that `report()` names. */
export interface StageMessage extends TracedEnd {
  /** The device's name, such as 'cuda:0'. */
  readonly device: string;
  /** The lane's `index`. */
  readonly lane: number;
  /** As in `report()`: 'read', or the name that `lane.time` was given. */
  readonly name: string;
}

/** The five channels of a TracingChannel. Its class differs between versions of Node. */
export interface Trace {
  readonly start: DiagnosticsChannel;
  readonly end: DiagnosticsChannel;
  readonly asyncStart: DiagnosticsChannel;
  readonly asyncEnd: DiagnosticsChannel;
  readonly error: DiagnosticsChannel;
}

export const launchTrace: Trace = tracingChannel('millrace:launch');
export const copyTrace: Trace = tracingChannel('millrace:copy');
export const compileTrace: Trace = tracingChannel('millrace:compile');
export const openTrace: Trace = tracingChannel('millrace:open');
export const itemTrace: Trace = tracingChannel('millrace:item');
export const stageTrace: Trace = tracingChannel('millrace:stage');

/** Whether one of the channels has a subscriber. */
export function isTraced({ start, end, asyncStart, asyncEnd, error }: Trace): boolean {
  return start.hasSubscribers || end.hasSubscribers || asyncStart.hasSubscribers || asyncEnd.hasSubscribers || error.hasSubscribers;
}

/** Publishes 'start' and 'end' around a call, and 'error' if it throws. The call runs with the stores that are bound to 'start'. */
export function traceCall<R>({ start, end, error: errors }: Trace, message: TracedEnd, call: () => R): R {
  return start.runStores(message, () => {
    try {
      return call();
    } catch (error) {
      message.error = error;
      errors.publish(message);
      throw error;
    } finally {
      end.publish(message);
    }
  });
}

/** Publishes 'error' if there is one, then 'asyncStart' and 'asyncEnd'. */
export function traceEnd({ asyncStart, asyncEnd, error: errors }: Trace, message: TracedEnd): void {
  if (message.error !== undefined) errors.publish(message);
  asyncStart.publish(message);
  asyncEnd.publish(message);
}

/** Publishes what becomes of the call and of its promise. `failureOf`: why a promise that resolved has failed; undefined if it has not. */
export function tracePromise<R>(
  trace: Trace,
  message: TracedEnd,
  call: () => Promise<R>,
  failureOf: (result: R) => unknown = () => undefined,
): Promise<R> {
  return traceCall(trace, message, () =>
    call().then(
      (result) => {
        const failure = failureOf(result);
        if (failure === undefined) message.result = result;
        else message.error = failure;
        traceEnd(trace, message);
        return result;
      },
      (error: unknown) => {
        message.error = error;
        traceEnd(trace, message);
        throw error;
      },
    ),
  );
}
