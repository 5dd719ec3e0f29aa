// What the device reports as numbers becomes the error that a promise rejects with, and what nobody asked about is told.
//
// A failure is told once: to whoever waits for an operation in its interval, or for one that failed because of it;
// else, after everything that was submitted when it was noticed has finished and a turn of the loop has passed, to
// `device.errors$`, and without a subscriber as one process warning.
// Thread: owner.
import { Status } from '../../protocol/protocol.gen.js';
import type { FailureRecord } from '../../protocol/reports.js';
import { ASSERTION_PARAMETER, KERNEL_FAULTS, LAUNCH_PARAMETER, REFUSED_LAUNCH } from '../channel/build.js';
import {
  BoundsError,
  DeviceLostError,
  InternalError,
  LaunchError,
  MillraceError,
  OutOfMemoryError,
  UnsupportedError,
  UpstreamError,
} from '../base/errors.js';
import type { Hub } from '../base/observable.js';
import type { OperationInfo } from '../base/snapshots.js';
import { errorsChannel } from '../base/trace.js';
import type { Point, Timeline } from './timeline.js';

/** Failures kept for those who fail because of them; older ones lose their text, not their effect. */
const KEPT = 4096;

/** An operation as those who ask for its failure name it. */
export interface FailingOperation extends OperationInfo {
  /** The last writes to what a copy reads. */
  readonly sources?: readonly Point[];
  /** What it consists of, if that is more than its ticket. */
  readonly parts?: readonly FailingPart[] | undefined;
}

/** A record of an operation, and the book of its device. */
export interface FailingPart extends Point {
  readonly failures: FailureBook;
}

/** What an error needs to know of a kernel. */
export interface KernelFacts {
  readonly name: string;
  /** Parameter names, in order. */
  readonly parameters: readonly string[];
  /** Arrays that it declares. */
  readonly arrays: readonly string[];
  /** The conditions that it asserts. */
  readonly assertions: readonly string[];
  /** Settles when the build does. */
  readonly built: Promise<unknown>;
}

/** What the book asks of its device. */
export interface FailureContext {
  readonly kernel: (handle: number) => KernelFacts | undefined;
  /** Keeps the process alive until a failure's reason, which is under way, has been told. */
  readonly holdLoop: (reason: Promise<void>) => void;
}

interface Entry {
  record: FailureRecord;
  /** Undefined: it is no record's. */
  readonly timeline: Timeline | undefined;
  /** Everything submitted when it was noticed: of its stream, or of all. */
  until: readonly Point[];
  isTold: boolean;
  error: MillraceError | Promise<MillraceError> | undefined;
}

/** What a function of the program threw. */
interface Thrown {
  readonly timeline: Timeline;
  /** Everything submitted when it threw. */
  readonly untilTicket: number;
  readonly error: MillraceError;
  readonly isAwaited: () => boolean;
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
};

/** A failure, and whose book its numbers are in. */
interface Found {
  readonly record: FailureRecord;
  readonly book: FailureBook;
}

/** The thread's books: a failure on one device may be the cause of one on another, and ids are the process's. */
const books: Set<WeakRef<FailureBook>> = new Set();

export class FailureBook {
  readonly #device: string;
  readonly #errors: Hub<MillraceError>;
  readonly #timelines: Iterable<Timeline>;
  readonly #context: FailureContext;
  readonly #entries: Map<number, Entry> = new Map();
  readonly #untold: Set<Entry> = new Set();
  readonly #thrown: Set<Thrown> = new Set();
  #hasWarned = false;
  #isTelling = false;

  /** `timelines`: the open streams of the device. */
  constructor(device: string, errors: Hub<MillraceError>, timelines: Iterable<Timeline>, context: FailureContext) {
    this.#device = device;
    this.#errors = errors;
    this.#timelines = timelines;
    this.#context = context;
    for (const book of books) if (book.deref() === undefined) books.delete(book);
    books.add(new WeakRef(this));
  }

  get hasUntold(): boolean {
    return this.#untold.size > 0 || this.#thrown.size > 0;
  }

