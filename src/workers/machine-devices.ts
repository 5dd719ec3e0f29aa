// The devices of this machine. A worker enumerates them once per thread, because the driver may take long to start.
//
// A driver reports the devices that existed when it started in this process, so the list stays valid. If an enumerated device
// does not open, `forget` makes the next call enumerate again.
// Thread: owner.
import type { Binding } from '../native/binding.js';
import type { BackendReport } from '../protocol/reports.js';
import { warnOfBadCacheLimit } from '../toolchain/system/cache-limit.js';
import { DeviceWorkerHandle } from './device-worker-handle.js';

export class MachineDevices {
  readonly #binding: Binding;
  #backends: Promise<readonly BackendReport[]> | undefined;
  /** The worker that enumerated: a device can be opened in it. */
  #spare: DeviceWorkerHandle | undefined;
  #ending: Promise<void> | undefined;

  constructor(binding: Binding) {
    this.#binding = binding;
    warnOfBadCacheLimit(process.env);
  }

  /** Enumerates the devices. Call `thread` or `release` afterwards. */
  backends(): Promise<readonly BackendReport[]> {
    return (this.#backends ??= this.#ask());
  }

  /** A worker to open a device in. */
  async thread(): Promise<DeviceWorkerHandle> {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare?.hasEnded === false) return spare;
    const thread = new DeviceWorkerHandle(this.#binding);
    await thread.backends();
    return thread;
  }

  /** Ends the worker that enumerated, unless another call opens a device in it. */
  async release(): Promise<void> {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare !== undefined) this.#ending = spare.close();
    await this.#ending;
  }

  /** Drops the list, so that the next call enumerates again. */
  forget(): void {
    this.#backends = undefined;
  }

  async #ask(): Promise<readonly BackendReport[]> {
    const thread = new DeviceWorkerHandle(this.#binding);
    try {
      const backends = await thread.backends();
      this.#spare = thread;
      return backends;
    } catch (error) {
      this.forget();
      throw error;
    }
  }
}
