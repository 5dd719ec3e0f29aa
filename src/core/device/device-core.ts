// More than 400 lines: what all else of a device shares.
// What the streams and arrays of one device share: the channel, the handle tables, host memory, failures, and a periodic check that runs
// only while work is unfinished. It is internal; Device and Stream are the public classes.
// Thread: owner.
import { AsyncResource } from 'node:async_hooks';
import type { Encoder } from '../../protocol/encoder.js';
import { HandleKind, MAX_PENDING_BYTES, Status } from '../../protocol/protocol.gen.js';
import type { NativeDeviceInfo } from '../../protocol/reports.js';
import { type Clock, realClock } from '../base/clock.js';
import { DeviceLostError, InternalError, LimitError, type LostReason, type MillraceError, StateError } from '../base/errors.js';
import { Hub } from '../base/observable.js';
import { devicesChannel } from '../base/trace.js';
import type { Channel, StillRunning } from '../channel/channel.js';
import { KernelRegistry } from '../kernels/kernel-registry.js';
import type { AccessTracker } from '../ordering/access-tracker.js';
import { FailureLog } from '../timeline/failures.js';
import type { LogTap } from '../timeline/operation-log.js';
import { Timeline, type TimelinePartition } from '../timeline/timeline.js';
import { HostCompletions } from '../waits/host-completion.js';
import { HostCopies } from '../waits/host-copies.js';
import { WaitPromises } from '../waits/wait-promises.js';
import type { CompletionPolling } from '../waits/completion-polling.js';
import { ArrayKinds } from '../kernels/array-kinds.js';
import { HandleTable, type Reach } from './handles.js';
import { HostArena } from './host-arena.js';
import { endedApart, faultError, hungError } from './hung-device.js';
import { InternalStreams, type StreamPurpose } from './internal-streams.js';
import { PeerUsers } from './peer-users.js';
import { RetiredHandles } from './retired-handles.js';
import { type FreeingDevice, StreamOrderedFrees } from './stream-ordered-frees.js';
import { StreamSlots } from './stream-slots.js';
import { clearTimeout, queueMicrotask, setImmediate, setTimeout } from '../base/timers.js';
import { LiveMemory } from './live-memory.js';

export type DeviceState = 'open' | 'closing' | 'closed' | 'lost';

/** How often the check looks for failures of work whose promises nobody reads. */
const CHECK_MS = 50;

/** The handles of what a device has. */
export interface DeviceHandles {
  readonly memory: HandleTable;
  readonly kernels: HandleTable;
  readonly host: HandleTable;
  /** Timing events and interprocess events. */
  readonly events: HandleTable;
  readonly graphs: HandleTable;
}

export class DeviceCore implements FreeingDevice {
  /** 'cuda:0', 'cpu:0'. */
  readonly name: string;
  readonly channel: Channel;
  readonly encoder: Encoder;
  readonly progress: CompletionPolling;
  /** Orders the records of all devices of the thread. */
  readonly tracker: AccessTracker;
  /** What its waits and pipelines take time from. */
  readonly clock: Clock;
  readonly info: NativeDeviceInfo;
  readonly arena: HostArena;
  readonly hostCompletions: HostCompletions = new HostCompletions();
  readonly hostCopies: HostCopies;
  readonly errors: Hub<MillraceError> = new Hub();
  readonly failures: FailureLog;
  readonly lost: Promise<DeviceLostError>;
  /** Code has asked for the loss: nothing else need tell it. */
  isLossRead: boolean = false;
  readonly timelines: Set<Timeline> = new Set();
  /** Arrays remember the place in user code that made them. */
  isChecked: boolean = false;
  /** The asynchronous context in which the device was opened. Observers are called in it, unless a call of user code is the cause. */
  readonly context: AsyncResource = new AsyncResource('MILLRACE_DEVICE');
  state: DeviceState = 'open';
  lostError: DeviceLostError | undefined = undefined;
  /** Called once when the device is lost, before promises reject. */
  onLost: ((error: DeviceLostError) => void) | undefined = undefined;
  /** The stream for frees of arrays whose streams are closed. */
  home: Timeline | undefined = undefined;
  /** Frees of memory and events. */
  readonly frees: StreamOrderedFrees;
  /** What arrays and textures of this thread hold. */
  readonly live: LiveMemory;
  /** Streams of other devices that use its memory. */
  readonly peerUsers: PeerUsers;
  /** Streams that no user code made, by what they are for. */
  readonly internalStreams: Readonly<Record<Exclude<StreamPurpose, 'readback'>, InternalStreams<Timeline>>>;
  /** Its kernels. */
  readonly kernelRegistry: KernelRegistry;
  /** Promises for places in its streams. */
  readonly waits: WaitPromises;
  readonly arrayKinds: ArrayKinds = new ArrayKinds();
  readonly handles: DeviceHandles;
  /** Of its streams, and of the grid barriers of its graphs. */
  readonly slots: StreamSlots;
  #tap: LogTap | undefined;
  #check: NodeJS.Timeout | undefined;
  #resolveLost: (error: DeviceLostError) => void = () => undefined;

