// The bytes of ordinary typed arrays on their way to a device, which never reads memory that JavaScript may detach:
//
//   a snapshot, taken at the call into page-locked memory;
//   a detached ArrayBuffer, which the device's worker holds and the device reads from there;
//   a view of a SharedArrayBuffer, which nobody can detach, borrowed until the copy has finished.
// Thread: owner.
import { types } from 'node:util';
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { show } from '../base/arguments.js';
import type { DeviceCore } from '../device/device-core.js';
import type { HostBlock } from '../device/host-block.js';
import { Storage } from '../memory/storage.js';
import { badCopy } from './copy-plan.js';
import { isOnDevice, flatRegion, type Region } from './region.js';

/** A smaller borrow costs more than a snapshot. */
const LEAST_BORROWED = 64 * 1024;

/** Host memory that a copy goes through or comes from, from the call until the device is done with it. */
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

  /** Page-locked memory of the device. */
  static locked(core: DeviceCore, byteLength: number): HostStage {
    return new HostStage(core, core.arena.take(byteLength));
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.#block.buffer, this.#block.byteOffset, this.#block.byteLength);
  }

  /** Runs what submits records that use the memory, then gives the memory back after them, also where a record was refused. */
  use<T>(submit: () => T): T {
    try {
      return submit();
    } finally {
      this.giveBack();
    }
  }

  /** Submits what uses the memory, or gives it back. */
  useLonger<T>(submit: () => T): T {
    try {
      return submit();
    } catch (error) {
      this.giveBack();
      throw error;
    }
  }

  /** After everything that was submitted. */
  giveBack(): void {
    this.#core.arena.giveBack(this.#block, [...this.#storage.uses()]);
  }

  /** Promised memory arrives. */
  keep(buffer: ArrayBuffer, byteOffset: number): void {
    this.#block = this.#core.arena.keep(this.#block, buffer, byteOffset, false);
  }

  /** Promised memory that nothing needs; what was submitted before a refusal finds other bytes there. */
  cancel(): void {
    if ([...this.#storage.uses()].length === 0) {
      this.#core.arena.cancel(this.#block);
    } else {
      this.keep(new ArrayBuffer(this.#block.byteLength), 0);
      this.giveBack();
    }
  }
}

/** Submits a copy of `bytes` to `dst`: `submit` is given where they are. */
export function upload<T>(core: DeviceCore, bytes: Uint8Array, dst: Region, isTransfer: boolean, submit: (src: Region) => T): T {
  const { buffer, byteOffset, byteLength } = bytes;
  // Memory that is not page-locked is read by the device's own memory only.
  if (isTransfer && isOnDevice(dst)) return uploadDetached(core, bytes, submit);
  if (types.isSharedArrayBuffer(buffer) && byteLength > LEAST_BORROWED && isOnDevice(dst)) {
    const stage = new HostStage(core, core.arena.adopt(buffer, byteOffset, byteLength, false));
    return stage.use(() => submit(stage.region));
  }
  const stage = HostStage.locked(core, byteLength);
  const submitted = stage.use(() => {
    stage.bytes.set(bytes);
    return submit(stage.region);
  });
  if (isTransfer) detached(buffer as ArrayBuffer);
  return submitted;
}

/** The records first, which wait on the device for the bytes: were one refused, the caller would still have them. */
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

/** The buffer's memory under another object. */
export function detached(buffer: ArrayBuffer): ArrayBuffer {
  return structuredClone(buffer, { transfer: [buffer] });
}

/** Throws for what `transfer: true` cannot take. */
export function checkTransfer(src: unknown, isHost: boolean): void {
  if (!isHost) throw badCopy('transfer', true, `The option transfer is for an ordinary typed array as the source, not ${show(src)}.`);
  const { buffer } = src as ArrayBufferView;
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
 * Without detaching it: a buffer listed twice is refused before anything happens, for that reason only if it could be transferred.
 * Node 20 ignores buffers that cannot; later ones refuse them for another reason.
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
