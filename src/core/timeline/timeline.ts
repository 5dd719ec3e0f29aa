// A stream's tickets: the last one submitted, how far the device is, and which of them failed.
//
// Progress is two words of the stream's slot, one written by the device and one by the host; completed is the larger.
// While tickets fit 32 bits, the low halves of the words are enough, so a query is two atomic loads and no BigInt. Beyond 32 bits,
// JavaScript reads the high half before and after the low one, because it sees a 64-bit store as two halves.
// Thread: owner.
import { TimelineSlot } from '../../protocol/protocol.gen.js';
import type { FailurePart, FailureRecord } from '../../protocol/reports.js';
import { type CaptureError, type CaptureReason, InternalError } from '../base/errors.js';
import type { OperationKind } from '../base/snapshots.js';
import type { Channel } from '../channel/channel.js';
import { FailedTickets, type FailurePage } from './failed-tickets.js';
import { GraphLaunches } from './graph-launches.js';
import type { FailureLog } from './failures.js';
import { OperationLog } from './operation-log.js';

const TWO_32 = 4294967296;
const DEVICE_WORD = TimelineSlot.DEVICE_WORD >> 2;
const HOST_WORD = TimelineSlot.HOST_WORD >> 2;
const FAILURES = TimelineSlot.FAILURES >> 2;
/** Words of the device, in the first slot. */
const FAULT = TimelineSlot.FAULT >> 2;
const ASKS = TimelineSlot.ASKS >> 2;
const AWAITED = TimelineSlot.AWAITED >> 2;

const NO_WORDS = new Int32Array(0);
const NO_FAILURES: readonly FailureRecord[] = [];
const NO_PART: FailurePart = { records: NO_FAILURES, rest: 0 };

/** A stream's vector clock, which the AccessTracker makes and reads: src/core/ordering/vector-clock.ts. */
export interface StreamClock {
  /** The clock of the stream's next record; undefined until the thread has a checked stream. */
  readonly clock: Clock | undefined;
  /** The stream is open. */
  begin(): void;
  /** The stream has finished and is closed: what comes after it has nothing left to wait for. */
  end(): void;
  /** The host has observed that the ticket, which had this clock, has finished. */
  observe(ticket: number, clock: Clock | undefined): void;
  /** The tickets of other streams after which it comes by waits, its own and those of the streams that it waits for. */
  followed(): ReadonlyMap<StreamClock, number>;
}

/** The points of other streams that a point comes after, as one ticket for each stream. Only the AccessTracker reads it. */
export type Clock = ReadonlyMap<StreamClock, number>;

/** What takes the operations of a stream while they are captured: see src/core/graphs/capture-session.ts. */
export interface StreamRecording {
  /** Adds the record at the start of `block` as a node. Returns its ticket in the timeline. */
  add(timeline: Timeline, block: Uint8Array): number;
  /**
   * Orders the next node of the timeline after a ticket of the other one, and after `nodes`. Throws CaptureError unless both are of this
   * capture.
   */
  follow(timeline: Timeline, other: Timeline, ticket: number, nodes?: readonly number[]): void;
  /** The nodes that the next node of the timeline will come after, besides the last one of the timeline. */
  awaited(timeline: Timeline): readonly number[];
  /** The memory whose accesses the capture keeps instead of those of `memory`. */
  memoryOf<M extends object>(memory: M): M;
  /** The number of the slot's first entry in a launch of the graph; undefined for a slot of another capture. */
  entryOf(slot: object): number | undefined;
  /** The last node of the timeline takes these arguments from slots. */
  takeSlots(timeline: Timeline, slots: readonly SlotUse[]): void;
  /** Names the last node of the timeline. */
  name(timeline: Timeline, kind: OperationKind, label: string | undefined): void;
  /** The last node of the timeline is a kernel with grid barriers, and takes its slot by this argument. */
  takeBarrier(timeline: Timeline, arg: number): void;
  /** Each launch of the graph calls the function after it. */
  addHost(host: { readonly fn: () => unknown; readonly label: string | undefined }): void;
  /** The last node of a timeline records this event, whose handle the graph keeps. */
  addEvent(event: RecordedEvent): void;
  /** Memory of an array of the capture: it was allocated, or `allocation` tells how to. */
  addAllocation(memory: object, allocation?: CapturedAllocation): void;
  /** A node uses memory that has no contents now. */
  useWithoutContents(memory: object, isRead: boolean): void;
  /** The timeline of the stream itself, on which an array of the capture is allocated. */
  outside(timeline: Timeline): Timeline;
  /** The same, for memory that the library needs. */
  own(timeline: Timeline): Timeline;
  /** A timeline of the capture for another stream, of this device. */
  join(core: object, outside: Timeline): Timeline;
  /** The error of a call that a capture does not take, `what` with the device and the stream in front. */
  refusal(timeline: Timeline, reason: CaptureReason, what: string): CaptureError;
}

