// Who keeps memory alive: an array and its views share one lease, and memory is given back when the array is disposed.
// If all of them are collected without that, the registry gives device memory back and says so once. Host memory it
// leaves taken: `data` may live on, here or in another thread, when the pinned array itself is gone.
import { StateError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import type { HostBlock } from '../device/host-block.js';
import type { Storage } from './storage.js';

interface Held {
  readonly storage: Storage;
  readonly core: DeviceCore;
  readonly block: HostBlock | undefined;
}

let hasWarned = false;

// Finalizers never touch the device: giving back is a record, submitted on a turn of its own.
const forgotten = new FinalizationRegistry<Held>((held) => {
  if (held.storage.isDisposed) return;
  if (held.block === undefined) setImmediate(() => giveBack(held));
  if (hasWarned) return;
  hasWarned = true;
  const message =
    'An array was garbage-collected without being disposed. Declare arrays with `using`, or call [Symbol.dispose](): the ' +
    'garbage collector does not see device memory, and pinned memory stays allocated. Later cases are not reported.';
  process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_FORGOTTEN' });
});

function giveBack({ storage, core, block }: Held): void {
  if (storage.isDisposed) return;
  storage.isDisposed = true;
  if (block === undefined) core.frees.free(storage.handle, [...storage.uses()]);
  else core.arena.giveBack(block, [...storage.uses()]);
}

export class Lease {
  readonly #held: Held;

  /** `block`: host memory, which goes back to the arena. */
  constructor(storage: Storage, core: DeviceCore, block?: HostBlock) {
    this.#held = { storage, core, block };
    forgotten.register(this, this.#held, this.#held);
  }

  /** Of memory that the device keeps as long as it is open, whoever forgets it. */
  static ofDevice(storage: Storage, core: DeviceCore): Lease {
    const lease = new Lease(storage, core);
    forgotten.unregister(lease.#held);
    return lease;
  }

  end(): void {
    forgotten.unregister(this.#held);
    giveBack(this.#held);
  }
}

export function disposedError(what: string, device: string): StateError {
  return new StateError('ERR_MILLRACE_STATE', `${what} of device ${device} was disposed.`, { device });
}
