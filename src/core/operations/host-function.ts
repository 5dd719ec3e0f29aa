// Functions of the caller in a stream, which are told of a place in it; hold-function.ts has those it stands still for.
//
// A function is called on a turn of the loop of its own, so that every promise of the stream that was reached before has been
// heard, and the promises of later work wait for it: it is a HostCompletion, as the bytes of a copy on their way are. It runs in the
// asynchronous context of the call that submitted it.
// Thread: owner.
import { AsyncResource } from 'node:async_hooks';
import { badArgument, show } from '../base/arguments.js';
import { AbortError, MillraceError } from '../base/errors.js';
import { isPromiseLike, promiseOf } from '../base/promise-like.js';
import type { StreamContext } from '../device/stream-context.js';
import type { FailurePage } from '../timeline/failed-tickets.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { onAbort } from '../waits/abort-listeners.js';
import { HostCompletion } from '../waits/host-completion.js';
import { see } from '../waits/host-observed.js';
import { checkWaitOptions } from '../waits/wait.js';
import type { Operation } from './operation.js';

/** Options of `stream.host`. Bad values are an ArgumentError of the call. */
export interface HostOptions {
  /** The name of the operation in messages and in `device.inspect()`. */
  readonly label?: string;
  /** If it aborts before `fn` is called, `fn` is not called and `done` rejects with AbortError. */
  readonly signal?: AbortSignal;
}

export type MakeOperation = (ticket: number, label: string | undefined) => Operation;

/** `stream.host`. */
export function submitHost(site: StreamContext, fn: unknown, opts: HostOptions | undefined, make: MakeOperation): Operation {
  const { label, signal } = checkHost(fn, opts);
  const { core, timeline } = site;
  const ticket = core.submit(timeline, core.encoder.nop(timeline.slot));
  return new HostCall(site, ticket, fn as () => unknown, signal).begin((at) => make(at, label));
}

/** Throws for what no function in a stream can be. The options are read once, before anything is submitted. */
export function checkHost(fn: unknown, opts: HostOptions | undefined): HostOptions {
  if (typeof fn !== 'function') throw badArgument('fn', fn, `The host function (${show(fn)}) is not a function.`);
  if (opts === undefined) return {};
  if (typeof opts !== 'object' || opts === null) throw badArgument('opts', opts, `The options (${show(opts)}) are not an object.`);
  const { label, signal } = opts;
  if (label !== undefined && typeof label !== 'string') throw badArgument('label', label, `The label (${show(label)}) is not a string.`);
  if (signal !== undefined) checkWaitOptions({ signal });
  return { ...(label !== undefined && { label }), ...(signal !== undefined && { signal }) };
}

/** A function of the caller at a place of a stream: settled when it has returned, or will not be called. */
export class HostCall extends HostCompletion {
  protected readonly site: StreamContext;
  /** The submitter's asynchronous context. */
  protected readonly context: AsyncResource = new AsyncResource('MILLRACE_HOST');
  protected readonly signal: AbortSignal | undefined;
  protected operation: Operation | undefined = undefined;
  readonly #fn: () => unknown;
  readonly #page: FailurePage | undefined;
  /** What has finished when it is called, and the program knows by that. */
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
    // Aborts only what has not been called, and only as long: the caller's signal goes on.
    this.#cancel = signal && new AbortController();
    this.givenUp = this.#cancel?.signal;
  }

  begin(make: (ticket: number) => Operation): Operation {
    const { core, timeline } = this.site;
    const { signal } = this;
    core.hostCompletions.expect(timeline, this);
    this.operation = make(this.ticket).moves([], this);
    this.expect(this.#wait.bind(this));
    if (signal?.aborted) this.#abort(signal);
    else if (signal !== undefined) this.listen(signal, () => this.#abort(signal));
    return this.operation;
  }

  /** The call's turn has come: everything before it has finished and its bytes have reached the host. */
  run(): void {
    if (this.isSettled) return;
    this.stopListening();
    const { core, timeline } = this.site;
    // It was reached, and the device was lost before anybody could be called.
    if (core.lostError !== undefined) this.settle(core.lostError);
    else if (this.isPassed(timeline)) this.settle();
    else {
      see(this.#before);
      this.call();
    }
  }

  /** The device will not come to it: what it was submitted for is told by its ticket. */
  protected isPassed(timeline: Timeline): boolean {
    timeline.failureLog?.note(timeline);
    return this.#page?.at(this.ticket) !== undefined;
  }

  protected expect(wait: (ticket: number, settle: () => void) => void): void {
    wait(this.ticket, () => enqueue(this, this.site));
  }

  protected call(): void {
    let result: Promise<unknown> | undefined;
    try {
      // What the function returns is the program's, too: its `then` is read and called in the same context.
      result = this.context.runInAsyncScope(() => {
        const value = this.#fn();
        return isPromiseLike(value) ? promiseOf(value) : undefined;
      });
    } catch (error) {
      this.fail(asError(error));
      return;
    }
    this.settle();
    // Nobody waits for the promise of an async function, but its failure is not lost.
    result?.then(undefined, (error: unknown) => this.#tell(asError(error), () => false));
  }

  /** Settles with an error of the function, which is told to `errors$` if nobody asks. */
  protected fail(error: Error): void {
    this.settle(error);
    this.#tell(error, () => this.isAwaited);
  }

  protected lose(_error: Error): void {
    this.stopListening();
    this.settle();
  }

  /** It will not be called. */
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
    this.#withdrawals.push(core.progress.add(timeline, { ticket, holdsLoop: true, settle, lose: (error) => this.lose(error) }));
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

/** The calls of each stream whose turn has not come. */
const queues: WeakMap<Timeline, HostCall[]> = new WeakMap();

/** Its turn comes after those before it. */
export function enqueue(call: HostCall, site: StreamContext): void {
  let queue = queues.get(site.timeline);
  if (queue === undefined) queues.set(site.timeline, (queue = []));
  if (queue.push(call) === 1) void runAll(queue, site);
}

async function runAll(queue: HostCall[], { core, timeline }: StreamContext): Promise<void> {
  for (let call = queue[0]; call !== undefined; call = queue[0]) {
    await core.hostCompletions.hostCompleted(timeline, call.ticket - 1);
    // Those who wait for what was before are heard first, however many promises they have put in between.
    await new Promise((resolve) => setImmediate(resolve));
    queue.shift();
    call.run();
  }
}

/** What `errors$` and `activity$` tell of a function that failed; `done` rejects with the very error. */
export function hostError(error: Error, operation: Operation): MillraceError {
  if (error instanceof MillraceError) return error;
  const { label, stream, device } = operation;
  const what = `The host function${label === undefined ? '' : ` ${label}`} on stream ${stream} of device ${device}`;
  return new MillraceError('ERR_MILLRACE_HOST', `${what} failed: ${error.message}`, { device, stream, operation, cause: error });
}

/** What is thrown need not be an error; `done` rejects with one. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new MillraceError('ERR_MILLRACE_HOST', `A host function threw ${show(thrown)}, which is not an Error.`, { cause: thrown });
}
