// More than 400 lines: one class for each way in which a call can fail.
// Every error of the library. A class exists only where callers need to distinguish it; `code` names the broken rule.
//
// `instanceof` checks a brand, so that it also works between two installs of the library in one process. postMessage loses the
// classes of errors, so an error that crosses threads is encoded as plain data and rebuilt on the other side.
import type { OperationInfo, OperationKind, StreamSnapshot } from './snapshots.js';

interface Facts {
  readonly device?: string | undefined;
  readonly stream?: string | undefined;
  readonly operation?: OperationInfo | undefined;
  readonly driverStatus?: number | undefined;
  readonly cause?: unknown;
  readonly isApart?: boolean;
}

const BRAND: unique symbol = Symbol.for('millrace.errors') as never;

function branded(instance: unknown, name: string): boolean {
  const names = (instance as { [BRAND]?: readonly string[] } | null | undefined)?.[BRAND];
  return Array.isArray(names) && names.includes(name);
}

function brand(target: object, ...names: string[]): void {
  Object.defineProperty(target, BRAND, { value: names, configurable: true });
}

/** The base class of every error except ArgumentError. */
export class MillraceError extends Error {
  /** Which rule was broken: 'ERR_MILLRACE_OVERFLOW', 'ABORT_ERR' and so on. */
  readonly code: string;
  /** The id of the device it is about, for example 'cuda:0'. */
  declare readonly device?: string;
  /** The label of the stream it is about. */
  declare readonly stream?: string;
  /** The operation it is about. */
  declare readonly operation?: OperationInfo;
  /** The driver's status, a `CUresult` on CUDA; absent where no driver call failed. */
  declare readonly driverStatus?: number;

  constructor(code: string, message: string, facts: Facts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    Object.defineProperty(this, 'name', { value: new.target.name, configurable: true, writable: true });
    if (facts.device !== undefined) this.device = facts.device;
    if (facts.stream !== undefined) this.stream = facts.stream;
    if (facts.operation !== undefined) this.operation = facts.operation;
    if (facts.driverStatus) this.driverStatus = facts.driverStatus;
    brand(this, 'MillraceError', new.target.name);
  }

  static override [Symbol.hasInstance](instance: unknown): boolean {
    return branded(instance, this.name);
  }
}

/** An argument is wrong. Thrown by the call (async calls reject); nothing was submitted. */
export class ArgumentError extends TypeError {
  /** Which rule was broken, 'ERR_MILLRACE_ARGUMENT' for most. */
  readonly code: string;
  /** The name of the argument or option. */
  readonly argument: string;
  /** What was passed. Logs show it only if it is a primitive value: an object may be large, or contain the key of a shared device. */
  declare readonly value: unknown;
  /** The bound that the value broke, where there is one. */
  declare readonly limit?: unknown;

  constructor(code: string, message: string, facts: { readonly argument: string; readonly value: unknown; readonly limit?: unknown }) {
    super(message);
    this.code = code;
    this.name = 'ArgumentError';
    this.argument = facts.argument;
    Object.defineProperty(this, 'value', { value: facts.value, enumerable: Object(facts.value) !== facts.value, configurable: true });
    if (facts.limit !== undefined) this.limit = facts.limit;
    brand(this, 'ArgumentError');
  }

  static override [Symbol.hasInstance](instance: unknown): boolean {
    return branded(instance, 'ArgumentError');
  }
}

/** A device, stream, array or event is closed, disposed, or in another wrong state. Thrown by the call; nothing was submitted. */
export class StateError extends MillraceError {}

/** `elapsed` has no time between the two events. */
export class EventTimingError extends StateError {
  /** An event was made without `timing`, was never recorded, or belongs to another device than the other event. */
  readonly reason: 'timing-off' | 'never-recorded' | 'other-device';

  constructor(message: string, reason: EventTimingError['reason'], facts: Facts = {}) {
    super('ERR_MILLRACE_EVENT_TIMING', message, facts);
    this.reason = reason;
    brand(this, 'MillraceError', 'StateError', 'EventTimingError');
  }
}

/**
 * Why a capture refused a call. 'host-wait', 'query', 'readback': the call waits for captured operations, queries them or reads their
 * results, but they run only at a launch. 'isolation': the call would order captured operations with operations outside of the capture.
 * 'unjoined': with `strict`, the first stream does not wait for a joined stream at the end. 'already-capturing': a capture is in progress.
 * 'unsupported-node': a graph cannot contain the operation. 'empty': the capture, or the body of a loop, recorded no operation. 'endless':
 * the body of a loop does not write its condition. 'topology': the nodes of an update differ from those of the graph.
 */
