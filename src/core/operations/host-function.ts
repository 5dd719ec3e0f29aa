// Host functions in a stream. The stream does not wait for them; hold-function.ts has those that hold it.
//
// Each function is called on a separate turn of the event loop, so that the reactions of all earlier promises of the stream have run.
// Promises of later operations wait for it: it is a HostCompletion, like the last part of a copy to an ordinary array. It runs in
// the asynchronous context of the call that submitted it.
// Thread: owner.
import { AsyncResource } from 'node:async_hooks';
import { types } from 'node:util';
import { badArgument, show } from '../base/arguments.js';
import { AbortError, type ArgumentError, MillraceError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-names.js';
import { isPromiseLike, promiseOf } from '../base/promise-like.js';
import type { StreamContext } from '../device/stream-context.js';
import type { FailurePage } from '../timeline/failed-tickets.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { onAbort } from '../waits/abort-listeners.js';
import { HostCompletion } from '../waits/host-completion.js';
import { noteObserved } from '../waits/host-observed.js';
import { checkWaitOptions } from '../waits/wait.js';
import type { LaunchCalls } from './launch-calls.js';
import type { Operation } from './operation.js';
import { setImmediate } from '../base/timers.js';

/** Options of `stream.host`. Bad values are an ArgumentError of the call. */
export interface HostOptions {
  /** The name of the operation in messages and in `device.inspect()`. */
  readonly label?: string;
  /** If it aborts before `fn` is called, `fn` is not called and `done` rejects with AbortError. */
  readonly signal?: AbortSignal;
}

/** What the function of `stream.host` may return: anything but a promise. For a promise, this type is a text that says what to do. */
export type HostResult<R> = R extends PromiseLike<unknown> ? 'host does not wait for promises: use stream.hold, or return nothing' : R;

export type MakeOperation = (ticket: number, label: string | undefined) => Operation;

/** `stream.host`. `launch`: the launch of the graph whose function it is. */
export function submitHost(
  site: StreamContext,
  fn: unknown,
  opts: HostOptions | undefined,
  make: MakeOperation,
  launch?: LaunchCalls,
): Operation {
  const { label, signal } = checkHostCall(fn, opts);
  const { core, timeline } = site;
  const ticket = core.submit(timeline, core.encoder.nop(timeline.slot));
  const call = new HostCall(site, ticket, fn as () => unknown, signal);
  launch?.add(call);
  return call.begin((at) => make(at, label));
}

/** Checks the arguments of `stream.host`. */
export function checkHostCall(fn: unknown, opts: HostOptions | undefined): HostOptions {
  const checked = checkHost(fn, opts, ['label', 'signal']);
  if (types.isAsyncFunction(fn)) throw awaitsNothing(fn, 'The function given to host is async');
  return checked;
}

/** The error for a promise that nothing would wait for. */
function awaitsNothing(fn: unknown, what: string): ArgumentError {
  const cure = 'use stream.hold(fn, { timeoutMs }), which stops the stream until the promise has settled';
  return badArgument('fn', fn, `${what}, but host does not wait for promises: ${cure}, or return nothing.`);
}

/** Checks the function and its options, `known` by their names. The options are read once, before anything is submitted. */
export function checkHost(fn: unknown, opts: HostOptions | undefined, known: readonly string[]): HostOptions {
  if (typeof fn !== 'function') throw badArgument('fn', fn, `The host function (${show(fn)}) is not a function.`);
  if (opts === undefined) return {};
  checkOptionNames(opts, known);
  const { label, signal } = opts;
  if (label !== undefined && typeof label !== 'string') throw badArgument('label', label, `The label (${show(label)}) is not a string.`);
  if (signal !== undefined) checkWaitOptions({ signal });
  return { ...(label !== undefined && { label }), ...(signal !== undefined && { signal }) };
}

/** A host function at a point of a stream. It is settled when the function has returned or will not be called. */
export class HostCall extends HostCompletion {
  protected readonly site: StreamContext;
  /** The submitter's asynchronous context. */
  protected readonly context: AsyncResource = new AsyncResource('MILLRACE_HOST');
  protected readonly signal: AbortSignal | undefined;
  protected operation: Operation | undefined = undefined;
  readonly #fn: () => unknown;
  readonly #page: FailurePage | undefined;
  /** The point before the function. The call tells user code that everything up to it has finished. */
  readonly #before: Point;
  readonly #cancel: AbortController | undefined;
  #stopListening: (() => void) | undefined = undefined;
  #withdrawals: (() => void)[] = [];

  constructor(
    site: StreamContext,
    ticket: number,
    fn: () => unknown,
    signal: AbortSignal | undefined,
    before: Point = site.timeline.here(),
  ) {
    super(ticket);
    this.site = site;
    this.#before = before;
    this.signal = signal;
    this.#fn = fn;
    this.#page = site.timeline.failurePage(ticket);
    // A separate controller, because the caller's signal may abort only until the function is called.
    this.#cancel = signal && new AbortController();
    this.givenUp = this.#cancel?.signal;
  }

  begin(make: (ticket: number) => Operation): Operation {
    const { core, timeline } = this.site;
    const { signal } = this;
    core.hostCompletions.expect(timeline, this);
    this.operation = make(this.ticket).moves(this);
    this.expect(this.#wait.bind(this));
    if (signal?.aborted) this.#abort(signal);
    else if (signal !== undefined) this.listen(signal, () => this.#abort(signal));
    return this.operation;
  }

  /** Calls the function: everything before it has finished and its bytes have reached the host. */
  run(): void {
    if (this.isSettled) return;
    this.stopListening();
    const { core, timeline } = this.site;
    // The stream reached it, but the device was lost before the call.
    if (core.lostError !== undefined) this.settle(core.lostError);
    else if (this.isPassed(timeline)) this.settle();
    else {
      noteObserved(this.#before);
      this.call();
    }
  }

  /** Whether the device passed it by without reaching it. Then the failure of its ticket is reported. */
  protected isPassed(timeline: Timeline): boolean {
    timeline.noteFailures(this.ticket);
    return this.#page?.at(this.ticket) !== undefined;
  }

  protected expect(wait: (ticket: number, settle: () => void) => void): void {
    wait(this.ticket, () => enqueue(this, this.site));
  }

  protected call(): void {
    let result: Promise<unknown> | undefined;
    try {
      // The result is user code, too: read and call its `then` in the same asynchronous context.
      result = this.context.runInAsyncScope(() => {
        const value = this.#fn();
        return isPromiseLike(value) ? promiseOf(value) : undefined;
      });
    } catch (error) {
      this.fail(asError(error));
      return;
    }
    if (result === undefined) return this.settle();
    this.fail(awaitsNothing(this.#fn, 'The function given to host returned a promise'));
    // Nothing waits for the promise, but its rejection is reported.
    result.then(undefined, (error: unknown) => this.#tell(asError(error), () => false));
  }

  /** Settles with an error of the function. If no code awaits `done`, the error goes to `errors$`. */
  protected fail(error: Error): void {
    this.settle(error);
    this.#tell(error, () => this.isAwaited || this.reporter?.reports(this) === true);
  }

  protected lose(_error: Error): void {
    this.stopListening();
    this.settle();
  }

  /** Called when the function will not be called. */
  protected drop(): void {}

  protected listen(signal: AbortSignal, listener: () => void): void {
    this.#stopListening = onAbort(signal, listener);
  }

  protected stopListening(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #wait(ticket: number, settle: () => void): void {
    const { core, timeline } = this.site;
    this.#withdrawals.push(core.progress.add(timeline, { ticket, keepsAlive: true, settle, lose: (error) => this.lose(error) }));
  }

  #abort(signal: AbortSignal): void {
    if (this.isSettled) return;
    this.stopListening();
    for (const withdraw of this.#withdrawals) withdraw();
    this.settle(new AbortError(signal));
    this.#cancel?.abort(signal.reason);
    this.drop();
  }

  #tell(error: Error, isAwaited: () => boolean): void {
    const { core, timeline } = this.site;
    core.failures.threw(timeline, hostError(error, this.operation as Operation), isAwaited);
  }
}

/** The pending calls of each stream. */
const queues: WeakMap<Timeline, HostCall[]> = new WeakMap();

/** Adds a call, which runs after the earlier calls of the stream. */
export function enqueue(call: HostCall, site: StreamContext): void {
  let queue = queues.get(site.timeline);
  if (queue === undefined) queues.set(site.timeline, (queue = []));
  if (queue.push(call) === 1) void runAll(queue, site);
}

async function runAll(queue: HostCall[], { core, timeline }: StreamContext): Promise<void> {
  for (let call = queue[0]; call !== undefined; call = queue[0]) {
    await core.hostCompletions.hostCompleted(timeline, call.ticket - 1);
    // Reactions to earlier promises run first, however long their promise chains are.
    await new Promise((resolve) => setImmediate(resolve));
    queue.shift();
    call.run();
  }
}

/** The error of a failed function for `errors$` and `activity$`. `done` rejects with the function's own error. */
export function hostError(error: Error, operation: Operation): MillraceError {
  if (error instanceof MillraceError) return error;
  const { kind, label, stream, device } = operation;
  const name = label === undefined ? '' : ` ${label}`;
  const whose = kind === 'graph' ? `A host function of graph${name}` : `The ${kind} function${name}`;
  const what = `${whose} on stream ${stream} of device ${device}`;
  return new MillraceError('ERR_MILLRACE_HOST', `${what} failed: ${error.message}`, { device, stream, operation, cause: error });
}

/** The thrown value if it is an Error, otherwise an Error about it: `done` always rejects with an Error. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new MillraceError('ERR_MILLRACE_HOST', `A host function threw ${show(thrown)}, which is not an Error.`, { cause: thrown });
}
