// The owner's side of a device in a process of its own. It differs from that of a worker in the memory that both use: buffers cannot be sent, so
// each is a range of the file that both have mapped.
// Thread: owner.
import { constants } from 'node:os';
import { types } from 'node:util';
import { DeviceLostError, OutOfMemoryError } from '../core/base/errors.js';
import { unfilledBytes } from '../core/channel/host-buffers.js';
import { setTimeout } from '../core/base/timers.js';
import { HANDLE_INDEX_BITS, type HandleKind } from '../protocol/protocol.gen.js';
import type { DeviceLoss } from '../protocol/reports.js';
import { remoteBinding } from './remote-binding.js';
import type { Binding } from '../native/binding.js';
import type { Encoder } from '../protocol/encoder.js';
import { workerLink } from './control-link.js';
import type { DeviceProcess, ProcessEnd } from './device-process-handle.js';
import { type Opened, WorkerChannel } from './worker-channel.js';

const PAGE = 4096;
const MOST_HANDLES = 2 ** HANDLE_INDEX_BITS;
/** How long the process of a lost device stays. */
const ENDING_MS = 500;
/** Signals of a kernel or a driver that did what it must not. */
const FAULTS: readonly (string | null)[] = ['SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGABRT', 'SIGTRAP', 'SIGSYS'];

interface Range {
  readonly offset: number;
  /** Whole pages. */
  readonly bytes: number;
  /** What it was taken for. */
  readonly byteLength: number;
}

export class ProcessChannel extends WorkerChannel {
  override readonly isApart: boolean = true;
  readonly #process: DeviceProcess;
  #isEnding = false;
  #error: DeviceLostError | undefined = undefined;
  #hungStream: number | undefined = undefined;
  /** Outside of the arena, by handle. */
  readonly #ranges: Map<number, Range> = new Map();

  readonly #launchTimeoutMs: number;

  constructor(binding: Binding, child: DeviceProcess, encoder: Encoder, opened: Opened, launchTimeoutMs: number) {
    super(remoteBinding(binding, opened.id), workerLink(child), encoder, opened);
    this.#process = child;
    this.#launchTimeoutMs = launchTimeoutMs;
  }

  override register(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): void {
    if (buffer === this.arena) {
      this.post({ type: 'registerShared', handle, offset: byteOffset, isInArena: true, byteLength, isLocked });
      return;
    }
    const range = this.#take(byteLength);
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    // The buffers of the library are whole pages, and stay in use; of others the device reads what they hold now.
    const isOwn = types.isSharedArrayBuffer(buffer) && isLocked;
    const isThere = isOwn ? this.binding.remoteMap(this.id, range.offset, bytes) : this.binding.remoteWrite(this.id, range.offset, bytes);
    if (!isThere) {
      this.binding.remoteRelease(this.id, range.offset, range.bytes);
      throw noMemory(byteLength);
    }
    if (types.isArrayBuffer(buffer)) structuredClone(buffer, { transfer: [buffer] });
    this.#share(handle, range, isLocked);
  }

  override reserveStream(): number {
    const stream = super.reserveStream();
    if (stream < 0) this.#refuseSilent();
    return stream;
  }

  override reserveHandles(kind: HandleKind, count: number): number {
    const first = super.reserveHandles(kind, count);
    if (first + count > MOST_HANDLES) this.#refuseSilent();
    return first;
  }

  override lend(handle: number, byteLength: number): void {
    this.#share(handle, this.#take(byteLength), false);
  }

  override async collect(handle: number): Promise<ArrayBuffer> {
    const { offset, byteLength } = this.#ranges.get(handle) as Range;
    const result = unfilledBytes(byteLength);
    const isRead = this.binding.remoteRead(this.id, offset, result);
    await this.unregister(handle);
    if (isRead) return result.buffer;
    throw noMemory(byteLength);
  }

  override async unregister(handle: number): Promise<void> {
    await super.unregister(handle);
    const range = this.#ranges.get(handle);
    if (range === undefined) return;
    this.#ranges.delete(handle);
    this.binding.remoteRelease(this.id, range.offset, range.bytes);
  }

  /** What still runs ends with the process. */
  override async destroy(timeoutMs: number): Promise<undefined> {
    await super.destroy(timeoutMs);
    // It is being ended, and the promise must settle.
    this.#process.ref();
    await this.#process.gone;
  }

  /** A device that is lost has nothing left to do. The process stays a moment: the owner asks for the failures of what it had submitted. */
  override loss(): DeviceLoss | undefined {
    const loss = super.loss();
    if (loss === undefined || this.#isEnding) return loss;
    this.#isEnding = true;
    setTimeout(() => this.#process.terminate(), ENDING_MS).unref();
    return loss;
  }

  protected override errorOfEnd(cause: unknown): DeviceLostError {
    const { end } = this.#process;
    if (this.reason === 'closed') return super.errorOfEnd(cause);
    return (this.#error ??= this.#endOf(end ?? this.#nativeEnd(), cause));
  }

  /** Throws the error of a process that does not answer. From then on the device is lost, and can be opened again. */
  #refuseSilent(): void {
    if (this.loss() === undefined) return;
    const error = this.endedError();
    this.onLost?.(error);
    throw error;
  }

  #nativeEnd(): ProcessEnd | undefined {
    const end = this.binding.remoteEnded(this.id);
    const [name] = Object.entries(constants.signals).find(([, number]) => number === end?.signal) ?? [null];
    return end && { pid: this.#process.pid, code: end.code, signal: name as NodeJS.Signals | null };
  }

  override get hungStream(): number | undefined {
    return this.#hungStream;
  }

  #endOf(end: ProcessEnd | undefined, cause: unknown): DeviceLostError {
    const { device } = this;
    if (end === undefined) {
      this.#process.terminate();
      const message = `Device ${device} is lost: its process ${this.#process.pid} does not answer, and was ended; openDevice gives a new one.`;
      return new DeviceLostError('ERR_MILLRACE_LOST', message, 'hung', { device, cause, isApart: true });
    }
    this.#hungStream = this.binding.remoteHung(this.id);
    if (this.#hungStream !== undefined) {
      const message = `Device ${device} is lost: what it had begun did not end within ${this.#launchTimeoutMs} ms (launchTimeoutMs), and its process was ended; openDevice gives a new one.`;
      return new DeviceLostError('ERR_MILLRACE_LOST', message, 'hung', { device, isApart: true });
    }
    const how = end.signal === null ? `ended with exit code ${end.code}` : `was ended by ${end.signal}`;
    const reason = FAULTS.includes(end.signal) ? 'fault' : 'worker-exit';
    const message = `Device ${device} is lost: its process ${end.pid} ${how}; openDevice gives a new one.`;
    return new DeviceLostError('ERR_MILLRACE_LOST', message, reason, { device, cause, isApart: true });
  }

  #take(byteLength: number): Range {
    const bytes = Math.max(PAGE, Math.ceil(byteLength / PAGE) * PAGE);
    const offset = this.binding.remoteTake(this.id, bytes);
    if (offset === undefined) throw noMemory(byteLength);
    return { offset, bytes, byteLength };
  }

  #share(handle: number, range: Range, isLocked: boolean): void {
    const { offset, byteLength } = range;
    this.#ranges.set(handle, range);
    this.post({ type: 'registerShared', handle, offset, isInArena: false, byteLength, isLocked });
  }
}

function noMemory(byteLength: number): OutOfMemoryError {
  const message = `The host has not enough memory for a block of ${byteLength} bytes.`;
  return new OutOfMemoryError('ERR_MILLRACE_MEMORY', message, byteLength, 0);
}
