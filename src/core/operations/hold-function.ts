// Host functions that hold their stream. The channel parks the stream until `releaseHold`, so neither a thread nor a driver queue
// waits, and other streams continue.
// Thread: owner.
import { badArgument, show } from '../base/arguments.js';
import { WaitTimeoutError } from '../base/errors.js';
import { promiseOf } from '../base/promise-like.js';
import type { StreamContext } from '../device/stream-context.js';
import type { WaitNote } from '../timeline/operation-log.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { endHeld, type Held, runHeld } from '../waits/deadlock-check.js';
import { diagnoseWait } from '../waits/wait-diagnosis.js';
import { MAX_TIMEOUT_MS } from '../waits/wait.js';
import { asError, checkHost, enqueue, HostCall, type HostOptions, type MakeOperation } from './host-function.js';
import type { Operation } from './operation.js';
import { performance } from '../base/timers.js';

/** Options of `stream.hold`. A missing or bad `timeoutMs` and every other bad value is an ArgumentError of the call. */
export interface HoldOptions extends HostOptions {
  /** The longest time that the stream is held: milliseconds from the call of `fn`, at least 0 and less than 2^31. */
  readonly timeoutMs: number;
  /**
   * If it aborts before `fn` is called, `fn` is not called, the stream continues and `done` rejects with AbortError. If it aborts later,
   * the signal that `fn` got aborts too.
   */
  readonly signal?: AbortSignal;
}

/** `stream.hold`. */
export function submitHold(site: StreamContext, fn: unknown, opts: HoldOptions, make: MakeOperation): Operation {
  const { label, signal } = checkHost(fn, opts, ['label', 'signal', 'timeoutMs']);
  const { timeoutMs } = (opts ?? {}) as Partial<HoldOptions>;
  checkHoldTime(timeoutMs, 'a hold');
  const { core, timeline } = site;
  const before = timeline.here();
  const ticket = core.submit(timeline, core.encoder.hold(timeline.slot));
  return new HoldCall(site, ticket, fn as HoldFunction, signal, timeoutMs, before).begin((at) => make(at, label));
}

export type HoldFunction = (signal: AbortSignal) => unknown;

/** Throws unless the value is a time that a function may stop its stream. `whose`: in messages. */
export function checkHoldTime(timeoutMs: unknown, whose: string): asserts timeoutMs is number {
  if (typeof timeoutMs === 'number' && timeoutMs >= 0 && timeoutMs <= MAX_TIMEOUT_MS) return;
  const limits = `a number of milliseconds from 0 to ${MAX_TIMEOUT_MS}`;
  const message =
    timeoutMs === undefined
      ? `The option timeoutMs is missing: how long the hold may stop the stream, ${limits}. Example: stream.hold(fn, { timeoutMs: 5000 }).`
      : `The option timeoutMs (${show(timeoutMs)}) of ${whose} is not ${limits}.`;
  throw badArgument('timeoutMs', timeoutMs, message, MAX_TIMEOUT_MS);
}

/** A function that its stream waits for. */
export class HoldCall extends HostCall {
  readonly #fn: HoldFunction;
  readonly #timeoutMs: number;
  readonly #held: Held;
  readonly #note: WaitNote;
  readonly #controller: AbortController = new AbortController();
  #cancelTimer: (() => void) | undefined = undefined;
  #state: 'waiting' | 'running' | 'over' = 'waiting';

  constructor(site: StreamContext, ticket: number, fn: HoldFunction, signal: AbortSignal | undefined, timeoutMs: number, before: Point) {
    super(site, ticket, () => undefined, signal, before);
    const { timeline } = site;
    this.#fn = fn;
    this.#timeoutMs = timeoutMs;
    this.#held = { timeline, ticket, isOver: false };
    this.#note = timeline.log.wait(ticket, 'host', undefined, 0);
  }

  protected override expect(wait: (ticket: number, settle: () => void) => void): void {
    wait(this.ticket - 1, () => enqueue(this, this.site));
    // Wait also for the HOLD record itself, because the device may be lost before it completes.
    wait(this.ticket, () => undefined);
  }

  /** The stream passed the record although it was not released: every operation of the stream fails. */
  protected override isPassed(timeline: Timeline): boolean {
    return timeline.hasReached(this.ticket);
  }

  protected override call(): void {
    this.#state = 'running';
    this.#note.atMs = performance.now();
    const controller = this.#controller;
    const { signal } = this;
    if (signal !== undefined) this.listen(signal, () => this.#abortSignal(signal.reason));
    this.#cancelTimer = this.site.core.clock.after(this.#timeoutMs, () => this.#timeUp());
    let result: Promise<unknown>;
    try {
      result = this.context.runInAsyncScope(() => runHeld(this.#held, () => promiseOf(this.invoke(controller.signal))));
    } catch (error) {
      this.#end(asError(error));
      return;
    }
    result.then(
      () => this.#end(),
      (error: unknown) => this.#end(asError(error)),
    );
  }

  protected invoke(signal: AbortSignal): unknown {
    return this.#fn(signal);
  }

  protected override drop(): void {
    this.#state = 'over';
    this.release(this.error);
  }

  protected override lose(error: Error): void {
    if (this.#state === 'over') return;
    this.#finish();
    super.lose(error);
    // A device that is being closed runs its operations to the end, so release the stream.
    this.release(error);
    this.#abortSignal(error);
  }

  /** The function added the signal's listeners, so they are called in the function's asynchronous context. */
  #abortSignal(reason: unknown): void {
    this.context.runInAsyncScope(() => this.#controller.abort(reason));
  }

  #end(error?: Error): void {
    if (this.#state === 'over') return;
    this.#finish();
    if (error === undefined) this.settle();
    else this.fail(error);
    this.release(error);
  }

  #timeUp(): void {
    const { core, timeline } = this.site;
    const { kind = 'host', label } = this.operation ?? {};
    const { streams } = diagnoseWait([{ timeline, ticket: this.ticket }]);
    const what = `The ${kind === 'host' ? 'hold' : 'external function'}${label === undefined ? '' : ` ${label}`} of stream ${timeline.label} of device ${core.name}`;
    const message = `${what} took longer than its timeout (${this.#timeoutMs} ms); the stream continues.`;
    const facts = { device: core.name, stream: timeline.label, operation: this.operation };
    const error = new WaitTimeoutError('ERR_MILLRACE_TIMEOUT', message, this.#timeoutMs, streams, facts);
    this.#end(error);
    this.#abortSignal(error);
  }

  #finish(): void {
    this.#state = 'over';
    endHeld(this.#held);
    this.#cancelTimer?.();
    this.stopListening();
  }

  /** The stream goes on; with an error, the function failed or was not called. */
  protected release(_error?: Error): void {
    const { core, timeline } = this.site;
    if (core.lostError?.reason !== 'worker-exit') core.channel.releaseHold(timeline.slot, this.ticket);
  }
}
