// More than 400 lines: reading a device's failures, naming their causes on other devices and reporting each of them once share the entries.
// The failures of a device: turns the numbers that the device reports into the errors that promises reject with, and reports each failure
// once.
//
// A failure has an interval of tickets: the operations that failed together. It is reported by the promise of one of them, or of an
// operation that failed because of it. If no code reads such a
// promise, the failure goes to `device.errors$`, or without a subscriber becomes a process warning. That happens a turn of the event loop
// after everything has finished that was submitted, when the failure was noticed, to its stream and to those that wait for it.
// Thread: owner.
import { Status } from '../../protocol/protocol.gen.js';
import type { FailureRecord } from '../../protocol/reports.js';
import { AbortError, type DeviceLostError, type MillraceError } from '../base/errors.js';
import type { Hub } from '../base/observable.js';
import type { OperationInfo } from '../base/snapshots.js';
import { errorsChannel } from '../base/trace.js';
import { READ_PER_TURN, reads, rejections, reports } from '../base/loop-turns.js';
import type { FailurePage } from './failed-tickets.js';
import { describeFailure, forgottenCause, type KernelFacts } from './failure-errors.js';
import type { FailingGraph } from './graph-launches.js';
import type { Point, StreamClock, Timeline } from './timeline.js';
import { type Look, type UnhandledFailure, UnhandledFailures } from './unhandled-failures.js';
import { setImmediate } from '../base/timers.js';

/** Reported failures that are kept as causes of others, the most recently used ones. For older causes there is a general message. */
const KEPT = 4096;

/** The operation whose failure is asked for. */
export interface FailingOperation extends OperationInfo {
  /** Where a failure of its ticket is found. */
  readonly page?: FailurePage | undefined;
  /** Its records, if there are several. */
  readonly parts?: readonly FailingPart[] | undefined;
  /** The error of its failure, once it was made: every later question gets the same object. */
  failure?: MillraceError | Promise<MillraceError> | undefined;
}

/** A record of an operation, and the failure log of its device. */
export interface FailingPart extends Point {
  readonly failures: FailureLog;
}

/** What the failure log asks of its device. */
export interface FailureContext {
  /** The id by which failures on other devices name this one. */
  readonly channel: number;
  readonly kernel: (handle: number) => KernelFacts | undefined;
  /** Keeps the process alive until a failure's error, which is still being made, was reported. */
  readonly keepAlive: (reason: Promise<void>) => void;
  /** As Channel.reported. */
  readonly reported: (stream: number, through: number) => void;
  /** Settles promises whose tickets have been reached. */
  readonly settle: () => void;
  /** Whether the stream has reached the ticket, and the promises up to there are settled. */
  readonly hasSettled: (timeline: Timeline, ticket: number) => boolean;
  /** The error of the device, for streams of other devices that find it lost or closed. */
  readonly lost: () => DeviceLostError;
  /** As LiveMemory.refused. */
  readonly refused: (timeline: Timeline, ticket: number) => void;
  /** As LiveMemory.use. */
  readonly memoryUse: (freeBytes: number) => string;
  /** Calls the function in the asynchronous context in which the device was opened. */
  readonly inContext: (report: () => void) => void;
}

interface Entry extends UnhandledFailure {
  record: FailureRecord;
  /** Undefined for a failure of no record, such as a variable that could not be bound. */
  readonly timeline: Timeline | undefined;
  /** What the stream's log had of the operation when the failure was read. */
  readonly operation: OperationInfo | undefined;
  /** The graph whose node failed. */
  readonly graph: FailingGraph | undefined;
  isHandled: boolean;
  isToldDownstream?: boolean;
  end?: () => void;
  error: MillraceError | Promise<MillraceError> | undefined;
}

const NO_RECORD: FailureRecord = {
  id: 0,
  first: 0,
  last: 0,
  status: Status.COMPILE,
  driverStatus: 0,
  note: '',
  cause: 0,
  requestedBytes: 0,
  freeBytes: 0,
  requested: 0,
  limit: 0,
  kernel: 0,
  lostDevice: 0,
};

/** A failure, and the log that has its cause. */
interface Found {
  readonly record: FailureRecord;
  readonly failureLog: FailureLog;
}

const EVERYTHING_SETTLED: Look = { hasSettled: () => true, endsAfter: () => [] };

/** The logs of this thread. A failure on one device may be the cause of one on another; ids are unique in the process. */
const logs: Set<WeakRef<FailureLog>> = new Set();

