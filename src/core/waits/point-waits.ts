// Promises for places in a device's streams: that the device has come there, that bytes have reached the host and functions have
// been called, and that the operation went well.
// Thread: owner.
import type { DeviceLostError, MillraceError } from '../base/errors.js';
import type { Channel } from '../channel/channel.js';
import type { FailingOperation, FailureLog } from '../timeline/failures.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { refuseDeadlock } from './deadlock-check.js';
import type { HostCompletions } from './host-completion.js';
import type { Progress } from './progress.js';
import { noteSeen } from './host-observed.js';
import { diagnoseWait } from './wait-diagnosis.js';
import { checkWaitOptions, type WaitOptions, waitWith } from './wait.js';

export class PointWaits {
  readonly #device: string;
  readonly #channel: Channel;
  readonly #progress: Progress;
  readonly #failures: FailureLog;
  readonly #hostCompletions: HostCompletions;
  #lostError: DeviceLostError | undefined = undefined;

  constructor(device: string, channel: Channel, progress: Progress, failures: FailureLog, hostCompletions: HostCompletions) {
    this.#device = device;
    this.#channel = channel;
    this.#progress = progress;
    this.#failures = failures;
    this.#hostCompletions = hostCompletions;
  }

  /**
   * Resolves when the stream has reached the ticket and its bytes arrived in ordinary arrays; with an operation it
   * rejects with that operation's failure, without one failures are left to others. `seen`: what the program knows by it
   * to have finished; default: the stream up to the ticket.
   */
  async until(
    timeline: Timeline,
    ticket: number,
    operation?: FailingOperation,
    opts?: WaitOptions,
    seen: readonly Point[] = [timeline.at(ticket)],
  ): Promise<void> {
    const refused = refuseDeadlock(timeline, ticket);
    if (refused !== undefined) throw refused;
    if (opts === undefined) return noteSeen(this.#reach(timeline, ticket, operation, undefined), seen);
    checkWaitOptions(opts);
    const withdrawals: (() => void)[] = [];
    const reached = this.#reach(timeline, ticket, operation, withdrawals);
    const what = `stream ${timeline.label} of device ${this.#device}`;
    return noteSeen(
      waitWith(reached, opts, what, withdrawals, () => diagnoseWait([{ timeline, ticket }])),
      seen,
    );
  }

  /** As `until`, given up by `withdrawals`; nobody has seen it. */
  reach(timeline: Timeline, ticket: number, withdrawals: (() => void)[]): Promise<void> {
    return this.#reach(timeline, ticket, undefined, withdrawals);
  }

  /** Resolves when one of the busy streams has finished half of what it has. */
  async room(timelines: Iterable<Timeline>): Promise<void> {
    const busy = [...timelines].filter((timeline) => timeline.pending > 0);
    if (busy.length === 0) return;
    const halves = busy.map((timeline) => ({ timeline, ticket: timeline.last - (timeline.pending >> 1) }));
    // What the running function holds does not move.
    const moving = halves.filter(({ timeline, ticket }) => refuseDeadlock(timeline, ticket) === undefined);
    if (moving.length === 0) throw refuseDeadlock(busy[0] as Timeline, (busy[0] as Timeline).last) as Error;
    const withdrawals: (() => void)[] = [];
    try {
      await Promise.race(moving.map(({ timeline, ticket }) => this.reach(timeline, ticket, withdrawals)));
    } finally {
      // The others are not waited for: a stuck stream would hold the loop, and collect a waiter for every call.
      for (const withdraw of withdrawals) withdraw();
    }
  }

  /** Nothing more will be reached. */
  lose(error: DeviceLostError): void {
    this.#lostError = error;
  }

  #reach(
    timeline: Timeline,
    ticket: number,
    operation: FailingOperation | undefined,
    withdrawals: (() => void)[] | undefined,
  ): Promise<void> {
    if (timeline.hasReached(ticket)) {
      this.#failures.noteAndTell(timeline);
      const failure = operation === undefined ? undefined : this.#failures.at(timeline, ticket, operation);
      if (failure !== undefined) return new Promise((_, reject) => this.#reject(failure, reject));
      return this.#hostCompleted(timeline, ticket) ?? Promise.resolve();
    }
    if (this.#lostError !== undefined) return Promise.reject(this.#lostError);
    return new Promise((resolve, reject) => {
      const withdraw = this.#progress.add(timeline, {
        ticket,
        holdsLoop: true,
        settle: () => {
          const failure = operation === undefined ? undefined : this.#failures.at(timeline, ticket, operation);
          if (failure === undefined) resolve(this.#hostCompleted(timeline, ticket));
          else this.#reject(failure, reject);
        },
        lose: reject,
      });
      withdrawals?.push(withdraw);
    });
  }

  /** A failed build may be known before its reason has arrived, which the loop is held for. */
  #reject(failure: MillraceError | Promise<MillraceError>, reject: (error: MillraceError) => void): void {
    if (failure instanceof Promise) void this.#channel.holdLoop(failure).then(reject);
    else reject(failure);
  }

  #hostCompleted(timeline: Timeline, ticket: number): Promise<void> | undefined {
    const hostCompleted = this.#hostCompletions.hostCompleted(timeline, ticket);
    // Host completion by itself holds no loop; waiting for it does.
    return hostCompleted && this.#channel.holdLoop(hostCompleted.then(() => undefined));
  }
}
