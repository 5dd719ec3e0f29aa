// A service that answers through faults of its device: the device has a process of its own, and what a fault took along is done again.
import { DeviceLostError, type Device, f32, inout, kernel, openDevice, UpstreamError } from 'millrace';

export interface Answers {
  readonly openings: number;
  /** Requests that were done again after a fault. */
  readonly repeated: number;
}

/** How long a kernel of this service may run. */
const LAUNCH_TIMEOUT_MS = 300;
const MOST_ATTEMPTS = 20;

/** A device that is opened again when it is lost. */
export class LastingDevice {
  #device: Promise<Device> | undefined;
  #openings = 0;
  #repeated = 0;

  get answers(): Answers {
    return { openings: this.#openings, repeated: this.#repeated };
  }

  /** Runs `work` on the device, and again if the device was lost meanwhile. `work` must not keep what it made on an earlier device. */
  async run<T>(work: (device: Device) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const opened = (this.#device ??= this.#open());
      try {
        return await work(await opened);
      } catch (error) {
        if (!isLoss(error) || attempt === MOST_ATTEMPTS) throw error;
        // The first request that notices it has the device opened again; the others find the new one.
        if (this.#device === opened) this.#device = undefined;
        this.#repeated++;
      }
    }
  }

  async close(): Promise<void> {
    await (await this.#device)?.close().catch(() => undefined);
  }

  #open(): Promise<Device> {
    this.#openings++;
    return openDevice('cpu', { isolation: 'process', launchTimeoutMs: LAUNCH_TIMEOUT_MS });
  }
}

/** The device was lost, or the operation derives from one that the loss took along. */
function isLoss(error: unknown): boolean {
  if (error instanceof UpstreamError) return isLoss(error.cause);
  return error instanceof DeviceLostError && error.restartNeeds === 'reopen';
}

const scaled = kernel('scaled', { factor: f32, x: inout(f32) }, ({ factor, x }, { i }) => {
  x[i] = x[i]! * factor;
});

/** One request: the values times the factor. */
export async function scale(device: Device, values: Float32Array, factor: number): Promise<Float32Array> {
  const stream = device.createStream();
  try {
    using x = stream.from(values);
    stream.launch(scaled, x.length, { factor, x });
    return await x.read();
  } finally {
    // On a lost device there is nothing left to close.
    await stream.close().catch(() => undefined);
  }
}
