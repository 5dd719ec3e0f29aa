// How a run treats an item whose stage fails: fail, skip or retry.
import { badArgument, checkInteger, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { UpstreamError } from '../core/base/errors.js';
import { MAX_TIMEOUT_MS } from '../core/waits/wait.js';
import { checkGiven } from './missing-option.js';

/** More attempts for an item whose stage failed. */
export interface RetryPolicy {
  /** The most attempts after the first one, per item; Infinity for no limit. */
  readonly retry: number;
  /** Milliseconds before the first retry; the lane stays with the item. Default 0. */
  readonly delayMs?: number;
  /** The factor by which the delay grows after each retry, at least 1. Default 1. */
  readonly backoff?: number;
  /** The longest delay in milliseconds. Default: no limit. */
  readonly maxDelayMs?: number;
  /** Whether to try again after this error; `attempt` is 1 for the first one. Default: always. */
  readonly when?: (error: unknown, attempt: number) => boolean;
  /** What happens when no attempt is left or `when` says no. Default 'fail'. */
  readonly then?: 'fail' | 'skip';
}

/** An item that was skipped: it gave no result, and the run continues. */
export interface Skipped<T> {
  /** The item. */
  readonly item: T;
  /** 'error': its stage failed. 'overflow': it came while no lane was free, and `overflow` dropped it. */
  readonly reason: 'error' | 'overflow';
  /** With 'error': the error of its last attempt. */
  readonly error?: unknown;
}

/** How errors and slow stages of a run are handled. */
export interface ErrorOptions<T = unknown> {
  /**
   * 'fail' (default): the first failure ends the run with its error. 'skip': the item gives no further results, and `onSkip` is called. A
   * `RetryPolicy` tries again first. A lost or closed device always ends the run.
   */
  readonly onError?: 'fail' | 'skip' | RetryPolicy;
  /** Called for each item that was skipped or dropped. An error that it throws ends the run. */
  readonly onSkip?: (skipped: Skipped<T>) => void;
  /**
   * Milliseconds after which an attempt that has not settled fails with a WaitTimeoutError. Its `lane.signal` aborts and its lane takes
   * the next item; its arrays are disposed when it settles. Default: no limit, so a stage that never settles holds up the end of the run.
   */
  readonly stageTimeoutMs?: number;
}

export interface ErrorPolicy<T> {
  /** Attempts after the first one. */
  readonly retries: number;
  readonly delayMs: (attempt: number) => number;
  readonly when: (error: unknown, attempt: number) => boolean;
  readonly isSkipping: boolean;
  readonly onSkip: (skipped: Skipped<T>) => void;
  readonly stageTimeoutMs: number | undefined;
}

export function checkErrorOptions<T>({ onError = 'fail', onSkip, stageTimeoutMs }: ErrorOptions<T>): ErrorPolicy<T> {
  if (stageTimeoutMs !== undefined) checkMilliseconds('stageTimeoutMs', stageTimeoutMs);
  if (onSkip !== undefined && typeof onSkip !== 'function')
    throw badArgument('onSkip', onSkip, `onSkip (${show(onSkip)}) is not a function.`);
  const common = { onSkip: onSkip ?? (() => undefined), stageTimeoutMs };
  if (onError === 'fail' || onError === 'skip')
    return { ...common, retries: 0, delayMs: () => 0, when: () => true, isSkipping: onError === 'skip' };
  if (typeof onError !== 'object' || onError === null)
    throw badArgument(
      'onError',
      onError,
      `onError (${show(onError)}) is neither 'fail', 'skip' nor a retry policy such as { retry: 3, delayMs: 100 }.`,
    );
  checkOptionNames(onError, ['retry', 'delayMs', 'backoff', 'maxDelayMs', 'when', 'then'], 'onError');
  const { retry, delayMs = 0, backoff = 1, maxDelayMs = MAX_TIMEOUT_MS, when = () => true, then = 'fail' } = onError;
  const example = "onError: { retry: 3, delayMs: 100, then: 'skip' }";
  checkGiven(
    'onError.retry',
    retry,
    'the largest number of attempts after the first one, a whole number of at least 0, or Infinity',
    example,
  );
  const retries = retry === Number.POSITIVE_INFINITY ? retry : checkInteger('onError.retry', retry, 0);
  checkMilliseconds('onError.delayMs', delayMs);
  checkMilliseconds('onError.maxDelayMs', maxDelayMs);
  if (!(typeof backoff === 'number' && backoff >= 1))
    throw badArgument('onError.backoff', backoff, `onError.backoff (${show(backoff)}) is not a number of at least 1.`, 1);
  if (typeof when !== 'function') throw badArgument('onError.when', when, `onError.when (${show(when)}) is not a function.`);
  if (then !== 'fail' && then !== 'skip')
    throw badArgument('onError.then', then, `onError.then (${show(then)}) is neither 'fail' nor 'skip'.`);
  const delayOf = (attempt: number): number => Math.min(delayMs * backoff ** (attempt - 1), maxDelayMs);
  return { ...common, retries, delayMs: delayOf, when, isSkipping: then === 'skip' };
}

export function checkMilliseconds(argument: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0 && value <= MAX_TIMEOUT_MS) return value;
  const message = `${argument} (${show(value)}) is not a number of milliseconds from 0 to ${MAX_TIMEOUT_MS}.`;
  throw badArgument(argument, value, message, typeof value === 'number' && value > MAX_TIMEOUT_MS ? MAX_TIMEOUT_MS : 0);
}

/** The first failure behind an UpstreamError; any other error itself. */
export function firstCause(error: unknown): unknown {
  let cause = error;
  while (cause instanceof UpstreamError) ({ cause } = cause);
  return cause;
}
