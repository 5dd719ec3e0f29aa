// What the streams and arrays of one device share: the channel, the handle tables, host memory, failures, and a slow
// check that runs only while something is unfinished. No public object: Device and Stream are its faces.
// Thread: owner.
import type { Encoder } from '../../protocol/encoder.js';
import { HandleKind, Status } from '../../protocol/protocol.gen.js';
import type { NativeDeviceInfo } from '../../protocol/reports.js';
import { DeviceLostError, LimitError, type LostReason, type MillraceError, StateError } from '../base/errors.js';
import { Hub } from '../base/observable.js';
import { buildsChannel, devicesChannel } from '../base/trace.js';
import type { Channel } from '../channel/channel.js';
import type { OperationTimer } from '../events/operation-timer.js';
import { whatKeeps } from '../faces/inspect.js';
import { checkKernel, KernelPlan } from '../kernels/kernel-plan.js';
import type { Kernel } from '../kernels/kernel.js';
import type { Ordering, Storage } from '../memory/storage.js';
import type { Operation } from '../operations/operation.js';
import type { Clock } from '../timeline/clock.js';
import { type FailingOperation, FailureBook } from '../timeline/failures.js';
import type { WaitCause } from '../timeline/operation-log.js';
import { type Point, Timeline } from '../timeline/timeline.js';
import { refuseHeld } from '../waits/held.js';
import { LandingQueue } from '../waits/landing.js';
import type { Progress } from '../waits/progress.js';
import { noteSeen } from '../waits/seen.js';
import { checkWaitOptions, waitForDevices, type WaitOptions, waitWith } from '../waits/wait.js';
import { HandleTable, type Reach } from './handles.js';
import { Helpers } from './helpers.js';
import { HostArena } from './host-arena.js';
import { OrderBook } from './order.js';
import { refusalOf } from './refusal.js';
import { StreamSlots } from './stream-slots.js';

export type DeviceState = 'open' | 'closing' | 'closed' | 'lost';

/** A stream, as far as its operations and copies need it. */
export interface StreamSite {
  readonly core: DeviceCore;
  readonly timeline: Timeline;
  readonly ordering: Ordering;
  /** Its uses are those of a `read`. */
  readonly isReadback?: boolean;
  /** Of a stream with timing. */
  readonly timer?: OperationTimer | undefined;
}

/** How often unfinished work that nobody waits for is looked at. */
const CHECK_MS = 50;

export class DeviceCore {
  /** 'cuda:0', 'cpu:0'. */
  readonly name: string;
  readonly channel: Channel;
  readonly encoder: Encoder;
  readonly progress: Progress;
  readonly info: NativeDeviceInfo;
  readonly arena: HostArena;
  readonly landings: LandingQueue = new LandingQueue();
  readonly operations: Hub<Operation> = new Hub();
  readonly errors: Hub<MillraceError> = new Hub();
  readonly failures: FailureBook;
  readonly lost: Promise<DeviceLostError>;
  readonly timelines: Set<Timeline> = new Set();
  /** Arrays remember where they were made. */
  isChecked: boolean = false;
  state: DeviceState = 'open';
  lostError: DeviceLostError | undefined = undefined;
  /** Told once when the device is lost, before promises reject. */
  onLost: ((error: DeviceLostError) => void) | undefined = undefined;
  /** Where frees of arrays go whose streams are closed. */
  home: Timeline | undefined = undefined;
  /** Waits, frees, and who else uses its memory. */
  readonly orders: OrderBook;
  /** Streams for the parts of copies that only this device can do. */
  readonly helpers: Helpers = new Helpers(this);
  readonly #memory: HandleTable;
  readonly #kernels: HandleTable;
  readonly #hostMemory: HandleTable;
  /** Timing marks and interprocess events. */
  readonly marks: HandleTable;
  readonly #plans: WeakMap<Kernel, KernelPlan> = new WeakMap();
  readonly #plansByHandle: Map<number, KernelPlan> = new Map();
  readonly #slots: StreamSlots;
  #check: NodeJS.Timeout | undefined;
  #isTelling = false;
  #resolveLost: (error: DeviceLostError) => void = () => undefined;