export class FailureLog {
  readonly #device: string;
  readonly #errors: Hub<MillraceError>;
  readonly #timelines: Iterable<Timeline>;
  readonly #context: FailureContext;
  readonly #entries: Map<number, Entry> = new Map();
  /** The entries that were reported, the most recently used at the end. */
  readonly #reported: Set<Entry> = new Set();
  readonly #unhandled: UnhandledFailures = new UnhandledFailures();
  /** Streams with failures that were not read yet. */
  readonly #behind: Set<Timeline> = new Set();
  /** The errors of failed functions of `external`, by ticket, until their failures are read. */
  readonly #thrown: WeakMap<Timeline, Map<number, MillraceError>> = new WeakMap();
  #count = 0;
  /** The first failure that lost the device itself. */
  #fatal: Entry | undefined = undefined;
  #hasWarned = false;
  #isReporting = false;

  /** `timelines`: the open streams of the device. */
  constructor(device: string, errors: Hub<MillraceError>, timelines: Iterable<Timeline>, context: FailureContext) {
    this.#device = device;
    this.#errors = errors;
    this.#timelines = timelines;
    this.#context = context;
    for (const failureLog of logs) if (failureLog.deref() === undefined) logs.delete(failureLog);
    logs.add(new WeakRef(this));
  }

  /** How many failures were read so far. */
  get count(): number {
    return this.#count;
  }

