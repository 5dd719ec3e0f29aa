// An operation of a stream. Every call that submits makes one, so it is small: numbers, and a promise only when `done` is read.
import { describeAs } from '../base/describe.js';
import type { CaptureReason, MillraceError } from '../base/errors.js';
import type { OperationInfo, OperationKind } from '../base/snapshots.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import type { Span } from '../events/operation-timer.js';
import type { FailurePage } from '../timeline/failed-tickets.js';
import type { FailingPart } from '../timeline/failures.js';
import type { Clock, Point, Timeline } from '../timeline/timeline.js';
import { refuseDeadlock } from '../waits/deadlock-check.js';
import type { EventLoopPart } from '../waits/host-completion.js';
import { noteObserved } from '../waits/host-observed.js';
import { checkWaitCall, type WaitOptions, withSignal } from '../waits/wait.js';
import { performance } from '../base/timers.js';

/** When an operation was submitted and finished, in milliseconds of `performance.now()`. */
export interface OperationTiming {
  /**
   * When it was submitted. On a stream without subscribers, when `done` was first read: reading the clock at each launch would cost half as
   * much as the launch.
   */
  readonly submittedAt: number;
  /** When the event loop saw that it had finished. */
  readonly finishedAt: number;
  /** How long the device worked on it, without waits: for launches, copies and fills of streams with `timing`. */
  readonly deviceMs?: number;
}

/** Whether an operation is under way, has finished, or has failed. */
export type OperationStatus = 'pending' | 'finished' | 'failed';

/** One phase of one operation, for tools. */
export interface Activity {
  /**
   * 'submitted': a call has submitted it. 'finished' and 'failed': the device has ended it and, for a host function or a copy to an
   * ordinary array, the event loop too. There is no phase for the start of an operation, because devices do not report it.
   */
  readonly phase: 'submitted' | 'finished' | 'failed';
  /** The operation that entered this phase. */
  readonly operation: Operation;
  /** When the event loop saw the phase, in milliseconds of `performance.now()`. */
  readonly atMs: number;
  /** With 'finished': as in `OperationTiming`. Absent if the stream was closed before the device reported it. */
  readonly deviceMs?: number;
  /**
   * With 'failed': what the operation's `done` rejects with. An error that is no MillraceError, as a host function may throw, is the
   * `cause` of a MillraceError with the code `ERR_MILLRACE_HOST`.
   */
  readonly error?: MillraceError;
}

/** Further parts of a copy, a host function, or a launch of a graph with host functions. */
interface Details {
  readonly hostCompletion: EventLoopPart | undefined;
  readonly parts: readonly FailingPart[] | undefined;
}

/**
 * A submitted operation: the result of `launch`, `copy`, `fill`, the waits and the host functions. It is not thenable: await `done`. An `await`
 * of the operation itself waits for nothing; the lint rule `await-thenable` of oxlint and typescript-eslint finds it.
 */
export class Operation implements OperationInfo {
  /** Grows in the order of submission, over all devices of this thread. */
  readonly id: number;
  /** What the operation does. */
  readonly kind: OperationKind;
  /** The `label` of the call's options; for a launch without one, the kernel's name. */
  readonly label: string | undefined;
  /** The bytes that a copy, fill or allocation covers; undefined for other kinds. */
  readonly bytes: number | undefined;
  readonly #core: DeviceCore;
  readonly #timeline: Timeline;
  readonly #ticket: number;
  readonly #clock: Clock | undefined;
  readonly #page: FailurePage | undefined;
  #failure: MillraceError | Promise<MillraceError> | undefined = undefined;
  #isComplete = false;
  #done: Promise<OperationTiming> | undefined = undefined;
  #details: Details | undefined = undefined;
  #span: Span | undefined = undefined;
  #canFail = true;
  #submittedAt = 0;
  /** How it ended, set on first use. `error` is undefined while the reason of a failed build is pending. */
  #ending: { error: Error | undefined; readonly status: OperationStatus } | undefined = undefined;

  /** @internal `clock`: the operations that happen before it; undefined if that is not known. */
  constructor(
    site: StreamContext,
    kind: OperationKind,
    ticket: number,
    label: string | undefined,
    bytes: number | undefined,
    id: number,
    clock: Clock | undefined,
  ) {
    this.id = id;
    this.kind = kind;
    this.label = label;
    this.bytes = bytes;
    this.#core = site.core;
    this.#timeline = site.timeline;
    this.#ticket = ticket;
    this.#clock = clock;
    this.#page = site.timeline.failurePage(ticket);
  }

  /** @internal The page of the failure log with its ticket, kept while the operation is reachable. */
  get page(): FailurePage | undefined {
    return this.#page;
  }

  /** @internal The error of its failure, made on first use; all uses share it. */
  get failure(): MillraceError | Promise<MillraceError> | undefined {
    return this.#failure;
  }

