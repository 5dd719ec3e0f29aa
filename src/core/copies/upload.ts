// Copies from ordinary typed arrays to a device. The device never reads memory that JavaScript may detach. It reads one of:
//
//   a snapshot in page-locked memory, taken by the call;
//   a transferred ArrayBuffer, which the device's worker holds;
//   a view of a SharedArrayBuffer, which cannot be detached, borrowed until the copy has finished.
// Thread: owner.
import { types } from 'node:util';
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { show } from '../base/arguments.js';
import { plainView } from '../base/buffers.js';
import { stagingChannel, tellStaging } from '../base/trace.js';
import type { DeviceCore } from '../device/device-core.js';
import type { HostBlock } from '../device/host-block.js';
import { Storage } from '../memory/storage.js';
import { badCopy } from './copy-plan.js';
import { isOnDevice, flatRegion, type Region } from './memory-region.js';
import { performance } from '../base/timers.js';

/** Borrowing fewer bytes costs more than a snapshot. */
const LEAST_BORROWED = 64 * 1024;
/** A call that blocks the event loop for longer is worth a warning. */
const LONGEST_SNAPSHOT_MS = 20;
/** A smaller copy takes so long only because its thread did not run, also into memory that must first be made. */
const LEAST_BYTES_OF_LONG_SNAPSHOT = 2 ** 24;

/** Host memory that a copy reads or stages in, from the call until the device has finished with it. */
export class HostStage {
  readonly region: Region;
  readonly #core: DeviceCore;
  readonly #storage: Storage;
  #block: HostBlock;

