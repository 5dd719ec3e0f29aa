// What a conformance run is about: one way to open a device, and what that device can do, as data.
import type { Device, DeviceSpec, OpenOptions } from 'millrace';

/** What differs between devices without one of them being wrong. */
export interface Supports {
  /** An allocation below the device's total memory can fail. */
  readonly memoryLimit: boolean;
  /** Another process can open its events and memory. */
  readonly interprocess: boolean;
  /** Turns of a spinning kernel's loop in one second, at most: latches give up after some seconds of them. */
  readonly spinsPerSecond: number;
  /** Streams that may wait inside the device at once without holding back others: a GPU has a few hardware queues. */
  readonly waitingStreams: number;
}

/** What the CPU device supports. */
export const CPU_SUPPORTS: Supports = { memoryLimit: false, interprocess: false, spinsPerSecond: 1e9, waitingStreams: 64 };

export interface Target {
  /** Shown in titles and matched by skips.ts. */
  readonly name: string;
  readonly spec: DeviceSpec;
  readonly supports: Supports;
  open(options?: OpenOptions): Promise<Device>;
  /** Random programs of each kind, where the usual number is too many. */
  readonly programs?: number;
  /** Random TypeScript kernels, where each takes long to build. */
  readonly kernels?: number;
  /** Runs one in so many of the kernels and files of CUDA C++ that differ only in their text: `pickedTexts`. */
  readonly textStep?: number;
  /** Launches in one synchronous loop, where each takes long to run. */
  readonly launches?: number;
  /** Another device of the same kind, for the rules that join two. */
  readonly openOther?: () => Promise<Device>;
}

/** The kernels and files of CUDA C++ that this target runs. */
export function pickedTexts<T>({ textStep = 1 }: Target, cases: readonly T[]): T[] {
  return cases.filter((_one, at) => at % textStep === 0);
}