  /** `progress`, `tracker`: those of the thread. */
  constructor(name: string, channel: Channel, progress: CompletionPolling, tracker: AccessTracker, clock: Clock = realClock) {
    this.name = name;
    this.clock = clock;
    this.channel = channel;
    this.encoder = channel.encoder;
    this.progress = progress;
    this.tracker = tracker;
    this.info = channel.info;
    const reach: Reach = (timeline, ticket, withdrawals) => this.waits.reach(timeline, ticket, withdrawals);
    const table = (kind: HandleKind): HandleTable => new HandleTable((count) => channel.reserveHandles(kind, count), reach);
    this.handles = {
      memory: table(HandleKind.MEMORY),
      kernels: table(HandleKind.KERNEL),
      host: table(HandleKind.HOST),
      events: table(HandleKind.EVENT),
      graphs: table(HandleKind.GRAPH),
    };
    this.kernelRegistry = new KernelRegistry(name, channel, new RetiredHandles(this.handles.kernels, this.timelines));
    this.slots = new StreamSlots(
      () => channel.reserveStream(),
      (freed) => this.#noSlot(freed),
    );
    this.live = new LiveMemory(this);
    this.internalStreams = {
      frees: this.#internal('frees'),
      copies: this.#internal('copies'),
      interprocess: this.#internal('interprocess'),
      captures: this.#internal('captures'),
      adoptions: this.#internal('adoptions'),
      'other-threads': this.#internal('other-threads'),
    };
    this.frees = new StreamOrderedFrees(this, this.handles.memory, this.internalStreams.frees);
    this.arena = new HostArena(channel, this.handles.host);
    this.hostCopies = new HostCopies((target, source) => channel.copyHost(target, source));
    this.failures = new FailureLog(name, this.errors, this.timelines, {
      kernel: (handle) => this.kernelRegistry.byHandle(handle),
      keepAlive: (reason) => void channel.keepAlive(reason),
      channel: channel.id,
      reported: (stream, through) => channel.reported(stream, through),
      settle: () => void progress.drain(),
      hasSettled: (timeline, ticket) => progress.hasSettled(timeline, ticket),
      lost: () => this.#end(),
      refused: (timeline, ticket) => this.live.refused(timeline, ticket),
      memoryUse: (freeBytes) => this.live.use(freeBytes),
      inContext: (tell) => this.context.runInAsyncScope(tell),
    });
    this.waits = new WaitPromises(name, channel, progress, this.failures, this.hostCompletions, clock, () => this.#whenLost());
    this.lost = new Promise((resolve) => {
      this.#resolveLost = resolve;
    });
    this.peerUsers = new PeerUsers(progress, this.lost);
    // With a subscriber of `errors$`, the check keeps the process alive while work is unfinished.
    this.errors.onChange = () => (this.errors.isAwaited ? this.#check?.ref() : this.#check?.unref());
    channel.onLost = (error) => {
      this.lose(channel.isApart && error.reason !== 'closed' ? endedApart(error, this.timelines, channel.hungStream) : error);
    };
  }

  // ── submission ──

  /**
   * Submits the encoded record and returns its ticket; in a capture, adds it to the graph. If the device refuses the record, this throws
   * and nothing has changed.
   */
  submit(timeline: Timeline, bytes: number): number {
    if (timeline.recording !== undefined) return timeline.recording.add(timeline, this.encoder.block.subarray(0, bytes));
    const ticket = this.channel.submit(bytes);
    if (ticket < 0) throw this.#refusal(-ticket as Status, timeline.label);
    timeline.last = ticket;
    timeline.log.add(ticket, this.encoder.opcode);
    if (this.#check === undefined) this.#scheduleCheck();
    return ticket;
  }

  /** Throws LimitError unless the device has room for so many records now. For more than `maxPending`, it must be empty. */
  checkRoom(timeline: Timeline, records: number): void {
    if (timeline.recording !== undefined) return;
    const { maxPending } = this.channel;
    if (this.channel.stats().pendingRecords + Math.min(records, maxPending) > maxPending) throw this.#refusal(Status.LIMIT, timeline.label);
  }

  /** A new stream. The record that creates the backend's stream is its first. `foreign`: the handle of a driver stream to wrap. */
  openTimeline(label: string, priority: number, foreign?: bigint, partition?: TimelinePartition): Timeline {
    const slot = this.slots.take();
    const timeline = new Timeline(this.channel, slot, label, this.tracker.newClock());
    try {
      this.submit(timeline, this.encoder.streamCreate(slot, priority, foreign, partition?.id));
    } catch (error) {
      this.slots.giveBack(slot);
      throw error;
    }
    timeline.begin();
    timeline.isForeign = foreign !== undefined;
    timeline.partition = partition;
    timeline.failureLog = this.failures;
    if (this.#tap !== undefined) timeline.log.tell(this.#tap);
    this.progress.join(timeline, () => this.failures.noteAndReport(timeline));
    this.timelines.add(timeline);
    return timeline;
  }

  /** From now on, tells the tap of each operation; undefined: nobody. */
  tell(tap: LogTap | undefined): void {
    this.#tap = tap;
    this.waits.tell(tap);
    for (const timeline of this.timelines) timeline.log.tell(tap);
  }

  /** Resolves when a recording has the last operations. */
  async recorded(): Promise<void> {
    await this.#tap?.ending();
  }

  /** Closes a stream whose records have all finished. */
  closeTimeline(timeline: Timeline): void {
    if (!this.timelines.delete(timeline)) return;
    this.failures.note(timeline, Infinity);
    timeline.retire();
    this.progress.leave(timeline);
    this.hostCompletions.forget(timeline);
    this.slots.tell();
  }

  // ── the end ──

  /** Looks whether the device is lost. It costs little enough for every wake. */
  checkLost(): void {
    const error = this.isGone ? undefined : this.#loss();
    if (error !== undefined) this.lose(error);
  }

  /** For waits, which may know of the fault before the device is lost. Not at once: they settle in the middle of a turn's other waits. */
  #whenLost(): Promise<DeviceLostError> {
    queueMicrotask(() => this.checkLost());
    return this.lost;
  }

  /** The error of this device, for streams of other devices that find it lost or closed. */
  #end(): DeviceLostError {
    const { name, lostError } = this;
    const loss = lostError ?? (this.isGone ? undefined : this.#loss());
    return loss ?? new DeviceLostError('ERR_MILLRACE_LOST', `Device ${name} is closed.`, 'closed', { device: name });
  }

  /** The error of the device if its channel reports that it is lost. */
  #loss(): DeviceLostError | undefined {
    const loss = this.channel.loss();
    if (loss === undefined) return undefined;
    // The thread that had the device open has ended, and the device is not at fault. The status may arrive before the exit event.
    const hasWorkerEnded = loss.status === Status.STATE;
    if (hasWorkerEnded) return this.channel.endedError();
    const { isApart } = this.channel;
    const again = isApart || this.name.startsWith('cpu') ? 'openDevice gives a new one' : 'only a new process can open it again';
    return faultError(this.name, this.timelines, this.failures.fatal(), loss.driverStatus, again, isApart);
  }

  lose(error: DeviceLostError): void {
    if (this.isGone) return;
    this.state = error.reason === ('closed' satisfies LostReason) ? 'closed' : 'lost';
    this.lostError = error;
    this.waits.lose(error);
    this.#tellState();
    clearTimeout(this.#check);
    const { count } = this.failures;
    const isOperationKnown = error.cause instanceof DeviceLostError;
    const hadWork = [...this.timelines].some((timeline) => timeline.pending > 0);
    for (const timeline of this.timelines) {
      timeline.lose();
      this.failures.note(timeline, Infinity);
    }
    // Promises of work that has finished settle first.
    this.progress.drain();
    this.context.runInAsyncScope(() => this.onLost?.(error));
    // A later wait for a stream gets the error of the device.
    const rejected = [...this.timelines].map((timeline) => this.progress.lose(timeline, error));
    for (const timeline of this.timelines) this.tracker.lose(timeline, error.reason === 'closed' ? undefined : timeline.completed);
    this.slots.tell();
    this.#endTables();
    this.#resolveLost(error);
    // Promises of operations that failed before reject in the turn of the last one, and report their failures.
    void Promise.all(rejected)
      .then(() => new Promise(setImmediate))
      .then(() => this.failures.reportAll())
      .then(() => {
        const isTold =
          isOperationKnown || this.failures.count > count || this.waits.hasToldLoss || this.isLossRead || this.state === 'closed';
        if (hadWork && !isTold) this.failures.report(error);
      })
      .then(() => this.errors.complete());
  }

  /** The device was destroyed, and some of its work does not end. Later calls throw the returned error. */
  hang(still: StillRunning): DeviceLostError {
    const error = hungError(this.name, this.timelines, still);
    this.state = 'lost';
    this.lostError = error;
    this.#tellState();
    return error;
  }

  /** The device takes no work any more, and its memory is gone. */
  get isGone(): boolean {
    return this.state === 'lost' || this.state === 'closed';
  }

  /** The error for a call that needs an open device; undefined if it is open. */
  refuseIfOver(): Error | undefined {
    if (this.state === 'open') return undefined;
    if (this.lostError !== undefined) return this.lostError;
    return new StateError('ERR_MILLRACE_STATE', `Device ${this.name} is closed.`, { device: this.name });
  }

  /** Every stream has drained: reports the remaining failures and closes the streams. */
  finish(): void {
    for (const timeline of this.timelines) this.failures.note(timeline, Infinity);
    this.failures.reportRest(true, Infinity);
    for (const timeline of this.timelines) this.closeTimeline(timeline);
    clearTimeout(this.#check);
    this.#endTables();
    if (this.state !== 'lost') this.state = 'closed';
    this.#tellState();
    this.errors.complete();
  }

  /** The process is about to exit: reports the failures that the next check would have found. */
  tellUnasked(): void {
    if (this.isGone) return;
    for (const timeline of this.timelines) this.failures.note(timeline, Infinity);
    this.failures.reportRest(true, Infinity);
  }

  // ── inside ──

  #noSlot(freed: () => Promise<void>): LimitError {
    const open = this.timelines.size;
    const message = `The number of open streams of device ${this.name} has reached the limit (${open}). Close a stream first.`;
    return new LimitError('ERR_MILLRACE_LIMIT', message, open, freed, { device: this.name });
  }

  #internal(purpose: StreamPurpose): InternalStreams<Timeline> {
    return new InternalStreams(
      purpose,
      (nth) => this.openTimeline(`${purpose}-${nth}`, 0),
      (timeline) => timeline.isComplete,
    );
  }

  /** Submits a record that holds the stream until `channel.releaseHold`. */
  holdStream(timeline: Timeline): number {
    return this.submit(timeline, this.encoder.hold(timeline.slot));
  }

  #tellState(): void {
    const { name, state } = this;
    if (devicesChannel.hasSubscribers) this.context.runInAsyncScope(() => devicesChannel.publish({ device: name, state }));
  }

  /** The error that a call throws when its record was refused. */
  #refusal(status: Status, stream: string): Error {
    const { name } = this;
    const facts = { device: name, stream };
    const { maxPending } = this.channel;
    switch (status) {
      case Status.LIMIT: {
        const message = `The number of operations that wait to be issued on device ${name} has reached the limit (${maxPending}), or their records have ${MAX_PENDING_BYTES} bytes. Await the error's retryAfter, then submit again.`;
        return new LimitError('ERR_MILLRACE_LIMIT', message, maxPending, () => this.waits.room(this.timelines), facts);
      }
      case Status.DEVICE_LOST:
        this.checkLost();
        return this.lostError ?? new DeviceLostError('ERR_MILLRACE_LOST', `Device ${name} is lost.`, 'fault', facts);
      case Status.STATE:
        // The process of the device may have ended a moment ago.
        this.checkLost();
        if (this.lostError !== undefined) return this.lostError;
        return new StateError('ERR_MILLRACE_STATE', `Device ${name} is closed.`, facts);
      default:
        return new InternalError('ERR_MILLRACE_INTERNAL', `Device ${name} refused an operation (internal status ${status}).`, facts);
    }
  }

  #endTables(): void {
    this.live.clear();
    for (const table of Object.values<HandleTable>({ ...this.handles })) table.end();
  }

  #scheduleCheck(): void {
    this.#check = setTimeout(() => {
      this.#check = undefined;
      this.#checkUp();
    }, CHECK_MS);
    if (!this.errors.isAwaited) this.#check.unref();
  }

  #checkUp(): void {
    this.checkLost();
    if (this.isGone) return;
    const isQuiet = [...this.timelines].every((timeline) => timeline.isComplete);
    for (const timeline of this.timelines) {
      timeline.log.look();
      this.failures.note(timeline);
    }
    this.failures.reportRest(false);
    const isFull = this.frees.freeRest();
    this.arena.reclaim();
    if (!isQuiet || isFull || this.arena.isSettling || this.failures.hasUnhandled) this.#scheduleCheck();
  }
}
