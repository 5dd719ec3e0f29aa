// What the device reports as numbers becomes the error that a promise rejects with, and what nobody asked about is told.
//
// A failure is told once: to whoever waits for an operation in its interval, or for one that failed because of it;
// else, after everything that was submitted when it was noticed has finished and a turn of the loop has passed, to
// `device.errors$`, and without a subscriber as one process warning.
// Thread: owner.
import { Status } from '../../protocol/protocol.gen.js';
import type { FailureRecord } from '../../protocol/reports.js';
import { type DeviceLostError, MillraceError } from '../base/errors.js';
import type { Hub } from '../base/observable.js';
import type { OperationInfo } from '../base/snapshots.js';
import { errorsChannel } from '../base/trace.js';
import type { FailurePage } from './failed-tickets.js';
import { describeFailure, type KernelFacts } from './failure-errors.js';
import type { Point, Timeline } from './timeline.js';
import { type UnobservedFailure, UnobservedFailures } from './unobserved-failures.js';

/** Failures that were told and are kept as the causes of others, those asked for last; older ones lose their text, not their effect. */
const KEPT = 4096;

/** An operation as those who ask for its failure name it. */
export interface FailingOperation extends OperationInfo {
  /** Where a failure of its ticket is found. */
  readonly page?: FailurePage | undefined;
  /** The last writes to what a copy reads. */
  readonly sources?: readonly Point[];
  /** What it consists of, if that is more than its ticket. */
  readonly parts?: readonly FailingPart[] | undefined;
  /** The error that was made of its failure, for all who ask again. */
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
  /** Keeps the process alive until a failure's reason, which is under way, has been told. */
  readonly holdLoop: (reason: Promise<void>) => void;
  /** Settles the promises whose tickets have been reached. */
  readonly settle: () => void;
  /** What became of a device that others find gone. */
  readonly lost: () => DeviceLostError;
  /** Calls the function in the asynchronous context in which the device was opened. */
  readonly inContext: (tell: () => void) => void;
}

interface Entry extends UnobservedFailure {
  record: FailureRecord;
  /** Undefined: it is no record's. */
  readonly timeline: Timeline | undefined;
  isHeard: boolean;
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

/** A failure, and whose failure log its numbers are in. */
interface Found {
  readonly record: FailureRecord;
  readonly failureLog: FailureLog;
}

/** The thread's books: a failure on one device may be the cause of one on another, and ids are the process's. */
const books: Set<WeakRef<FailureLog>> = new Set();

export class FailureLog {
  readonly #device: string;
  readonly #errors: Hub<MillraceError>;
  readonly #timelines: Iterable<Timeline>;
  readonly #context: FailureContext;
  readonly #entries: Map<number, Entry> = new Map();
  /** Of the entries, those that were told, those asked for last at the end. */
  readonly #told: Set<Entry> = new Set();
  readonly #untold: UnobservedFailures = new UnobservedFailures();
  #hasWarned = false;
  #isTelling = false;

  /** `timelines`: the open streams of the device. */
  constructor(device: string, errors: Hub<MillraceError>, timelines: Iterable<Timeline>, context: FailureContext) {
    this.#device = device;
    this.#errors = errors;
    this.#timelines = timelines;
    this.#context = context;
    for (const failureLog of books) if (failureLog.deref() === undefined) books.delete(failureLog);
    books.add(new WeakRef(this));
  }

  get hasUntold(): boolean {
    return !this.#untold.isEmpty;
  }