  /** @internal */
  set failure(failure: MillraceError | Promise<MillraceError> | undefined) {
    this.#failure = failure;
  }

  /** The label of the stream. */
  get stream(): string {
    return this.#timeline.label;
  }

  /** The id of the device, for example 'cuda:0'. */
  get device(): string {
    return this.#core.name;
  }

  /** Whether it has finished or failed. One atomic load; no driver call, no message. */
  get isComplete(): boolean {
    if (this.#isComplete) return true;
    this.#refuseCaptured('query', 'isComplete');
    this.#isComplete = this.isOver;
    if (this.#isComplete) noteObserved(this.#point);
    return this.#isComplete;
  }

  /**
   * 'pending' until the operation is complete or its device is lost, then 'finished' or 'failed' permanently. Operations that `operations$`
   * emits are never pending. Reading the status does not count as reading `done`: a failure still reaches `device.errors$`.
   */
  get status(): OperationStatus {
    this.#refuseCaptured('query', 'status');
    return this.#end()?.status ?? 'pending';
  }

  /**
   * The error with which `done` rejects, the same object; undefined unless `status` is 'failed'. The error of a failed kernel build arrives
   * shortly after the failure, and `error` is undefined until then. `operations$` emits the operation only when the error is known.
   */
  get error(): Error | undefined {
    return this.#end()?.error;
  }

  /**
   * Resolves when the device has finished the operation, with the times of its submission and its end. For a copy to the host, the bytes
   * are then in the destination; for a copy from the host, the source may be changed again; for a `host` or `hold`, the function has ended; for
   * a launch of a graph, its `host` functions have.
   * Rejects with the operation's failure: LaunchError, BoundsError, OutOfMemoryError, UnsupportedError, UpstreamError, DeviceLostError, the
   * CompileError or UnavailableError of the kernel's build, or the error that a host function threw. The promise is created at the first
   * read. If no code reads `done`, a failure reaches `device.errors$`.
   * @example await stream.launch(saxpy, y.length, { a: 2, x, y }).done;
   */
  get done(): Promise<OperationTiming> {
    this.#refuseCaptured('host-wait', 'done');
    const refused = refuseDeadlock(this.#timeline, this.#ticket);
    if (refused !== undefined) return Promise.reject(refused);
    this.#done ??= this.#settle(undefined);
    return this.#done;
  }

  /** Waits as `done` does, with a signal or a timeout. Rejects also with AbortError or WaitTimeoutError; the operation continues. */
  synchronize(opts?: WaitOptions): Promise<OperationTiming> {
    this.#refuseCaptured('host-wait', 'synchronize');
    return opts === undefined ? this.done : this.#settle(opts);
  }

  /** An operation of a capture belongs to a graph, whose launches have operations of their own. */
  #refuseCaptured(reason: CaptureReason, what: string): void {
    const { recording } = this.#timeline;
    if (recording === undefined) return;
    const name = `${this.kind}${this.label === undefined ? '' : ` ${this.label}`}`;
    throw recording.refusal(
      this.#timeline,
      reason,
      `the ${name} was captured, so it has no '${what}': launch the graph and use that operation`,
    );
  }

  async #settle(opts: WaitOptions | undefined): Promise<OperationTiming> {
    checkWaitCall(opts);
    this.#submittedAt ||= performance.now();
    const { hostCompletion } = this;
    if (hostCompletion !== undefined) hostCompletion.isAwaited = true;
    const options = hostCompletion?.givenUp === undefined ? opts : withSignal(opts, hostCompletion.givenUp);
    const through = hostCompletion?.ticket;
    try {
      await this.#core.waits.until(this.#timeline, this.#ticket, this.#canFail ? this : undefined, options, [this.#point], through);
    } catch (error) {
      if (this.failure !== undefined) this.#core.failures.reported(this.#timeline, this.#ticket, this.parts);
      throw this.failure === undefined ? error : (this.#thrown ?? error);
    }
    const error = hostCompletion?.error ?? this.#ending?.error;
    if (error !== undefined) throw error;
    const timing = { submittedAt: this.#submittedAt, finishedAt: performance.now() };
    if (this.#span === undefined) return timing;
    const deviceMs = await this.#span.elapsedMs(opts);
    return deviceMs === undefined ? timing : { ...timing, deviceMs };
  }

  /** The function's own error, which the device reports as its failure. */
  get #thrown(): Error | undefined {
    return this.kind === 'external' ? this.hostCompletion?.error : undefined;
  }

  get #point(): Point {
    return { timeline: this.#timeline, ticket: this.#ticket, clock: this.#clock };
  }

  #end(): { readonly error: Error | undefined; readonly status: OperationStatus } | undefined {
    if (this.#ending !== undefined) return this.#ending;
    const [core, timeline] = [this.#core, this.#timeline];
    if (!this.isComplete) {
      // An operation that did not end is lost, unless it is the one that lost the device.
      const own = core.lostError?.reason === 'fault' && this.#canFail ? core.failures.peek(timeline, this.#ticket, this) : undefined;
      return core.lostError && this.lose(own instanceof Error ? own : core.lostError);
    }
    core.failures.noteAndReport(timeline, this.#ticket);
    const reported = this.#canFail ? core.failures.peek(timeline, this.#ticket, this) : undefined;
    if (reported !== undefined) core.failures.reported(timeline, this.#ticket, this.parts);
    const error = this.#thrown ?? reported ?? this.hostCompletion?.error;
    const ending = { error: error instanceof Promise ? undefined : error, status: error === undefined ? 'finished' : 'failed' } as const;
    this.#ending = ending;
    if (error instanceof Promise) void error.then((reason) => (this.#ending = { error: reason, status: 'failed' }));
    return ending;
  }

  /** @internal Call it when its device is lost before it is complete or before the reason of its failure is known. */
  lose(error: Error): { readonly error: Error; readonly status: OperationStatus } {
    const ending = { error, status: 'failed' } as const;
    this.#ending = ending;
    return ending;
  }

  /** @internal As `isComplete`, but without a happens-before edge to later calls. */
  get isOver(): boolean {
    if (this.#isComplete) return true;
    return this.#details?.hostCompletion?.isSettled !== false && this.#timeline.hasReached(this.#ticket);
  }

  /**
   * @internal Makes it a copy in several steps or to an ordinary array, or a launch of a graph with host functions. `hostCompletion`: the event loop's part, if there is one; the copy is complete after it. `parts`: its records, if there are several.
   */
  moves(hostCompletion: EventLoopPart | undefined, parts?: readonly FailingPart[]): this {
    if (hostCompletion === undefined && parts === undefined) return this;
    this.#details = { hostCompletion, parts };
    this.#keep();
    return this;
  }

  /** Keeps the operation object for later subscribers, because the log does not contain these details. */
  #keep(): void {
    this.#timeline.log.kept.add(this.#ticket, this);
  }

  /** @internal */
  get hostCompletion(): EventLoopPart | undefined {
    return this.#details?.hostCompletion;
  }

  /** @internal */
  get parts(): readonly FailingPart[] | undefined {
    return this.#details?.parts;
  }

  /** @internal Sets its timestamps, on a stream with timing. */
  timedBy(span: Span | undefined): void {
    this.#span = span;
    span?.belongsTo(this);
    if (span !== undefined) this.#keep();
  }

  /** @internal How long the device worked on it, known after it has finished; undefined if it is not timed. Never rejects. */
  get deviceMs(): Promise<number | undefined> | undefined {
    return this.#span?.elapsedMs(undefined).catch(() => undefined);
  }

  /** @internal No record was submitted for it: its ticket, and a failure of that ticket, belong to another operation. */
  failsOfNothing(): void {
    this.#canFail = false;
    // The stream may have reached it while its promise still waits for an earlier host function.
    if (!this.isOver || this.#timeline.log.kept.first !== undefined) this.#keep();
  }

  /** @internal Its failure; a promise while the reason of a failed build is pending. */
  get reason(): Error | Promise<unknown> | undefined {
    return this.#end()?.error ?? (this.status === 'failed' ? this.failure : undefined);
  }

  /**
   * @internal What the device has finished may still lack the event loop's part, also of an operation before it, or the reason of its failure:
   * resolves when it has that. Undefined if it has.
   */
  get missing(): Promise<unknown> | undefined {
    const { hostCompletions } = this.#core;
    const { reason } = this;
    return (
      hostCompletions.hostCompleted(this.#timeline, this.hostCompletion?.ticket ?? this.#ticket) ??
      (reason instanceof Promise ? reason : undefined)
    );
  }

  /** @internal Calls `tell` once it is over or lost, with the device's time if it is timed. This does not keep the process alive. */
  whenOver(tell: (deviceMs: number | undefined) => void): void {
    const over = (): void => {
      const { missing, deviceMs } = this;
      if (missing !== undefined) void missing.then(over);
      else if (deviceMs !== undefined) void deviceMs.then(tell);
      else tell(undefined);
    };
    this.#core.progress.add(this.#timeline, { ticket: this.#ticket, keepsAlive: false, settle: over, lose: () => tell(undefined) });
  }

  /** @internal Sets the time of submission, on a stream with subscribers. */
  submittedAt(atMs: number): void {
    this.#submittedAt = atMs;
  }
}

describeAs(
  Operation.prototype,
  ({ id, kind, label, stream, device, isOver }) =>
    `Operation ${id}, ${kind}${label === undefined ? '' : ` ${label}`} on stream ${stream} of ${device} (${isOver ? 'complete' : 'pending'})`,
  ({ id, kind, label, bytes, stream, device, isOver }) => ({ id, kind, label, bytes, stream, device, isComplete: isOver }),
);
