// The properties of a device, and the interface that a device's context needs from the code that opened the device.
import type { DeviceProperties } from '../../protocol/protocol.gen.js';
import type { BackendName, LibraryReport, NativeDeviceInfo } from '../../protocol/reports.js';
import { badArgument, show } from '../base/arguments.js';
import type { DeviceLostError } from '../base/errors.js';
import type { Ordering } from '../device/stream-context.js';

/** A device by its ordinal: `cuDeviceGet`, `cupy.cuda.Device(0)`; Warp uses the same names, `wp.get_device('cuda:0')`. */
export type DeviceName = 'cpu' | `cpu:${number}` | `cuda:${number}`;

/**
 * The full name of a device: 'cuda' is 'cuda:0', 'cpu' is 'cpu:0'. Throws ArgumentError for what names no device, with the name that was
 * probably meant. `also`: a further name that the caller accepts. @internal
 */
export function checkDeviceName(argument: string, value: unknown, also?: 'auto'): DeviceName | 'auto' {
  if (typeof value === 'string') {
    if (value === also) return also;
    if (value === 'cuda' || value === 'cpu') return `${value}:0`;
    if (/^(?:cuda|cpu):(?:0|[1-9]\d{0,8})$/.test(value)) return value as DeviceName;
  }
  const known = `${also === undefined ? '' : `'${also}', `}'cuda', 'cuda:0' and so on, 'cpu', 'cpu:0' and so on`;
  throw badArgument(
    argument,
    value,
    `The ${argument === 'spec' ? 'device' : argument} (${show(value)}) is none of ${known}${meant(value)}.`,
  );
}

/** " (did you mean 'cuda:1'?)" for the names that other libraries have; empty if none is near. */
function meant(value: unknown): string {
  const [, backend, ordinal] = /^(cuda|gpu|cpu|)[^a-z\d]*(\d{0,9})$/i.exec(String(value)) ?? [];
  if (backend === undefined || (typeof value !== 'string' && typeof value !== 'number') || `${backend}${ordinal}` === '') return '';
  return ` (did you mean '${backend.toLowerCase() === 'cpu' ? 'cpu' : 'cuda'}${ordinal === '' ? '' : `:${Number(ordinal)}`}'?)`;
}

/** A library of the machine that works for operations of `millrace/ops`. */
export interface LibraryInfo {
  /** As its vendor writes it: 'cuBLASLt'. */
  readonly name: string;
  /** For example '12.8.4'. */
  readonly version: string;
  /** The file that was opened. */
  readonly path: string;
  /** The operations that it takes part in. */
  readonly operations: readonly string[];
}

/** The properties of a device: `cuDeviceGetName`, `cuDeviceGetAttribute`, `cuDeviceTotalMem`. */
export interface DeviceInfo extends DeviceProperties {
  /** The name that `openDevice` takes: 'cuda:0', 'cpu:0' and so on. */
  readonly id: DeviceName;
  /** 'cuda' for an NVIDIA GPU, 'cpu' for the CPU device. */
  readonly backend: BackendName;
  /** The model's name, for example 'NVIDIA H200': `cuDeviceGetName`. On the CPU device the processor's. */
  readonly name: string;
  /** Device memory in bytes: `cuDeviceTotalMem`. On the CPU device, how many bytes of host memory its arrays may use. */
  readonly totalMemoryBytes: number;
  /** For example [9, 0]; absent on the CPU device: `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`. */
  readonly computeCapability?: readonly [major: number, minor: number];
  /** Smaller is more urgent: `cuCtxGetStreamPriorityRange`. */
  readonly priorityRange: readonly [least: number, greatest: number];
  /**
   * The libraries of this machine that operations use on the device; without them they run kernels of Millrace. On a GPU, searched for when it
   * is first read, which blocks for up to some 0.3 s, or when an operation first needs one. On a CPU device that was opened with
   * `MILLRACE_OPENBLAS`, OpenBLAS.
   */
  readonly libraries: readonly LibraryInfo[];
  /**
   * Why `openDevice('auto')` took the CPU device: no driver, no GPU, a driver that is too old. Absent for a GPU, and for the CPU device if it
   * was asked for by name.
   */
  readonly reason?: string;
}

/** What the libraries are used for. */
const OPERATIONS: Readonly<Record<BackendName, Readonly<Record<string, readonly string[]>>>> = {
  cuda: { cuBLASLt: ['matmul'], cuFFT: ['fft', 'ifft', 'rfft', 'irfft'], NCCL: ['openCommunicator'] },
  cpu: { OpenBLAS: ['matmul'] },
};

/** What users see of the properties. @internal */
export function deviceInfo(backend: BackendName, native: NativeDeviceInfo, ofGpus: () => readonly LibraryReport[]): DeviceInfo {
  const { ordinal, libraries, computeCapability, maxBlock, maxGrid, maxParameterBytes, textureLimits, ...shown } = native;
  return {
    id: `${backend}:${ordinal}`,
    backend,
    ...(backend === 'cuda' && { computeCapability }),
    ...shown,
    get libraries() {
      const used = OPERATIONS[backend];
      return (backend === 'cuda' ? ofGpus() : libraries)
        .filter(({ name }) => name in used)
        .map((library) => ({ ...library, operations: used[library.name]! }));
    },
  };
}

/** The code that opened the device (open-device.ts), which is told when the device is released. */
export interface DeviceOwner {
  readonly info: DeviceInfo;
  readonly ordering: Ordering;
  /** Do other callers have the device open, or are they opening it? */
  isShared(): boolean;
  /** One caller has closed its Device. */
  release(): void;
  /** The device is closing until the promise settles. */
  ends(closed: Promise<void>): void;
  /** The device is being destroyed. A later opening does not wait for that. */
  destroying(): void;
  /** `destroy` has rejected with this error, because a kernel did not end. */
  hung(error: DeviceLostError): void;
}