  /** A function of the program failed; it is told as the device's failures are, unless `isAwaited` by then. */
  threw(timeline: Timeline, error: MillraceError, isAwaited: () => boolean): void {
    this.#thrown.add({ timeline, untilTicket: timeline.last, error, isAwaited });
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
      const entry: Entry = { record, timeline, until: [{ timeline, ticket: timeline.last }], isTold: false, error: undefined };
      this.#entries.set(record.id, entry);
      this.#untold.add(entry);
      if (this.#entries.size > KEPT) this.#dropOldest();
    }
  }

  /** A failure that is no record's, by its id; `reason` resolves to it, or to nothing when there is none. */
  expect(id: number, reason: Promise<MillraceError | undefined>): void {
    const error = reason.then((settled) => settled ?? forgottenCause(this.#device));
    const entry: Entry = { record: { ...NO_RECORD, id }, timeline: undefined, until: [], isTold: false, error };
    this.#entries.set(id, entry);
    void reason.then((settled) => {
      if (settled === undefined) this.#entries.delete(id);
      if (settled === undefined || entry.isTold) return;
      entry.error = settled;
      // What uses it fails of it, and is heard first.
      entry.until = Array.from(this.#timelines, (timeline) => ({ timeline, ticket: timeline.last }));
      this.#untold.add(entry);
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
    for (const part of operation.parts ?? []) {
      if (hasFailed(part)) return part.failures.peek(part.timeline, part.ticket, withoutParts(operation));
    }
    const found = this.#find(timeline, ticket, operation.sources);
    return found && this.#describe(found, timeline.label, operation);
  }

  /** The error of a failed operation, for whoever waits for it; undefined when it did not fail. Of its parts, that of the first. */
  at(timeline: Timeline, ticket: number, operation: FailingOperation): MillraceError | Promise<MillraceError> | undefined {
    const failed = operation.parts?.filter(hasFailed).map((part) => part.failures.at(part.timeline, part.ticket, withoutParts(operation)));
    const found = this.#find(timeline, ticket, operation.sources);
    if (found !== undefined) {
      this.#markTold(found.record.id);
      for (const id of [found.record.id, found.record.cause]) found.book.#markTold(id);
    }
    return failed?.[0] ?? (found && this.#describe(found, timeline.label, operation));
  }

  /** Tells the failures that nobody waited for. `isFinal`: nobody will. */
  tellRest(isFinal: boolean): void {
    for (const entry of this.#untold) {
      if (!isFinal && !entry.until.every(({ timeline, ticket }) => timeline.hasReached(ticket))) continue;
      this.#untold.delete(entry);
      entry.isTold = true;
      const error = this.#errorOf(entry);
      if (error instanceof Promise) this.#context.holdLoop(error.then((settled) => this.#tell(settled)));
      else this.#tell(error);
    }
    for (const thrown of this.#thrown) {
      if (!isFinal && !thrown.timeline.hasReached(thrown.untilTicket)) continue;
      this.#thrown.delete(thrown);
      if (!thrown.isAwaited()) this.#tell(thrown.error);
    }
  }

  #find(timeline: Timeline, ticket: number, sources: readonly Point[] = []): Found | undefined {
    const own = timeline.failureAt(ticket);
    if (own !== undefined && own.cause === 0) return { record: own, book: this };
    const book = own && this.#bookOf(own.cause);
    if (own !== undefined && book !== undefined) return { record: own, book };
    return this.#findSource(sources) ?? (own && { record: own, book: this });
  }

  /** Whose streams had the failure, which nobody may have looked for yet. */
  #bookOf(cause: number): FailureBook | undefined {
    for (const book of [this, ...[...books].map((other) => other.deref())]) {
      if (book === undefined) continue;
      if (!book.#entries.has(cause)) for (const timeline of book.#timelines) book.note(timeline);
      if (book.#entries.has(cause)) return book;
    }
    return undefined;
  }

  /** A kernel's fault is reported when it has run: a copy issued before that took what the kernel left. */
  #findSource(sources: readonly Point[]): Found | undefined {
    for (const { timeline, ticket } of sources) {
      const book = timeline.book ?? this;
      book.note(timeline);
      const first = timeline.failureAt(ticket);
      if (first === undefined) continue;
      const record = { ...first, status: Status.UPSTREAM, cause: first.cause || first.id };
      return { record, book: book.#bookOf(record.cause) ?? book };
    }
    return undefined;
  }

  #tell(error: MillraceError): void {
    if (errorsChannel.hasSubscribers) errorsChannel.publish({ device: this.#device, error });
    if (this.#errors.observed) {
      this.#errors.next(error);
    } else if (!this.#hasWarned) {
      this.#hasWarned = true;
      const hint = `Read \`done\` of the operation, or subscribe to errors$ of device ${this.#device}; further failures of it are not shown.`;
      process.emitWarning(`${error.message}\n${hint}`, { type: 'MillraceWarning', code: error.code });
    }
  }

  /** One error per failure, for those who have it as their cause. */
  #errorOf(entry: Entry): MillraceError | Promise<MillraceError> {
    entry.error ??= this.#describe({ record: entry.record, book: this }, entry.timeline?.label ?? '', undefined);
    return entry.error;
  }

  #markTold(id: number): void {
    for (let entry = this.#entries.get(id); entry !== undefined && !entry.isTold; entry = this.#entries.get(entry.record.cause)) {
      entry.isTold = true;
      this.#untold.delete(entry);
    }
  }

  #dropOldest(): void {
    for (const [id, entry] of this.#entries) {
      if (this.#untold.has(entry)) continue;
      this.#entries.delete(id);
      return;
    }
  }

  #describe({ record, book }: Found, stream: string, operation: OperationInfo | undefined): MillraceError | Promise<MillraceError> {
    const facts = { device: this.#device, stream, operation, driverStatus: record.driverStatus };
    const what = operation === undefined ? 'An operation' : `The ${operation.kind}${operation.label ? ` ${operation.label}` : ''}`;
    const where = `on stream ${stream} of device ${this.#device}`;
    const note = record.note === '' ? '' : `: ${record.note}`;
    const kernel = this.#context.kernel(record.kernel);
    switch (record.status) {
      case Status.OUT_OF_MEMORY: {
        const numbers = `(${record.requestedBytes} bytes) exceed the free memory of device ${this.#device} (${record.freeBytes} bytes)`;
        return new OutOfMemoryError(
          'ERR_MILLRACE_MEMORY',
          `The bytes asked for ${numbers}.`,
          record.requestedBytes,
          record.freeBytes,
          facts,
        );
      }
      case Status.UPSTREAM: {
        const entry = book.#entries.get(record.cause);
        const cause = entry === undefined ? forgottenCause(book.#device) : book.#errorOf(entry);
        const upstream = (first: MillraceError): MillraceError => {
          const message = `${what} ${where} reads memory that an earlier failure spoiled: ${first.message.split('\n', 1)[0]}`;
          return new UpstreamError('ERR_MILLRACE_UPSTREAM', message, { ...facts, cause: first });
        };
        return cause instanceof Promise ? cause.then(upstream) : upstream(cause);
      }
      case Status.BOUNDS:
        return faultError(record, kernel, where, facts);
      case Status.DEVICE_LOST:
        return new DeviceLostError(
          'ERR_MILLRACE_LOST',
          `Device ${this.#device} is lost${record.fault === undefined ? note : `: ${kernelFault(record.fault, kernel, where)}`}.`,
          'fault',
          facts,
        );
      case Status.LAUNCH_FAILED:
        if (record.fault !== undefined) {
          const message = kernelFault(record.fault, kernel, where);
          return new LaunchError('ERR_MILLRACE_LAUNCH', `${message[0]!.toUpperCase()}${message.slice(1)}.`, facts);
        }
        if (record.requested > record.limit) {
          const of = `exceed the limit of kernel ${kernel?.name ?? 'unknown'} (${record.limit})`;
          return new LaunchError(
            'ERR_MILLRACE_LAUNCH',
            `${what} ${where} was refused: the ${record.note} (${record.requested}) ${of}.`,
            facts,
          );
        }
        return new LaunchError('ERR_MILLRACE_LAUNCH', `${what} ${where} was refused by the device${note}.`, facts);
      case Status.UNSUPPORTED:
        return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', `${what} ${where} needs what the device lacks${note}.`, record.note, facts);
      default:
        // The launches of a kernel that did not build fail of what the build failed of, which may still be on its way.
        if (kernel !== undefined && record.kernel !== 0) {
          return kernel.built.then(
            () =>
              new InternalError('ERR_MILLRACE_INTERNAL', `${what} ${where} failed although kernel ${kernel.name} was built${note}.`, facts),
            (error: unknown) => (error instanceof MillraceError ? error : new InternalError('ERR_MILLRACE_INTERNAL', String(error), facts)),
          );
        }
        return new InternalError('ERR_MILLRACE_INTERNAL', `${what} ${where} failed (status ${record.status})${note}.`, facts);
    }
  }
}

/** After the stream has reached it. */
export function hasFailed({ failures, timeline, ticket }: FailingPart): boolean {
  failures.note(timeline);
  return timeline.failureAt(ticket) !== undefined;
}

/** For messages; its parts are looked at one by one. */
function withoutParts({ id, kind, label, bytes, stream, device }: FailingOperation): FailingOperation {
  return { id, kind, label, bytes, stream, device };
}

function forgottenCause(device: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_UPSTREAM', `An earlier operation on device ${device} failed.`);
}

/** Why a kernel could not go on. */
function kernelFault(fault: NonNullable<FailureRecord['fault']>, kernel: KernelFacts | undefined, where: string): string {
  const isAddress = KERNEL_FAULTS[fault.dimension]?.includes('0x') ?? false;
  const detail = isAddress ? BigInt.asUintN(64, BigInt(fault.index)).toString(16) : String(fault.index);
  const what = (KERNEL_FAULTS[fault.dimension] ?? KERNEL_FAULTS[0]!).replace('#', detail);
  const [x, y, z] = fault.block;
  const block =
    fault.limit > 1 ? `one of the blocks (${x}, ${y}, ${z}) to (${x + fault.limit - 1}, ${y}, ${z})` : `block (${x}, ${y}, ${z})`;
  return `kernel ${kernel?.name ?? 'unknown'} ${where} ${what} in ${block}`;
}

/** What a checked kernel reported. */
function faultError(record: FailureRecord, kernel: KernelFacts | undefined, where: string, facts: object): MillraceError {
  const name = kernel?.name ?? 'unknown';
  const { fault } = record;
  if (fault === undefined) {
    return new LaunchError('ERR_MILLRACE_BOUNDS', `Kernel ${name} ${where} left the bounds of an array.`, facts);
  }
  const thread = `in thread (${fault.thread.join(', ')}) of block (${fault.block.join(', ')})`;
  if (fault.parameter === ASSERTION_PARAMETER) {
    const condition = kernel?.assertions[fault.index] ?? `number ${fault.index}`;
    return new LaunchError('ERR_MILLRACE_ASSERT', `The assertion ${condition} of kernel ${name} ${where} failed ${thread}.`, facts);
  }
  if (fault.parameter === LAUNCH_PARAMETER) {
    const beyond = `the ${REFUSED_LAUNCH[fault.dimension] ?? 'launch'} (${fault.index}) are beyond what the device allows (${fault.limit})`;
    return new LaunchError('ERR_MILLRACE_LAUNCH', `A launch from kernel ${name} ${where} was refused ${thread}: ${beyond}.`, facts);
  }
  const array = (kernel && [...kernel.parameters, ...kernel.arrays])?.[fault.parameter] ?? `parameter ${fault.parameter}`;
  const message =
    `Kernel ${name} ${where} used index ${fault.index} of dimension ${fault.dimension} of ${array}, ` +
    `outside its bounds (0 to ${fault.limit - 1}), ${thread}.`;
  return new BoundsError('ERR_MILLRACE_BOUNDS', message, { array, ...fault }, facts);
}
