// What keeps the memory of an array alive. An array and its views share one lease, and disposing the array ends it and frees the memory.
// If the array and all views are collected without that, a finalizer frees device memory and warns once. It does not free pinned memory,
// because `data` may still be in use, in this thread or another one. A device that closes or is lost frees the memory itself, so its arrays
// need no disposal.
import { StateError } from '../base/errors.js';
import { endForgotten } from '../base/forgotten.js';
import { setTimeout } from '../base/timers.js';
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

/** The leases of small arrays that were made last. Most end soon, and a finalizer for each would take as long as half a launch. */
const young: (Lease | undefined)[] = Array.from({ length: 64 });
let made = 0;
/** Larger arrays are for the garbage collector at once, which frees nothing while they are young. */
const MOST_YOUNG_BYTES = 2 ** 16;
/** Arrays older than this are no temporary results. */
const YOUNG_MS = 100;
let isAging = false;

function age(): void {
  isAging = false;
  for (const lease of young) lease?.settle();
}

export class Lease {
  readonly #leased: Leased;
  #isWatched = false;
  /** Its place among the young ones, or -1. */
  #place = -1;

  /** `block`: host memory, which returns to the arena. */
  constructor(storage: Storage, core: DeviceCore, block?: HostBlock) {
    this.#leased = { storage, core, block };
    if (storage.isHeld) return;
    if (block !== undefined || storage.byteLength > MOST_YOUNG_BYTES) this.watch();
    else this.#join();
  }

  #join(): void {
    const place = made++ % young.length;
    young[place]?.settle();
    young[place] = this;
    this.#place = place;
    if (isAging) return;
    isAging = true;
    setTimeout(age, YOUNG_MS).unref();
  }

  /** @internal It is not young any more. */
  settle(): void {
    this.#leave();
    this.watch();
  }

  #leave(): void {
    if (this.#place < 0) return;
    young[this.#place] = undefined;
    this.#place = -1;
  }

  /** Lets a finalizer free the memory. */
  watch(): void {
    if (this.#isWatched || this.#place >= 0) return;
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
    this.#leave();
    if (this.#isWatched) forgotten.unregister(this.#leased);
    this.#isWatched = false;
  }
}

/** `storage`: that of an array, which says where it was made if a scope disposed it. */
export function disposedError(what: string, device: string, storage?: Storage): StateError {
  const scope = storage?.endedBy;
  const end = scope === undefined ? '' : ` at the end of ${scope.name}: ${scope.remedy}. It is ${storage?.description}`;
  return new StateError('ERR_MILLRACE_STATE', `${what} of device ${device} was disposed${end}.`, { device });
}