/** Memory that an array of a capture needs. */
export interface CapturedAllocation {
  /** The stream on which it is allocated. */
  readonly on: Timeline;
  /** The AllocKind. */
  readonly kind: number;
  /** Allocates it, or makes it share the memory of another handle. */
  bind(shared: number | undefined): void;
}

/** An event with timing, as a graph that records it sees it. */
export interface RecordedEvent {
  /** The graph keeps the event. */
  hold(): void;
  /** The graph does not keep it any longer. */
  release(): void;
  /** A launch of the graph was submitted. */
  noteLaunch(timeline: Timeline, ticket: number): void;
}

/** An argument of a captured launch that a slot fills in. */
export interface SlotUse {
  /** The number of the LaunchArg. */
  readonly arg: number;
  /** The number of the entry that each launch of the graph gives. */
  readonly entry: number;
}

/** A place in a stream: everything up to `ticket`. */
export interface Point {
  readonly timeline: Timeline;
  readonly ticket: number;
  /** The points that this one comes after; undefined before clocks are kept, and where they are not known. */
  readonly clock?: Clock | undefined;
  /** In a capture: further nodes that a wait for the point comes after. */
  readonly nodes?: readonly number[] | undefined;
  /** Where a failure of the ticket is found. */
  readonly page?: FailurePage | undefined;
}

/** A share of a device, as its streams and the graphs that were captured on them see it. */
export interface TimelinePartition {
  readonly id: number;
  /** Throws StateError if it is closed. */
  checkOpen(): void;
  /** A graph with nodes of the partition is launched or uploaded: the partition closes after this ticket. */
  noteGraph(timeline: Timeline, ticket: number): void;
}

/** What a timeline asks of the channel of its device. */
type TimelineChannel = Pick<Channel, 'id' | 'backend' | 'info' | 'timeline' | 'lastTicket' | 'failures'>;

/** The slot of timelines that the device does not know. */
const NEVER_COMPLETE = new SharedArrayBuffer(TimelineSlot.BYTE_SIZE);

export class Timeline {
  /** The stream's number in records. */
  readonly slot: number;
  /** For messages. */
  readonly label: string;
  /** The last ticket submitted. */
  last: number;
  readonly clockEntry: StreamClock;
  /** The operations at its tickets. */
  readonly log: OperationLog;
  /** The capture that the timeline belongs to; undefined for the timeline of a stream. */
  recording: StreamRecording | undefined = undefined;
  /** The launches of graphs that have not finished. */
  readonly graphLaunches: GraphLaunches = new GraphLaunches();
  /** Other code submits work to the stream, too. */
  isForeign: boolean = false;
  /** The share of the device that it runs on; undefined for the whole device. */
  partition: TimelinePartition | undefined = undefined;
  /** The failure log of its device. */
  failureLog: FailureLog | undefined = undefined;
  #channel: TimelineChannel | undefined;
  #words: Int32Array;
  readonly #base: number;
  /** The last ticket of the streams that had the slot before. */
  readonly #origin: number;
  readonly #failed: FailedTickets;
  #floor = 0;
  #failureVersion: number;
  #isEnding = false;
  #isRetired = false;
  /** The last ticket that counts as finished, once the stream is closed or lost. */
  #final: number | undefined = undefined;

  constructor(channel: TimelineChannel, slot: number, label: string, clockEntry: StreamClock) {
    this.#channel = channel;
    this.slot = slot;
    this.label = label;
    this.clockEntry = clockEntry;
    this.log = new OperationLog(this, `${channel.backend}:${channel.info.ordinal}`);
    this.last = channel.lastTicket(slot);
    this.#origin = this.last;
    this.#failed = new FailedTickets(this.last);
    this.#words = new Int32Array(channel.timeline, 0, channel.timeline.byteLength >> 2);
    this.#base = (slot * TimelineSlot.BYTE_SIZE) >> 2;
    this.#failureVersion = Atomics.load(this.#words, this.#base + FAILURES);
  }

  /** The timeline of a stream in a capture: its tickets count nodes, which never complete. */
  static ofCapture({ backend, info, id }: Channel, label: string, clockEntry: StreamClock, recording: StreamRecording): Timeline {
    const channel: TimelineChannel = { backend, info, id, timeline: NEVER_COMPLETE, lastTicket: () => 0, failures: () => NO_PART };
    const timeline = new Timeline(channel, 0, label, clockEntry);
    timeline.recording = recording;
    return timeline;
  }