  constructor(core: DeviceCore, block: HostBlock) {
    this.#core = core;
    this.#block = block;
    this.#storage = new Storage(MemorySpace.HOST, block.handle, block.handleOffset, block.byteLength, core);
    this.region = flatRegion(this.#storage, 0, block.byteLength);
  }

  /** Copies the bytes to page-locked memory of the device. */
  static snapshot(core: DeviceCore, bytes: Uint8Array): HostStage {
    const { byteLength } = bytes;
    const isLarge = byteLength >= LEAST_BYTES_OF_LONG_SNAPSHOT;
    // The clock costs more than a short snapshot.
    if (!isLarge && !stagingChannel.hasSubscribers) return new HostStage(core, core.arena.snapshot(bytes));
    const startMs = performance.now();
    const stage = new HostStage(core, core.arena.snapshot(bytes));
    const endMs = performance.now();
    tellStaging('from', byteLength, core.name, startMs, endMs);
    if (isLarge) warnOfLongSnapshot(endMs - startMs, byteLength);
    return stage;
  }

  /** Allocates page-locked memory of the device. */
  static locked(core: DeviceCore, byteLength: number): HostStage {
    return new HostStage(core, core.arena.take(byteLength));
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#block.buffer, this.#block.byteOffset, this.#block.byteLength);
  }

  /** Runs `submit`, which submits records that use the memory, and gives the memory back after those records, also if `submit` throws. */
  use<T>(submit: () => T): T {
    try {
      return submit();
    } finally {
      this.giveBack();
    }
  }

  /** Runs `submit`. Gives the memory back only if `submit` throws. */
  useLonger<T>(submit: () => T): T {
    try {
      return submit();
    } catch (error) {
      this.giveBack();
      throw error;
    }
  }

  /** Gives the memory back after the submitted records that use it. */
  giveBack(): void {
    this.#core.arena.giveBack(this.#block, [...this.#storage.uses()]);
  }

  /** Provides the promised memory. */
  keep(buffer: ArrayBuffer, byteOffset: number): void {
    this.#block = this.#core.arena.keep(this.#block, buffer, byteOffset, false);
  }

  /** Withdraws the promised memory after a refused record. Records submitted before it read other bytes. */
  cancel(): void {
    if ([...this.#storage.uses()].length === 0) {
      this.#core.arena.cancel(this.#block);
    } else {
      this.keep(new ArrayBuffer(this.#block.byteLength), 0);
      this.giveBack();
    }
  }
}

let hasWarned = false;

function warnOfLongSnapshot(ms: number, byteLength: number): void {
  if (ms < LONGEST_SNAPSHOT_MS || hasWarned) return;
  hasWarned = true;
  const message =
    `A copy from an ordinary typed array of ${byteLength} bytes blocked the event loop for ${Math.round(ms)} ms: the call takes a snapshot. ` +
    'Pass { transfer: true } if the program no longer needs the array, or write into a pinned array or a SharedArrayBuffer instead. Later cases are not reported.';
  process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_SNAPSHOT' });
}

/** Submits a copy of `bytes` to `dst`. `submit` gets the region of the memory that the device reads. */
export function upload<T>(core: DeviceCore, bytes: Uint8Array, dst: Region, isTransfer: boolean, submit: (src: Region) => T): T {
  const { buffer, byteOffset, byteLength } = bytes;
  // Records copy pageable memory only to the device's own memory.
  if (isTransfer && isOnDevice(dst)) return uploadDetached(core, bytes, submit);
  if (types.isSharedArrayBuffer(buffer) && byteLength > LEAST_BORROWED && isOnDevice(dst)) {
    const stage = new HostStage(core, core.arena.adopt(buffer, byteOffset, byteLength, false));
    return stage.use(() => submit(stage.region));
  }
  const stage = HostStage.snapshot(core, bytes);
  const submitted = stage.use(() => submit(stage.region));
  if (isTransfer) detached(buffer as ArrayBuffer);
  return submitted;
}

/** Submits the records first; they wait on the device for the bytes. If a record is refused, the caller's buffer is not detached. */
function uploadDetached<T>(core: DeviceCore, { buffer, byteOffset, byteLength }: Uint8Array, submit: (src: Region) => T): T {
  const stage = new HostStage(core, core.arena.promise(byteLength));
  let submitted: T;
  try {
    submitted = submit(stage.region);
  } catch (error) {
    stage.cancel();
    throw error;
  }
  // Posting it to the worker detaches it; detaching it here first would cost as much again.
  stage.keep(buffer as ArrayBuffer, byteOffset);
  stage.giveBack();
  return submitted;
}

/** Detaches the buffer and returns its memory as another ArrayBuffer. */
export function detached(buffer: ArrayBuffer): ArrayBuffer {
  return structuredClone(buffer, { transfer: [buffer] });
}

/** Throws ArgumentError for a source that `transfer: true` does not accept. */
export function checkTransfer(src: unknown, isHost: boolean): void {
  if (!isHost) throw badCopy('transfer', true, `The option transfer is for an ordinary typed array as the source, not ${show(src)}.`);
  const { buffer } = plainView(src as ArrayBufferView);
  if (!types.isArrayBuffer(buffer)) {
    throw badCopy(
      'transfer',
      true,
      `The source (${show(src)}) is a view of a SharedArrayBuffer, which is used in place: remove the option transfer.`,
    );
  }
  if (!isDetachable(buffer)) throw badCopy('transfer', true, `The ArrayBuffer of the source (${show(src)}) cannot be detached.`);
}

/**
 * Tests this without detaching the buffer: listing a buffer twice throws before any transfer, and throws the error about the duplicate only
 * if the buffer could be transferred. For other buffers Node 20 throws nothing, and later versions throw another error.
 */
function isDetachable(buffer: ArrayBuffer): boolean {
  refusalOfTwice ??= refusal(new ArrayBuffer(1));
  return refusal(buffer) === refusalOfTwice;
}

let refusalOfTwice: string | undefined;

function refusal(buffer: ArrayBuffer): string {
  try {
    structuredClone(undefined, { transfer: [buffer, buffer] });
    return '';
  } catch (error) {
    return String(error);
  }
}