export type CaptureReason =
  | 'host-wait'
  | 'query'
  | 'readback'
  | 'isolation'
  | 'unjoined'
  | 'already-capturing'
  | 'unsupported-node'
  | 'empty'
  | 'endless'
  | 'topology'
  | 'external';

/**
 * A call that is not possible during `capture`, or with operations that a capture recorded. Thrown by the call; the capture continues. With
 * reason 'external', launches of the graph reject with it: what a function of `external` called could not be captured.
 */
export class CaptureError extends StateError {
  /** Which rule of captures the call broke. */
  readonly reason: CaptureReason;

  constructor(message: string, reason: CaptureReason, facts: Facts = {}) {
    super('ERR_MILLRACE_CAPTURE', message, facts);
    this.reason = reason;
    brand(this, 'MillraceError', 'StateError', 'CaptureError');
  }
}

/** A limit was reached, for example `maxPending`. Thrown by the call; nothing was submitted. */
export class LimitError extends MillraceError {
  /** The value of the limit, for example the device's `maxPending`. */
  readonly limit: number;
  readonly #retryAfter: () => Promise<void>;

  constructor(code: string, message: string, limit: number, retryAfter: () => Promise<void>, facts: Facts = {}) {
    super(code, message, facts);
    this.limit = limit;
    this.#retryAfter = retryAfter;
  }

  /** Resolves when there is room to call again. The promise is created at the first read. */
  get retryAfter(): Promise<void> {
    return this.#retryAfter();
  }
}

/** There is no driver, device, compiler or module. `help` says what the user can do, and so does the message, a line for each sentence. */
export class UnavailableError extends MillraceError {
  /** What the user can do about it, one sentence each. */
  readonly help: readonly string[];

  constructor(code: string, message: string, help: readonly string[], facts: Facts = {}) {
    super(code, [message, ...help.filter((sentence) => !message.includes(sentence))].join('\n  '), facts);
    this.help = help;
  }
}

/** The device lacks a capability. */
export class UnsupportedError extends MillraceError {
  /** What the device lacks, for example 'interprocess' or 'peer access'. */
  readonly capability: string;

  constructor(code: string, message: string, capability: string, facts: Facts = {}) {
    super(code, message, facts);
    this.capability = capability;
  }
}

/** One error of a compiler, with its place in the kernel's source. */
export interface CompilerDiagnostic {
  /** The compiler's rule, for example 'K702' for what the CUDA C++ compiler rejected. */
  readonly code: string;
  /** The file that holds the kernel, or a header that it includes; absent where it is not known. */
  readonly file?: string;
  /** 1-based. */
  readonly line: number;
  /** 1-based; 1 where the compiler names none, as a linker does. */
  readonly column: number;
  /** What is wrong, without the place. */
  readonly message: string;
}

/** Kernel source does not compile. Thrown by `kernel()`, or rejects the build and the launches of the kernel. */
export class CompileError extends MillraceError {
  /** The compiler's output, with the positions of the user's file, and without what concerns only the library's own code. */
  readonly log: string;
  /** The errors of the log with their places; empty if the log names no place. */
  readonly diagnostics: readonly CompilerDiagnostic[];

  constructor(code: string, message: string, log: string, diagnostics: readonly CompilerDiagnostic[], facts: Facts = {}) {
    super(code, message, facts);
    this.log = log;
    this.diagnostics = diagnostics;
  }
}

/** Device memory is exhausted. */
export class OutOfMemoryError extends MillraceError {
  /** The requested bytes; 0 if unknown. */
  readonly requestedBytes: number;
  /** The bytes that the device had free at that time; 0 if unknown. */
  readonly freeBytes: number;

  constructor(code: string, message: string, requestedBytes: number, freeBytes: number, facts: Facts = {}) {
    super(code, message, facts);
    this.requestedBytes = requestedBytes;
    this.freeBytes = freeBytes;
  }
}

/** The driver refused an operation, or an assertion in a kernel failed. */
export class LaunchError extends MillraceError {}

/**
 * A kernel with `bounds: 'checked'` used an index outside an array. The device continues; the arrays that the kernel writes are poisoned.
 */