  /** The channel of a stream that has not been closed. */
  get channel(): Channel {
    if (this.#channel === undefined) throw new InternalError('ERR_MILLRACE_INTERNAL', `Stream ${this.label} has no channel any more.`);
    // The other members are asked for timelines of streams only.
    return this.#channel as Channel;
  }

  /** Everything up to this ticket has finished. */
  get completed(): number {
    return this.#final ?? this.deviceCompleted;
  }

  /** The same, including what a lost device has finished since it was lost. */
  get deviceCompleted(): number {
    if (this.#isRetired) return this.last;
    if (this.last >= TWO_32) return Math.max(this.#wide(this.#base + DEVICE_WORD), this.#wide(this.#base + HOST_WORD), this.#floor);
    const device = Atomics.load(this.#words, this.#base + DEVICE_WORD) >>> 0;
    const host = Atomics.load(this.#words, this.#base + HOST_WORD) >>> 0;
    const completed = device > host ? device : host;
    return completed > this.#floor ? completed : this.#floor;
  }

  /** The record that creates the stream was submitted. It does not count as pending work. */
  begin(): void {
    this.#floor = this.last;
    this.clockEntry.begin();
  }

  /** Everything submitted so far. */
  here(): Point {
    const { last: ticket, recording } = this;
    const { clock } = this.clockEntry;
    return recording === undefined ? { timeline: this, ticket, clock } : { timeline: this, ticket, clock, nodes: recording.awaited(this) };
  }

  /** Everything up to a ticket. */
  at(ticket: number): Point {
    return ticket === this.last ? this.here() : { timeline: this, ticket };
  }

  get pending(): number {
    const pending = this.last - this.completed;
    return pending > 0 ? pending : 0;
  }

  get isComplete(): boolean {
    return this.completed >= this.last;
  }

  hasReached(ticket: number): boolean {
    return this.completed >= ticket;
  }

  /** Whether something waits for the stream: the channel then has the device write its word at once. */
  tellAwaited(isAwaited: boolean): void {
    if (this.#words !== NO_WORDS) Atomics.store(this.#words, this.#base + AWAITED, Number(isAwaited));
  }

  /** Its destroy record was submitted: no record may follow. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  end(): void {
    this.#isEnding = true;
  }

  /**
   * The stream was destroyed with nothing pending. Its points stay reached when another stream gets the slot. Memory of other devices may
   * reference this timeline for long, so it drops its references to its own device.
   */
  retire(): void {
    this.#isEnding = true;
    this.#isRetired = true;
    this.#final = this.last;
    this.#channel = undefined;
    this.failureLog = undefined;
    this.#words = NO_WORDS;
    this.#failed.settle(this.last);
    this.clockEntry.end();
    this.log.clear();
  }

  /**
   * The device is lost: what has not finished counts as lost from now on, even if the device finishes it later. So promises, `isComplete`
   * and observers agree at any time.
   */
  lose(): void {
    this.#final ??= this.completed;
  }

  get isRetired(): boolean {
    return this.#isRetired;
  }

  /** Everything up to this ticket has finished, and its failures were returned by `newFailures`. Never behind in a closed stream. */
  get known(): number {
    return this.#failed.known;
  }

  /** The ticket was reached: reads its failures unless they are known, so that what derives from them on any device is poisoned. */
  noteFailures(ticket: number): void {
    if (this.known < ticket) this.failureLog?.note(this);
  }

  /** There are failures that `newFailures` has not returned yet. */
  get isBehind(): boolean {
    return this.#failed.isBehind && !this.#isRetired;
  }

  /**
   * Failures that were added or have grown since the last call, about `count` of them if there are more. A failure is reported before its
   * tickets complete. The slot's word is a version number of the list. The newest interval may still grow, so it is read again.
   */
  newFailures(count: number): readonly FailureRecord[] {
    if (this.#isRetired) return NO_FAILURES;
    const { completed } = this;
    // A kernel that faulted, on any stream, sets a word of the device. The call below turns its report into failures of all operations
    // that derive from it, before any of them settles. The word is cleared after that, so the version is read after the word.
    const isReported = (Atomics.load(this.#words, FAULT) | Atomics.load(this.#words, ASKS)) !== 0;
    const version = Atomics.load(this.#words, this.#base + FAILURES);
    const isNew = isReported || version !== this.#failureVersion;
    if (isNew || (this.#failed.isBehind && count > 0)) {
      this.#failureVersion = version;
      const { records, rest } = this.channel.failures(this.slot, this.#failed.from, Math.max(count, 0) + 1);
      const fresh = this.#failed.add(records, this.#origin);
      this.#failed.haveRead(rest, completed);
      return fresh;
    }
    if (!this.#failed.isBehind) this.#failed.settle(completed);
    return NO_FAILURES;
  }

  /** Where a failure of the ticket will be found. Ask when the ticket is submitted: later there may be no page for it. */
  failurePage(ticket: number): FailurePage | undefined {
    return this.#failed.pageOf(ticket);
  }

  #wide(at: number): number {
    for (;;) {
      const high = Atomics.load(this.#words, at + 1) >>> 0;
      const low = Atomics.load(this.#words, at) >>> 0;
      if (Atomics.load(this.#words, at + 1) >>> 0 === high) return high * TWO_32 + low;
    }
  }
}