  /** The error of the operation that lost the device, if that is known. Reads the failures of all streams. */
  fatal(): DeviceLostError | undefined {
    for (const timeline of this.#timelines) if (this.#fatal === undefined) this.note(timeline, Infinity);
    // The error of a kernel that faulted needs no build and is no promise.
    return this.#fatal && (this.#errorOf(this.#fatal) as DeviceLostError);
  }

  /** Is the operation that lost the device among those up to the ticket? Of what was read so far. */
  hasFatal(timeline: Timeline, ticket: number): boolean {
    return this.#fatal !== undefined && this.#fatal.timeline === timeline && this.#fatal.record.first <= ticket;
  }

  get hasUnhandled(): boolean {
    return !this.#unhandled.isEmpty;
  }

  /** A host function threw. The error is reported as failures of the device are, unless its promise is read (`isAwaited`) before. */
  threw(timeline: Timeline, error: MillraceError, isAwaited: () => boolean): void {
    this.#unhandled.add(timeline, Infinity, {
      get isHandled() {
        return isAwaited();
      },
      report: () => this.report(error),
    });
    this.noteAndReport(timeline);
  }

  /** The function of an EXTERNAL record failed, and the device will report that as the failure of the record. */
  willFail(timeline: Timeline, ticket: number, error: MillraceError): void {
    const thrown = this.#thrown.get(timeline) ?? new Map<number, MillraceError>();
    this.#thrown.set(timeline, thrown.set(ticket, error));
  }

  /**
   * Reads the failures that are new on a stream: as many as this turn may, and those of everything up to the ticket `through`. Further turns
   * read the others.
   */
  note(timeline: Timeline, through: number = 0): void {
    this.#read(timeline, reads.left);
    while (timeline.isBehind && timeline.known < through) this.#read(timeline, READ_PER_TURN);
    if (!timeline.isBehind) return;
    this.#behind.add(timeline);
    this.#reportSoon();
  }

  #read(timeline: Timeline, count: number): void {
    const fresh = timeline.newFailures(count);
    if (fresh.length === 0) return;
    reads.spend(fresh.length);
    this.#count += fresh.length;
    for (const record of fresh) {
      const known = this.#entries.get(record.id);
      if (known !== undefined) {
        known.record = record;
        continue;
      }
      if (record.status === Status.OUT_OF_MEMORY) this.#context.refused(timeline, record.first);
      const thrown = record.status === Status.FUNCTION ? this.#thrown.get(timeline) : undefined;
      const entry = this.#enter(record, timeline, thrown?.get(record.first));
      thrown?.delete(record.first);
      if (record.status === Status.DEVICE_LOST && record.fault !== undefined) this.#fatal ??= entry;
      // The caller who aborted it knows; what derives from it still fails.
      if (entry.error instanceof AbortError) this.#keep(entry);
      this.#unhandled.add(timeline, record.first, entry);
    }
  }

  /** A possible failure of no record, by its id. `reason` resolves to the error, or to undefined if there is no failure. */
  expect(id: number, reason: Promise<MillraceError | undefined>): void {
    const error = reason.then((settled) => settled ?? forgottenCause(this.#device));
    const entry = this.#enter({ ...NO_RECORD, id }, undefined, error);
    void reason.then((settled) => {
      if (settled === undefined) this.#entries.delete(id);
      if (settled === undefined || entry.isHandled) return;
      entry.error = settled;
      // Operations that fail because of it report it first.
      this.#unhandled.addFor(
        Array.from(this.#timelines, (timeline) => ({ timeline, ticket: timeline.last })),
        entry,
      );
      this.#reportSoon();
    });
  }

  /** As `note`. Promises reject in this turn of the event loop; `device.errors$` and the warning follow in the next. */
  noteAndReport(timeline: Timeline, through?: number): void {
    this.note(timeline, through);
    if (this.hasUnhandled) this.#reportSoon();
  }

  #reportSoon(): void {
    if (this.#isReporting) return;
    this.#isReporting = true;
    setImmediate(() => {
      this.#isReporting = false;
      const behind = [...this.#behind];
      this.#behind.clear();
      for (const timeline of behind) this.note(timeline);
      this.reportRest(false);
    });
  }

  /** The error of a failed operation; undefined if it did not fail. Observers ask here: the failure does not count as reported. */
  peek(timeline: Timeline, ticket: number, operation: FailingOperation): MillraceError | Promise<MillraceError> | undefined {
    if (operation.failure !== undefined) return operation.failure;
    for (const part of operation.parts ?? []) {
      if (!hasFailed(part)) continue;
      operation.failure = part.failures.peek(part.timeline, part.ticket, ofPart(part, operation));
      return operation.failure;
    }
    const found = this.#find(ticket, operation);
    operation.failure = found && this.#describe(found, timeline.label, operation);
    return operation.failure;
  }

  /** As `peek`, and the failure counts as reported. If several records of the operation failed, the error is that of the first. */
  at(timeline: Timeline, ticket: number, operation: FailingOperation): MillraceError | Promise<MillraceError> | undefined {
    const failed = operation.parts?.filter(hasFailed).map((part) => part.failures.at(part.timeline, part.ticket, ofPart(part, operation)));
    const found = this.#find(ticket, operation);
    if (found !== undefined) {
      rejections.spend(1);
      this.#markHandled(found.record.id);
      for (const id of [found.record.id, found.record.cause]) found.failureLog.#markHandled(id);
      const cause = found.failureLog.#entries.get(found.record.cause);
      if (cause !== undefined) cause.isToldDownstream = true;
    }
    operation.failure ??= failed?.[0] ?? (found && this.#describe(found, timeline.label, operation));
    return operation.failure;
  }

  /** The failure of the operation with this record and these parts was reported to code. */
  reported(timeline: Timeline, ticket: number, parts: readonly FailingPart[] | undefined): void {
    this.#context.reported(timeline.slot, ticket);
    for (const part of parts ?? []) part.failures.reported(part.timeline, part.ticket, undefined);
  }

  /** As `reportRest(true)`, for all failures, in as many turns as it takes. */
  async reportAll(): Promise<void> {
    for (const timeline of this.#timelines) this.note(timeline);
    this.reportRest(true);
    while (this.hasUnhandled || this.#behind.size > 0) {
      await new Promise(setImmediate);
      this.reportRest(true);
    }
  }

  /**
   * Reports the failures that no promise has reported, at most `count`; a later turn reports the others. `isFinal`: also those that a
   * promise might still report.
   */
  reportRest(isFinal: boolean, count: number = Math.max(0, reports.left)): void {
    if (!this.hasUnhandled) return;
    // The device may have finished an operation whose promise has not been settled yet.
    this.#context.settle();
    const due = this.#unhandled.take(count, isFinal ? EVERYTHING_SETTLED : this.#look());
    if (due.length > 0) reports.spend(due.length);
    if (due.length === count) this.#reportSoon();
    for (const failure of due) {
      failure.report();
      failure.end?.();
    }
  }

  #look(): Look {
    const hasSettled = (timeline: Timeline, ticket: number): boolean => (timeline.failureLog ?? this).#context.hasSettled(timeline, ticket);
    // Found once a look: many streams may have failed.
    let busy: readonly (readonly [Timeline, ReturnType<StreamClock['followed']>])[] | undefined;
    const endsAfter = (timeline: Timeline, ticket: number): readonly Point[] => {
      busy ??= [...logs]
        .map((each) => each.deref())
        .filter((each) => each !== undefined)
        .flatMap((each) => [...each.#timelines])
        .filter((other) => !hasSettled(other, other.last))
        .map((other) => [other, other.clockEntry.followed()] as const);
      const after = busy.filter(([, followed]) => (followed.get(timeline.clockEntry) ?? 0) >= ticket).map(([other]) => other);
      return [timeline, ...after].map((each) => ({ timeline: each, ticket: each.last }));
    };
    return { hasSettled, endsAfter };
  }

  #find(ticket: number, { page }: FailingOperation): Found | undefined {
    const record = page?.at(ticket);
    return record && { record, failureLog: this.#logOf(record.cause) ?? this };
  }

  /** The log of the device whose stream had the failure. Its streams may not have been read since. */
  #logOf(cause: number): FailureLog | undefined {
    for (const failureLog of cause === 0 ? [] : [this, ...[...logs].map((other) => other.deref())]) {
      if (failureLog === undefined) continue;
      if (!failureLog.#entries.has(cause)) for (const timeline of failureLog.#timelines) failureLog.#noteUntil(timeline, cause);
      if (failureLog.#entries.has(cause)) return failureLog;
    }
    return undefined;
  }

  #noteUntil(timeline: Timeline, cause: number): void {
    for (this.note(timeline); timeline.isBehind && !this.#entries.has(cause); ) this.#read(timeline, READ_PER_TURN);
  }

  /** Emits the error in `errors$`; without an observer the first one becomes a warning. */
  report(error: MillraceError): void {
    this.#context.inContext(() => this.#reportHere(error));
  }

  #reportHere(error: MillraceError): void {
    if (errorsChannel.hasSubscribers) errorsChannel.publish({ device: this.#device, error });
    if (this.#errors.observed) {
      this.#errors.next(error);
    } else if (!this.#hasWarned) {
      this.#hasWarned = true;
      const hint = `Read \`done\` of the operation, or subscribe to errors$ of device ${this.#device}. Further failures of the device print no warning.`;
      process.emitWarning(`${error.message}\n${hint}`, { type: 'MillraceWarning', code: error.code });
    }
  }

  #enter(record: FailureRecord, timeline: Timeline | undefined, error: Entry['error']): Entry {
    const graph = record.node === undefined ? undefined : timeline?.graphLaunches.at(record.first);
    const operation = timeline?.log.at(record.first);
    const entry: Entry = { record, timeline, operation, graph, error, isHandled: false, report: () => this.#reportEntry(entry) };
    if (timeline !== undefined) entry.end = () => this.reported(timeline, entry.record.last, undefined);
    this.#entries.set(record.id, entry);
    return entry;
  }

  #reportEntry(entry: Entry): void {
    this.#keep(entry);
    // An operation that told the cause may derive from this one.
    const failureLog = this.#logOf(entry.record.cause);
    if (failureLog !== undefined && failureLog.#entries.get(entry.record.cause)?.isToldDownstream === true) return;
    const error = this.#errorOf(entry);
    if (error instanceof Promise) this.#context.keepAlive(error.then((settled) => this.report(settled)));
    else this.report(error);
  }

  /** The error of a failure. Every error that has it as `cause` gets the same object. */
  #errorOf(entry: Entry): MillraceError | Promise<MillraceError> {
    if (entry.error === undefined) {
      const { record, timeline, operation } = entry;
      // The cause may be a failure of another device.
      const failureLog = this.#logOf(record.cause) ?? this;
      entry.error = this.#describe({ record, failureLog }, timeline?.label ?? '', operation);
    }
    if (this.#reported.delete(entry)) this.#reported.add(entry);
    return entry.error;
  }

  #markHandled(id: number): void {
    for (let entry = this.#entries.get(id); entry !== undefined && !entry.isHandled; entry = this.#entries.get(entry.record.cause))
      this.#keep(entry);
  }

  /** The failure is reported, and kept only as a cause of others. */
  #keep(entry: Entry): void {
    entry.isHandled = true;
    this.#reported.add(entry);
    if (this.#reported.size <= KEPT) return;
    const [oldest] = this.#reported;
    this.#reported.delete(oldest as Entry);
    this.#entries.delete((oldest as Entry).record.id);
  }

  #describe({ record, failureLog }: Found, stream: string, operation: OperationInfo | undefined): MillraceError | Promise<MillraceError> {
    const { id, node } = record;
    const thrown = record.status === Status.FUNCTION ? this.#entries.get(id)?.error : undefined;
    if (thrown !== undefined) return thrown;
    const failed = node === undefined ? undefined : this.#entries.get(id)?.graph?.failedNode(node, record.kernel);
    return describeFailure(record, {
      device: this.#device,
      memoryUse: this.#context.memoryUse,
      stream,
      operation,
      node: node === undefined ? undefined : (failed?.name ?? `node ${node} of a graph`),
      kernel: failed === undefined ? this.#context.kernel(record.kernel) : failed.kernel,
      cause: () => {
        const entry = failureLog.#entries.get(record.cause);
        return entry === undefined ? forgottenCause(failureLog.#device) : failureLog.#errorOf(entry);
      },
      lost: () => {
        const open = [...logs].map((each) => each.deref());
        const other = open.find((each) => each !== undefined && each.#context.channel === record.lostDevice);
        return other && { device: other.#device, error: other.#context.lost() };
      },
    });
  }
}

/** Did the record fail? To be asked after the stream has reached it. */
export function hasFailed({ failures, timeline, ticket, page }: FailingPart): boolean {
  failures.note(timeline, ticket);
  return page?.at(ticket) !== undefined;
}

/** One record of an operation, for messages. */
function ofPart({ page }: FailingPart, { id, kind, label, bytes, stream, device }: FailingOperation): FailingOperation {
  return { id, kind, label, bytes, stream, device, page };
}