export class BoundsError extends LaunchError {
  /** The name of the kernel's parameter, or of an array that its body declares. */
  readonly array: string;
  /** The dimension that the index belongs to, from 0. */
  readonly dimension: number;
  /** The index that was used. */
  readonly index: number;
  /** The length of that dimension: indices from 0 to `limit - 1` are inside. */
  readonly limit: number;
  /** `blockIdx` of the first thread that reported it: x, y, z. */
  readonly block: readonly [number, number, number];
  /** `threadIdx` of that thread: x, y, z. */
  readonly thread: readonly [number, number, number];

  constructor(
    code: string,
    message: string,
    where: Pick<BoundsError, 'array' | 'dimension' | 'index' | 'limit' | 'block' | 'thread'>,
    facts: Facts = {},
  ) {
    super(code, message, facts);
    this.array = where.array;
    this.dimension = where.dimension;
    this.index = where.index;
    this.limit = where.limit;
    this.block = where.block;
    this.thread = where.thread;
    brand(this, 'MillraceError', 'LaunchError', 'BoundsError');
  }
}

/**
 * Why a collective did not end, or a communicator does not work: 'aborted' by `abort`; 'failed' in NCCL, or for want of an operand; 'lost' with the
 * device or the process of a rank; 'closed' by `close`, or with a closed device; 'timeout' of a rank that is silent or did not come; 'mismatch' of
 * what the ranks call.
 */
export type CollectiveReason = 'aborted' | 'failed' | 'lost' | 'closed' | 'timeout' | 'mismatch';

/** A collective did not end, or its communicator does not work any more. Each rank gets this error. */
export class CollectiveError extends MillraceError {
  /** Why. */
  readonly reason: CollectiveReason;
  /** The ranks at fault, where they are known. */
  readonly ranks: readonly number[];

  constructor(message: string, reason: CollectiveReason, facts: Facts & { readonly ranks?: readonly number[] } = {}) {
    super('ERR_MILLRACE_COLLECTIVE', message, facts);
    this.reason = reason;
    this.ranks = facts.ranks ?? [];
  }
}

/** The operation reads memory that an earlier failure poisoned; `cause` is the first failure. */
export class UpstreamError extends MillraceError {
  /** The first failure: that of the operation that should have written the memory. */
  declare readonly cause: MillraceError;
}

/** A node of a graph whose launch is one of the two uses of a hazard. */
export interface HazardNode {
  /** The label of the graph. */
  readonly graph: string;
  /** What the node does. 'graph' for an array that is given to a slot of an embedded graph. */
  readonly kind: OperationKind | 'empty' | 'if' | 'while' | 'switch';
  /** The `label` of the captured call; for a launch without one, the kernel's name. */
  readonly label?: string;
  /** 'file:line:column' of the captured call, if the thread had a checked stream then. */
  readonly at?: string;
}

/** One of the two uses of a hazard. */
export interface HazardSite {
  /** The stream's label. */
  readonly stream: string;
  /** The operation. If it was submitted before the thread had a checked stream, only its kind is known, and `id` is 0. */
  readonly operation: OperationInfo;
  /** What the operation does with the array's bytes. */
  readonly access: 'read' | 'write';
  /** 'file:line:column' of the call, or 'unknown' if it was before the thread's first checked stream. */
  readonly at: string;
  /** If the operation is a launch of a graph: the node that uses the array's bytes. */
  readonly node?: HazardNode;
}

/**
 * A call on a checked stream uses bytes that another stream has used, one of the two uses writes, and nothing orders them. Thrown by the
 * call; nothing was submitted. The call can be repeated after a wait orders the two.
 */
export class StreamHazardError extends MillraceError {
  /** The array's label, for example 'f32[1024]'. */
  readonly array: string;
  /** 'file:line:column' where the array was made by a checked stream or on a checked device, otherwise 'unknown'. */
  readonly madeAt: string;
  /** The use that was submitted earlier. */
  readonly first: HazardSite;
  /** The use that was refused. */
  readonly second: HazardSite;

  constructor(code: string, message: string, hazard: Pick<StreamHazardError, 'array' | 'madeAt' | 'first' | 'second'>, facts: Facts = {}) {
    super(code, message, facts);
    this.array = hazard.array;
    this.madeAt = hazard.madeAt;
    this.first = hazard.first;
    this.second = hazard.second;
  }
}

