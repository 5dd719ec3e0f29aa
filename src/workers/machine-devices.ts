// Which devices this machine has: asked once a thread, in a worker, since the driver may take long to start.
//
// A process sees the devices that were there when its drivers started, whatever comes or goes later, so the answer holds.
// A device that went away is noticed when it is opened, and then the next call asks again.
// Thread: owner.
import type { Binding } from '../native/binding.js';
import type { BackendReport } from '../protocol/reports.js';
import { DeviceThread } from './device-thread.js';

export class MachineDevices {
  readonly #binding: Binding;
  #backends: Promise<readonly BackendReport[]> | undefined;
  /** The worker that asked: a device can be opened in it. */
  #spare: DeviceThread | undefined;
  #ending: Promise<void> | undefined;

  constructor(binding: Binding) {
    this.#binding = binding;
  }

  /** Afterwards call `thread` or `letGo`. */
  backends(): Promise<readonly BackendReport[]> {
    return (this.#backends ??= this.#ask());
  }

  /** A worker to open a device in. */
  async thread(): Promise<DeviceThread> {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare?.hasEnded === false) return spare;
    const thread = new DeviceThread(this.#binding);
    await thread.backends();
    return thread;
  }

  /** Ends the worker that asked, unless somebody opens a device in it. */
  async letGo(): Promise<void> {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare !== undefined) this.#ending = spare.close();
    await this.#ending;
  }

  /** What was heard does not hold. */
  forget(): void {
    this.#backends = undefined;
  }

  async #ask(): Promise<readonly BackendReport[]> {
    const thread = new DeviceThread(this.#binding);
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