  constructor(name: string, channel: Channel, progress: Progress) {
    this.name = name;
    this.channel = channel;
    this.encoder = channel.encoder;
    this.progress = progress;
    this.info = channel.info;
    const reach: Reach = (timeline, ticket, withdrawals) => this.reach(timeline, ticket, withdrawals);
    const table = (kind: HandleKind): HandleTable => new HandleTable((count) => channel.reserveHandles(kind, count), reach);
    this.#memory = table(HandleKind.MEMORY);
    this.orders = new OrderBook(this, this.#memory);
    this.#kernels = table(HandleKind.KERNEL);
    this.#hostMemory = table(HandleKind.HOST);
    this.marks = table(HandleKind.MARK);
    this.#slots = new StreamSlots(() => channel.reserveStream());
    this.arena = new HostArena(channel, this.#hostMemory);
    this.failures = new FailureBook(name, this.errors, this.timelines, {
      kernel: (handle) => this.#plansByHandle.get(handle),
      holdLoop: (reason) => void channel.holdLoop(reason),
    });
    this.lost = new Promise((resolve) => {
      this.#resolveLost = resolve;
    });
    channel.onLost = (error) => this.lose(error);
  }

  // ── submission ──

  /** Submits the encoded record. Refused, it throws and nothing has changed. */
  submit(timeline: Timeline, bytes: number): number {
    const ticket = this.channel.submit(bytes);
    if (ticket < 0) throw refusalOf(this, -ticket as Status, timeline.label);
    timeline.last = ticket;
    // The opcode is what the record begins with.
    timeline.log.add(ticket, this.encoder.block[0] as number);
    if (this.#check === undefined) this.#scheduleCheck();
    return ticket;
  }

  /** Throws LimitError unless so many records of the stream would be taken now; more than the device ever holds need all of it. */
  checkRoom(timeline: Timeline, records: number): void {
    const { maxPending } = this.channel;
    if (this.channel.stats().pendingRecords + Math.min(records, maxPending) > maxPending)
      throw refusalOf(this, Status.LIMIT, timeline.label);
  }

  /** Later records of `timeline` come after `ticket` of another stream, of any device. False: they already do. */
  order(timeline: Timeline, other: Timeline, ticket: number, cause: WaitCause, clock: Clock | undefined = other.at(ticket).clock): boolean {
    return this.orders.order(timeline, other, ticket, cause, clock);
  }

  /** A new stream's tickets; its backend stream is the first record. */
  openTimeline(label: string, priority: number, foreign?: bigint): Timeline {
    const slot = this.#slots.take();
    if (slot < 0) {
      const open = this.timelines.size;
      throw new LimitError(
        'ERR_MILLRACE_LIMIT',
        `The open streams of device ${this.name} have reached the limit (${open}).`,
        open,
        () => this.#slots.freed(),
        { device: this.name },
      );
    }
    const timeline = new Timeline(this.channel, slot, label);
    try {
      this.submit(timeline, this.encoder.streamCreate(slot, priority, foreign));
    } catch (error) {
      this.#slots.giveBack(slot);
      throw error;
    }
    timeline.begin();
    timeline.book = this.failures;
    this.progress.join(timeline, () => this.#noteFailures(timeline));
    this.timelines.add(timeline);
    return timeline;
  }

  /** After everything of the stream has finished. */
  closeTimeline(timeline: Timeline): void {
    if (!this.timelines.delete(timeline)) return;
    this.failures.note(timeline);
    timeline.retire();
    this.progress.leave(timeline);
    this.landings.forget(timeline);
    this.#slots.tell();
  }

  // ── kernels and memory ──

  plan(kernel: Kernel): KernelPlan {
    return this.#plans.get(kernel) ?? this.#makePlan(kernel);
  }

  takeMemoryHandle(): number {
    return this.#memory.take();
  }

  /** No record names it. */
  returnMemoryHandle(handle: number): void {
    this.#memory.giveBackNow(handle);
  }

  /** Gives device memory back in stream order; called once per storage. */
  free(storage: Storage): void {
    this.orders.free(storage);
  }

  // ── waiting ──

  /**
   * Resolves when the stream has reached the ticket and its bytes arrived in ordinary arrays; with an operation it
   * rejects with that operation's failure, without one failures are left to others. `seen`: what the program knows by it
   * to have finished; default: the stream up to the ticket.
   */
  async wait(
    timeline: Timeline,
    ticket: number,
    operation?: FailingOperation,
    opts?: WaitOptions,
    seen: readonly Point[] = [timeline.at(ticket)],
  ): Promise<void> {
    const refused = refuseHeld(timeline, ticket);
    if (refused !== undefined) throw refused;
    if (opts === undefined) return noteSeen(this.#reach(timeline, ticket, operation, undefined), seen);
    checkWaitOptions(opts);
    const withdrawals: (() => void)[] = [];
    const reached = this.#reach(timeline, ticket, operation, withdrawals);
    const what = `stream ${timeline.label} of device ${this.name}`;
    return noteSeen(
      waitWith(reached, opts, what, withdrawals, () => whatKeeps([{ timeline, ticket }])),
      seen,
    );
  }

  /** Resolves when every stream has reached what it was given so far. */
  waitForAll(opts: WaitOptions | undefined): Promise<void> {
    return waitForDevices([this], opts);
  }

  /** As `wait`, given up by `withdrawals`; nobody has seen it. */
  reach(timeline: Timeline, ticket: number, withdrawals: (() => void)[]): Promise<void> {
    return this.#reach(timeline, ticket, undefined, withdrawals);
  }

  #reach(
    timeline: Timeline,
    ticket: number,
    operation: FailingOperation | undefined,
    withdrawals: (() => void)[] | undefined,
  ): Promise<void> {
    if (timeline.hasReached(ticket)) {
      this.#noteFailures(timeline);
      const failure = operation === undefined ? undefined : this.failures.at(timeline, ticket, operation);
      if (failure !== undefined) return new Promise((_, reject) => this.#reject(failure, reject));
      return this.#landed(timeline, ticket) ?? Promise.resolve();
    }
    if (this.lostError !== undefined) return Promise.reject(this.lostError);
    return new Promise((resolve, reject) => {
      const withdraw = this.progress.add(timeline, {
        ticket,
        holdsLoop: true,
        settle: () => {
          const failure = operation === undefined ? undefined : this.failures.at(timeline, ticket, operation);
          if (failure === undefined) resolve(this.#landed(timeline, ticket));
          else this.#reject(failure, reject);
        },
        lose: reject,
      });
      withdrawals?.push(withdraw);
    });
  }

  /** A failed build may be known before its reason has arrived, which the loop is held for. */
  #reject(failure: MillraceError | Promise<MillraceError>, reject: (error: MillraceError) => void): void {
    if (failure instanceof Promise) void this.channel.holdLoop(failure).then(reject);
    else reject(failure);
  }

  #landed(timeline: Timeline, ticket: number): Promise<void> | undefined {
    const landed = this.landings.landed(timeline, ticket);
    // Landing by itself holds no loop; waiting for it does.
    return landed && this.channel.holdLoop(landed.then(() => undefined));
  }

  /** A function of the program failed; told unless `isAwaited` by then. */
  threw(timeline: Timeline, error: MillraceError, isAwaited: () => boolean): void {
    this.failures.threw(timeline, error, isAwaited);
    this.#noteFailures(timeline);
  }

  // ── the end ──

  /** Looks whether the device died; cheap enough for every wake. */
  checkLost(): void {
    if (this.state === 'lost' || this.state === 'closed') return;
    const status = this.channel.lostStatus();
    if (status === 0) return;
    // The device itself is well, but the thread that had it open is gone: this may be known before its exit is.
    const hasWorkerEnded = status === Status.STATE;
    const message = hasWorkerEnded
      ? `The worker of device ${this.name} ended.`
      : `Device ${this.name} is lost (status ${status}); it needs a new process.`;
    this.lose(new DeviceLostError('ERR_MILLRACE_LOST', message, hasWorkerEnded ? 'worker-exit' : 'fault', { device: this.name }));
  }

  lose(error: DeviceLostError): void {
    if (this.state === 'lost' || this.state === 'closed') return;
    this.state = error.reason === ('closed' satisfies LostReason) ? 'closed' : 'lost';
    this.lostError = error;
    if (devicesChannel.hasSubscribers) devicesChannel.publish({ device: this.name, state: this.state });
    clearTimeout(this.#check);
    this.onLost?.(error);
    for (const timeline of this.timelines) {
      this.progress.lose(timeline, error);
      // Nothing is waited for on it any more; who tries is told why.
      this.progress.leave(timeline);
      timeline.hand.lose();
    }
    this.#slots.tell();
    this.#endTables();
    this.#resolveLost(error);
    this.errors.complete();
  }

  /** What a call that needs an open device is refused with. */
  refuseIfOver(): Error | undefined {
    if (this.state === 'open') return undefined;
    if (this.state === 'lost') return this.lostError;
    return new StateError('ERR_MILLRACE_STATE', `Device ${this.name} is closed.`, { device: this.name });
  }

  /** Every stream has drained: what was not told is told, and nothing runs any more. */
  finish(): void {
    for (const timeline of this.timelines) this.failures.note(timeline);
    this.failures.tellRest(true);
    for (const timeline of this.timelines) this.closeTimeline(timeline);
    clearTimeout(this.#check);
    this.#endTables();
    if (this.state !== 'lost') this.state = 'closed';
    if (devicesChannel.hasSubscribers) devicesChannel.publish({ device: this.name, state: this.state });
    this.errors.complete();
  }

  /** Nothing is left to run in this thread, so nobody will ask: tells what the next check would have found. */
  tellUnasked(): void {
    if (this.state === 'lost' || this.state === 'closed') return;
    for (const timeline of this.timelines) this.failures.note(timeline);
    this.failures.tellRest(true);
  }

  // ── inside ──

  #endTables(): void {
    for (const table of [this.#memory, this.#kernels, this.#hostMemory, this.marks]) table.end();
  }

  /** Those who wait are told in this turn, the rest of the world in the next. */
  #noteFailures(timeline: Timeline): void {
    this.failures.note(timeline);
    if (!this.failures.hasUntold || this.#isTelling) return;
    this.#isTelling = true;
    setImmediate(() => {
      this.#isTelling = false;
      this.failures.tellRest(false);
    });
  }

  #makePlan(kernel: Kernel): KernelPlan {
    checkKernel(kernel);
    const handle = this.#kernels.take();
    const built = this.channel.build(handle, kernel.build);
    const plan = new KernelPlan(kernel, handle, this.info.maxThreadsPerBlock, built);
    // Its launches tell; a build that nobody asks about does not.
    built.then(
      (report) => {
        if (buildsChannel.hasSubscribers) buildsChannel.publish({ device: this.name, kernel: kernel.name, ...report });
      },
      () => undefined,
    );
    this.#plans.set(kernel, plan);
    this.#plansByHandle.set(handle, plan);
    return plan;
  }

  #scheduleCheck(): void {
    this.#check = setTimeout(() => {
      this.#check = undefined;
      this.#checkUp();
    }, CHECK_MS);
    this.#check.unref();
  }

  #checkUp(): void {
    this.checkLost();
    if (this.state === 'lost' || this.state === 'closed') return;
    let isQuiet = true;
    for (const timeline of this.timelines) {
      if (!timeline.isComplete) isQuiet = false;
      timeline.log.look();
      this.failures.note(timeline);
    }
    this.failures.tellRest(false);
    const isFull = this.orders.freeRest();
    this.arena.reclaim();
    if (!isQuiet || isFull || this.arena.isSettling || this.failures.hasUntold) this.#scheduleCheck();
  }
}