/** A host wait took longer than its `timeoutMs`. */
export class WaitTimeoutError extends MillraceError {
  /** The timeout that passed, in milliseconds. */
  readonly timeoutMs: number;
  /** The awaited streams and the streams for which they wait, as they were at the timeout. */
  readonly waitingFor: readonly StreamSnapshot[];

  constructor(code: string, message: string, timeoutMs: number, waitingFor: readonly StreamSnapshot[] = [], facts: Facts = {}) {
    super(code, message, facts);
    this.timeoutMs = timeoutMs;
    this.waitingFor = waitingFor;
  }
}

/**
 * Why a device was lost: 'closed' by `destroy` or `close`, 'fault' in the driver or a kernel, 'worker-exit' if its worker thread or its
 * process ended, 'hung' if it was destroyed and a kernel kept running.
 */
export type LostReason = 'closed' | 'fault' | 'worker-exit' | 'hung';

/**
 * The device is gone; every pending operation on it rejects with this error. After a fault, `operation` is the one that lost the device and `cause` its
 * failure, where the device tells: `cudaGetLastError` after a sticky error has neither.
 */
export class DeviceLostError extends MillraceError {
  /** Why the device is gone. */
  readonly reason: LostReason;
  /** What makes the device usable again: 'reopen' is another `openDevice`, 'process' a new process. */
  readonly restartNeeds: 'reopen' | 'process';

  constructor(code: string, message: string, reason: LostReason, facts: Facts = {}) {
    super(code, message, facts);
    this.reason = reason;
    // On a GPU, a fault corrupts the context of its process, and a kernel that hangs keeps the GPU; on a CPU device it keeps a thread.
    const isOfGpu = (reason === 'hung' || reason === 'fault') && facts.device?.startsWith('cpu') !== true;
    this.restartNeeds = isOfGpu && facts.isApart !== true ? 'process' : 'reopen';
  }
}

/** A defect of Millrace. */
export class InternalError extends MillraceError {}

/** A wait was aborted by its signal: `name` is 'AbortError', `code` 'ABORT_ERR', `cause` the signal's reason. */
export class AbortError extends MillraceError {
  constructor(signal: AbortSignal) {
    super('ABORT_ERR', 'The wait was aborted.', { cause: signal.reason });
    this.name = 'AbortError';
    brand(this, 'MillraceError', 'AbortError');
  }
}

/** An error as plain data, for postMessage. */
export interface EncodedError {
  readonly className: string;
  readonly code: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly driverStatus?: number | undefined;
  readonly help?: readonly string[] | undefined;
  readonly capability?: string | undefined;
  readonly log?: string | undefined;
  readonly diagnostics?: readonly CompilerDiagnostic[] | undefined;
  readonly reason?: LostReason | undefined;
}

export function encodeError(error: unknown): EncodedError {
  if (!(error instanceof Error)) return { className: 'InternalError', code: 'ERR_MILLRACE_INTERNAL', message: String(error) };
  const known = error as Partial<UnavailableError & UnsupportedError & CompileError & DeviceLostError>;
  return {
    className: error.name,
    code: known.code ?? 'ERR_MILLRACE_INTERNAL',
    message: error.message,
    stack: error.stack,
    driverStatus: known.driverStatus,
    help: known.help,
    capability: known.capability,
    log: known.log,
    diagnostics: known.diagnostics,
    reason: known.reason,
  };
}

export function decodeError(encoded: EncodedError, facts: Facts = {}): MillraceError {
  const all: Facts = { driverStatus: encoded.driverStatus, ...facts };
  switch (encoded.className) {
    case 'CompileError':
      return new CompileError(encoded.code, encoded.message, encoded.log ?? '', encoded.diagnostics ?? [], all);
    case 'UnavailableError':
      return new UnavailableError(encoded.code, encoded.message, encoded.help ?? [], all);
    case 'UnsupportedError':
      return new UnsupportedError(encoded.code, encoded.message, encoded.capability ?? '', all);
    case 'OutOfMemoryError':
      return new OutOfMemoryError(encoded.code, encoded.message, 0, 0, all);
    case 'StateError':
      return new StateError(encoded.code, encoded.message, all);
    case 'LaunchError':
      return new LaunchError(encoded.code, encoded.message, all);
    case 'DeviceLostError':
      return new DeviceLostError(encoded.code, encoded.message, encoded.reason ?? 'fault', all);
    default:
      return new InternalError(encoded.code, encoded.message, { cause: encoded.stack, ...all });
  }
}