  /** A function of the program failed; it is told as the device's failures are, unless `isAwaited` by then. */
  threw(timeline: Timeline, error: MillraceError, isAwaited: () => boolean): void {
    this.#untold.add(timeline, {
      get isHeard() {
        return isAwaited();
      },
      tell: () => this.#tell(error),
    });
    this.noteAndTell(timeline);
  }

  /** Takes in what is new on a stream. */
  note(timeline: Timeline): void {
    for (const record of timeline.newFailures()) {
      const known = this.#entries.get(record.id);
      if (known !== undefined) {
        known.record = record;
        continue;
      }
      const entry = this.#enter(record, timeline, undefined);
      this.#untold.add(timeline, entry);
    }
  }

  /** A failure that is no record's, by its id; `reason` resolves to it, or to nothing when there is none. */
  expect(id: number, reason: Promise<MillraceError | undefined>): void {
    const error = reason.then((settled) => settled ?? forgottenCause(this.#device));
    const entry = this.#enter({ ...NO_RECORD, id }, undefined, error);
    void reason.then((settled) => {
      if (settled === undefined) this.#entries.delete(id);
      if (settled === undefined || entry.isHeard) return;
      entry.error = settled;
      // What uses it fails of it, and is heard first.
      this.#untold.addFor(
        Array.from(this.#timelines, (timeline) => ({ timeline, ticket: timeline.last })),
        entry,
      );
      this.#tellSoon();
    });
  }

  /** The same; those who wait are told in this turn, the rest of the world in the next. */
  noteAndTell(timeline: Timeline): void {
    this.note(timeline);
    if (this.hasUntold) this.#tellSoon();
  }

  #tellSoon(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    setImmediate(() => {
      this.#isTelling = false;
      this.tellRest(false);
    });
  }

  /** The error of a failed operation, for those who only watch. */
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

  /** The error of a failed operation, for whoever waits for it; undefined when it did not fail. Of its parts, that of the first. */
  at(timeline: Timeline, ticket: number, operation: FailingOperation): MillraceError | Promise<MillraceError> | undefined {
    const failed = operation.parts?.filter(hasFailed).map((part) => part.failures.at(part.timeline, part.ticket, ofPart(part, operation)));
    const found = this.#find(ticket, operation);
    if (found !== undefined) {
      this.#markHeard(found.record.id);
      for (const id of [found.record.id, found.record.cause]) found.failureLog.#markHeard(id);
    }
    operation.failure ??= failed?.[0] ?? (found && this.#describe(found, timeline.label, operation));
    return operation.failure;
  }

  /** Tells the failures that nobody waited for. `isFinal`: nobody will. */
  tellRest(isFinal: boolean): void {
    const due = this.#untold.take(isFinal);
    if (due.length === 0) return;
    // The device may have finished an operation that somebody waits for, and its promise not have been settled yet.
    this.#context.settle();
    for (const untold of due) if (!untold.isHeard) untold.tell();
  }

  #find(ticket: number, { page, sources = NOWHERE }: FailingOperation): Found | undefined {
    const own = page?.at(ticket);
    if (own !== undefined && own.cause === 0) return { record: own, failureLog: this };
    const failureLog = own && this.#bookOf(own.cause);
    if (own !== undefined && failureLog !== undefined) return { record: own, failureLog };
    return this.#findSource(sources) ?? (own && { record: own, failureLog: this });
  }

  /** Whose streams had the failure, which nobody may have looked for yet. */
  #bookOf(cause: number): FailureLog | undefined {
    for (const failureLog of [this, ...[...books].map((other) => other.deref())]) {
      if (failureLog === undefined) continue;
      if (!failureLog.#entries.has(cause)) for (const timeline of failureLog.#timelines) failureLog.note(timeline);
      if (failureLog.#entries.has(cause)) return failureLog;
    }
    return undefined;
  }

  /** A kernel's fault is reported when it has run: a copy issued before that took what the kernel left. */
  #findSource(sources: readonly Point[]): Found | undefined {
    for (const { timeline, ticket, page } of sources) {
      const failureLog = timeline.failureLog ?? this;
      failureLog.note(timeline);
      const first = page?.at(ticket);
      if (first === undefined) continue;
      const record = { ...first, status: Status.UPSTREAM, cause: first.cause || first.id };
      return { record, failureLog: failureLog.#bookOf(record.cause) ?? failureLog };
    }
    return undefined;
  }

  #tell(error: MillraceError): void {
    this.#context.inContext(() => this.#tellHere(error));
  }

  #tellHere(error: MillraceError): void {
    if (errorsChannel.hasSubscribers) errorsChannel.publish({ device: this.#device, error });
    if (this.#errors.observed) {
      this.#errors.next(error);
    } else if (!this.#hasWarned) {
      this.#hasWarned = true;
      const hint = `Read \`done\` of the operation, or subscribe to errors$ of device ${this.#device}; its further failures print no warning.`;
      process.emitWarning(`${error.message}\n${hint}`, { type: 'MillraceWarning', code: error.code });
    }
  }

  #enter(record: FailureRecord, timeline: Timeline | undefined, error: Entry['error']): Entry {
    const entry: Entry = { record, timeline, error, isHeard: false, tell: () => this.#tellEntry(entry) };
    this.#entries.set(record.id, entry);
    return entry;
  }

  #tellEntry(entry: Entry): void {
    this.#keep(entry);
    const error = this.#errorOf(entry);
    if (error instanceof Promise) this.#context.holdLoop(error.then((settled) => this.#tell(settled)));
    else this.#tell(error);
  }

  /** One error per failure, for those who have it as their cause. */
  #errorOf(entry: Entry): MillraceError | Promise<MillraceError> {
    if (entry.error === undefined) {
      const { record, timeline } = entry;
      // The first failure may be another device's.
      const failureLog = (record.cause === 0 ? undefined : this.#bookOf(record.cause)) ?? this;
      entry.error = this.#describe({ record, failureLog }, timeline?.label ?? '', undefined);
    }
    if (this.#told.delete(entry)) this.#told.add(entry);
    return entry.error;
  }

  #markHeard(id: number): void {
    for (let entry = this.#entries.get(id); entry !== undefined && !entry.isHeard; entry = this.#entries.get(entry.record.cause))
      this.#keep(entry);
  }

  /** It is told, and from now on only a cause of others. */
  #keep(entry: Entry): void {
    entry.isHeard = true;
    this.#told.add(entry);
    if (this.#told.size <= KEPT) return;
    const [oldest] = this.#told;
    this.#told.delete(oldest as Entry);
    this.#entries.delete((oldest as Entry).record.id);
  }

  #describe({ record, failureLog }: Found, stream: string, operation: OperationInfo | undefined): MillraceError | Promise<MillraceError> {
    return describeFailure(record, {
      device: this.#device,
      stream,
      operation,
      kernel: this.#context.kernel(record.kernel),
      cause: () => {
        const entry = failureLog.#entries.get(record.cause);
        return entry === undefined ? forgottenCause(failureLog.#device) : failureLog.#errorOf(entry);
      },
      lost: () => {
        const open = [...books].map((each) => each.deref());
        const other = open.find((each) => each !== undefined && each.#context.channel === record.lostDevice);
        return other && { device: other.#device, error: other.#context.lost() };
      },
    });
  }
}

/** After the stream has reached it. */
export function hasFailed({ failures, timeline, ticket, page }: FailingPart): boolean {
  failures.note(timeline);
  return page?.at(ticket) !== undefined;
}

const NOWHERE: readonly Point[] = [];

/** For messages; the parts are looked at one by one. */
function ofPart({ page }: FailingPart, { id, kind, label, bytes, stream, device }: FailingOperation): FailingOperation {
  return { id, kind, label, bytes, stream, device, page };
}

function forgottenCause(device: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_UPSTREAM', `An earlier operation on device ${device} failed.`);
}
