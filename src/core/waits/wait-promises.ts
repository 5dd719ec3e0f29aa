// Promises for points of a device's streams. They resolve when the device has reached the point, bytes have reached the host and host
// functions have been called; for an operation they report its failure.
// Thread: owner.
import type { Clock } from '../base/clock.js';
import { DeviceLostError, type MillraceError } from '../base/errors.js';
import type { Channel } from '../channel/channel.js';
import type { FailingOperation, FailureLog } from '../timeline/failures.js';
import type { LogTap } from '../timeline/operation-log.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { refuseDeadlock } from './deadlock-check.js';
import type { HostCompletions } from './host-completion.js';
import type { CompletionPolling, Waiter } from './completion-polling.js';
import { noteObserved, observedAfter } from './host-observed.js';
import { turnOfWait } from '../base/loop-turns.js';
import { diagnoseWait } from './wait-diagnosis.js';
import { checkWaitOptions, type WaitOptions, waitWith } from './wait.js';

/**
 * A wait without options, which settles its promise by itself. A promise for each step (reached, observed, returned) made 10,000 awaited
 * events take three times as long, most of it in the garbage collector and in the hooks of AsyncLocalStorage.
 */
class PointWait implements Waiter {
  readonly ticket: number;
  readonly keepsAlive = true;
  readonly #waits: WaitPromises;
  readonly #timeline: Timeline;
  readonly #operation: FailingOperation | undefined;
  readonly #observed: readonly Point[];
  readonly #resolve: (outcome: Promise<void> | undefined) => void;
  readonly #reject: (error: Error) => void;

  constructor(
    waits: WaitPromises,
    timeline: Timeline,
    ticket: number,
    operation: FailingOperation | undefined,
    observed: readonly Point[],
    resolve: (outcome: Promise<void> | undefined) => void,
    reject: (error: Error) => void,
  ) {
    this.ticket = ticket;
    this.#waits = waits;
    this.#timeline = timeline;
    this.#operation = operation;
    this.#observed = observed;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  lose(error: Error): void {
    this.#waits.lost(this.#timeline, this.ticket, this.#operation, error, this.#reject);
  }

  settle(): void {
    this.#resolve(this.#waits.outcome(this.#timeline, this.ticket, this.#operation, this.#observed));
  }
}

export class WaitPromises {
  readonly #device: string;
  readonly #channel: Channel;
  readonly #progress: CompletionPolling;
  readonly #failures: FailureLog;
  readonly #hostCompletions: HostCompletions;
  readonly #clock: Clock;
  /** Resolves to the error of the device once it is lost. */
  readonly #loss: () => Promise<DeviceLostError>;
  #lostError: DeviceLostError | undefined = undefined;
  /** Whether a wait rejected because the device is lost. */
  hasToldLoss: boolean = false;

  constructor(
    device: string,
    channel: Channel,
    progress: CompletionPolling,
    failures: FailureLog,
    hostCompletions: HostCompletions,
    clock: Clock,
    loss: () => Promise<DeviceLostError>,
  ) {
    this.#loss = loss;
    this.#device = device;
    this.#channel = channel;
    this.#progress = progress;
    this.#failures = failures;
    this.#hostCompletions = hostCompletions;
    this.#clock = clock;
  }

