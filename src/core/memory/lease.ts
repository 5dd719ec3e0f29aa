// What keeps the memory of an array alive. An array and its views share one lease, and disposing the array ends it and frees the memory.
// If the array and all views are collected without that, a finalizer frees device memory and warns once. It does not free pinned memory,
// because `data` may still be in use, in this thread or another one. A device that closes or is lost frees the memory itself, so its arrays
// need no disposal.
import { StateError } from '../base/errors.js';
import { endForgotten } from '../base/forgotten.js';
import type { DeviceCore } from '../device/device-core.js';
import type { HostBlock } from '../device/host-block.js';
import type { Storage } from './storage.js';

/** The memory of a lease. */
interface Leased {
  readonly storage: Storage;
  readonly core: DeviceCore;
  readonly block: HostBlock | undefined;
}

let hasWarned = false;

const forgotten = endForgotten<Leased>((leased) => {
  if (leased.storage.isDisposed) return;
  if (leased.block === undefined) giveBack(leased);
  if (hasWarned || leased.core.state !== 'open') return;
  hasWarned = true;
  const message =
    `An array was garbage-collected without being disposed: ${leased.storage.description}. Declare arrays with \`using\`, or call ` +
    '[Symbol.dispose](): the garbage collector frees device memory late, and pinned memory stays allocated. Later cases are not reported.';
  process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_FORGOTTEN' });
});

function giveBack({ storage, core, block }: Leased): void {
  if (storage.isDisposed) return;
  storage.freeBy(() => {
    if (block === undefined) storage.free();
    else core.arena.giveBack(block, [...storage.uses()]);
  });
}

export class Lease {
  readonly #leased: Leased;
  #isWatched = false;

  /** `block`: host memory, which returns to the arena. */
  constructor(storage: Storage, core: DeviceCore, block?: HostBlock) {
    this.#leased = { storage, core, block };
    if (!storage.isHeld) this.watch();
  }

  /** Lets a finalizer free the memory. */
  watch(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    forgotten.register(this, this.#leased, this.#leased);
  }

  /** The lease of memory that the device keeps while it is open: collecting the array frees nothing. */
  static ofDevice(storage: Storage, core: DeviceCore): Lease {
    const lease = new Lease(storage, core);
    lease.#unwatch();
    return lease;
  }

  end(): void {
    this.#unwatch();
    giveBack(this.#leased);
  }

  /** As `end`, but another array gets the memory. Only if the storage `isUnused`. */
  handOver(): Storage {
    this.#unwatch();
    return this.#leased.storage.successor();
  }

  #unwatch(): void {
    if (this.#isWatched) forgotten.unregister(this.#leased);
    this.#isWatched = false;
  }
}

export function disposedError(what: string, device: string): StateError {
  return new StateError('ERR_MILLRACE_STATE', `${what} of device ${device} was disposed.`, { device });
}