  /**
   * Resolves when the stream has reached the ticket and its bytes have arrived in ordinary arrays. With an operation it rejects with that
   * operation's failure; without one only with the loss of the device. `observed`: the points that the host then has observed as finished; default: the
   * stream up to the ticket. `through`: a later ticket, for which, and for the event loop's parts up to it, an operation also waits, also
   * if it failed.
   */
  until(
    timeline: Timeline,
    ticket: number,
    operation?: FailingOperation,
    opts?: WaitOptions,
    observed: readonly Point[] = [timeline.at(ticket)],
    through: number = ticket,
  ): Promise<void> {
    const refused = refuseDeadlock(timeline, ticket);
    if (refused !== undefined) return Promise.reject(refused);
    if (opts !== undefined) return this.#untilGivenUp(timeline, ticket, operation, opts, observed, through);
    if (through === ticket && this.#isKnown(timeline, ticket)) return inItsTurn(this.outcome(timeline, ticket, operation, observed));
    if (through > ticket || timeline.hasReached(ticket) || this.#lostError !== undefined)
      return observedAfter(this.#reachBoth(timeline, ticket, operation, undefined, through), observed);
    return new Promise((resolve, reject) => {
      this.#progress.keep(timeline, new PointWait(this, timeline, ticket, operation, observed, resolve, reject));
    });
  }

  /** From now on, tells the tap of each wait, as `OperationLog.tell` does of operations. */
  tell(tap: LogTap | undefined): void {
    const own = this as Partial<Pick<WaitPromises, 'until' | 'reach'>>;
    const { until, reach } = WaitPromises.prototype;
    if (tap === undefined) {
      // The last first: V8 makes a slow dictionary of an object that loses another one.
      delete own.reach;
      delete own.until;
      return;
    }
    own.until = (timeline, ticket, ...others) => {
      const wait = until.call(this, timeline, ticket, ...others);
      tap.waited(wait, timeline, ticket);
      return wait;
    };
    own.reach = (timeline, ticket, withdrawals) => {
      const isOver = timeline.hasReached(ticket);
      const wait = reach.call(this, timeline, ticket, withdrawals);
      // Of the streams of a device, many have nothing to do.
      if (!isOver) tap.waited(wait, timeline, ticket);
      return wait;
    };
  }

  /** Was the ticket reached, and are the failures up to it known? */
  #isKnown(timeline: Timeline, ticket: number): boolean {
    if (!timeline.hasReached(ticket)) return false;
    this.#failures.noteAndReport(timeline);
    return timeline.known >= ticket;
  }

  /** What the promise of a wait resolves to that has reached its ticket; undefined if the wait is over. */
  outcome(
    timeline: Timeline,
    ticket: number,
    operation: FailingOperation | undefined,
    observed: readonly Point[],
  ): Promise<void> | undefined {
    const rest = this.#reached(timeline, ticket, operation);
    if (rest !== undefined) return observedAfter(rest, observed);
    for (const point of observed) noteObserved(point);
    return undefined;
  }

  async #untilGivenUp(
    timeline: Timeline,
    ticket: number,
    operation: FailingOperation | undefined,
    opts: WaitOptions,
    observed: readonly Point[],
    through: number,
  ): Promise<void> {
    checkWaitOptions(opts);
    const withdrawals: (() => void)[] = [];
    const reached = this.#reachBoth(timeline, ticket, operation, withdrawals, through);
    const what = `stream ${timeline.label} of device ${this.#device}`;
    return observedAfter(
      waitWith(reached, opts, what, withdrawals, () => diagnoseWait([{ timeline, ticket }]), this.#clock),
      observed,
    );
  }

  /** As `until`, without recording anything as observed. `withdrawals` gets the functions that give the wait up. */
  reach(timeline: Timeline, ticket: number, withdrawals: (() => void)[]): Promise<void> {
    return this.#reach(timeline, ticket, undefined, withdrawals);
  }

  /** Resolves when one of the busy streams has finished half of its pending operations. */
  async room(timelines: Iterable<Timeline>): Promise<void> {
    const busy = [...timelines].filter((timeline) => timeline.pending > 0);
    if (busy.length === 0) return;
    const halves = busy.map((timeline) => ({ timeline, ticket: timeline.last - (timeline.pending >> 1) }));
    // A stream that the running function holds does not advance.
    const moving = halves.filter(({ timeline, ticket }) => refuseDeadlock(timeline, ticket) === undefined);
    if (moving.length === 0) throw refuseDeadlock(busy[0] as Timeline, (busy[0] as Timeline).last) as Error;
    const withdrawals: (() => void)[] = [];
    try {
      await Promise.race(moving.map(({ timeline, ticket }) => this.reach(timeline, ticket, withdrawals)));
    } finally {
      // Withdraw the other waiters: a stream that does not advance would keep the process alive and collect a waiter per call.
      for (const withdraw of withdrawals) withdraw();
    }
  }

  /** Ends a wait that the device does not reach any more. The operation that lost the device has an error of its own. */
  lost(timeline: Timeline, ticket: number, operation: FailingOperation | undefined, error: Error, reject: (error: Error) => void): void {
    this.hasToldLoss = true;
    const isFault = error instanceof DeviceLostError && error.reason === 'fault';
    const own = isFault && operation !== undefined ? this.#failures.at(timeline, ticket, operation) : undefined;
    if (own === undefined) reject(error);
    else this.#reject(own, reject);
  }

  /** Rejects all waits: the device is lost. */
  lose(error: DeviceLostError): void {
    this.#lostError = error;
  }

  #reachBoth(
    timeline: Timeline,
    ticket: number,
    operation: FailingOperation | undefined,
    withdrawals: (() => void)[] | undefined,
    through: number,
  ): Promise<void> {
    // First the operation, so that its failure is known to be awaited.
    const reached = this.#reach(timeline, ticket, operation, withdrawals);
    if (through <= ticket) return reached;
    const reachLast = (): Promise<void> => this.#reach(timeline, through, undefined, withdrawals);
    return reached.then(reachLast, async (error: unknown) => {
      await reachLast().catch(() => undefined);
      throw error;
    });
  }

  #reach(
    timeline: Timeline,
    ticket: number,
    operation: FailingOperation | undefined,
    withdrawals: (() => void)[] | undefined,
  ): Promise<void> {
    if (this.#isKnown(timeline, ticket)) return inItsTurn(this.#reached(timeline, ticket, operation));
    return new Promise((resolve, reject) => {
      const lose = (error: Error): void => this.lost(timeline, ticket, operation, error, reject);
      if (this.#lostError !== undefined) {
        lose(this.#lostError);
        return;
      }
      const withdraw = this.#progress.add(timeline, {
        ticket,
        keepsAlive: true,
        settle: () => resolve(this.#reached(timeline, ticket, operation)),
        lose,
      });
      withdrawals?.push(withdraw);
    });
  }

  /** What is left of a wait whose ticket the device has reached: the operation's failure, or the event loop's part; undefined if nothing. */
  #reached(timeline: Timeline, ticket: number, operation: FailingOperation | undefined): Promise<void> | undefined {
    const failure = operation === undefined ? undefined : this.#failures.at(timeline, ticket, operation);
    if (failure !== undefined) return new Promise((_, reject) => this.#reject(failure, reject));
    // A kernel that faults on the CPU device ends, and so does its ticket. As in CUDA, who waits for it learns that the device is lost.
    if (operation === undefined && this.#failures.hasFatal(timeline, ticket)) {
      this.hasToldLoss = true;
      const told = this.#loss().then((error) => Promise.reject(error));
      return this.#channel.keepAlive(told);
    }
    return this.#hostCompleted(timeline, ticket);
  }

  /** Rejects with the failure. If the reason of a failed build is still pending, keeps the process alive until it arrives. */
  #reject(failure: MillraceError | Promise<MillraceError>, reject: (error: MillraceError) => void): void {
    if (failure instanceof Promise) void this.#channel.keepAlive(failure).then(reject);
    else reject(failure);
  }

  #hostCompleted(timeline: Timeline, ticket: number): Promise<void> | undefined {
    const hostCompleted = this.#hostCompletions.hostCompleted(timeline, ticket);
    // A host completion does not keep the process alive; a wait for it does.
    return hostCompleted && this.#channel.keepAlive(hostCompleted.then(() => undefined));
  }
}

/** The promise of a wait whose ticket was reached at the call, with what is left of it. */
function inItsTurn(rest: Promise<void> | undefined): Promise<void> {
  const turn = turnOfWait();
  if (rest === undefined || turn === undefined) return rest ?? turn ?? Promise.resolve();
  rest.catch(() => undefined);
  return turn.then(() => rest);
}
