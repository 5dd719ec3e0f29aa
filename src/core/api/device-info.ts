// What a device is, and who opened it.
import type { BackendName } from '../../protocol/reports.js';
import type { Ordering } from '../device/stream-context.js';

/** A device by its ordinal: `cuDeviceGet`, `cupy.cuda.Device(0)`; Warp uses the same names, `wp.get_device('cuda:0')`. */
export type DeviceName = 'cpu' | `cpu:${number}` | `cuda:${number}`;

/** The properties of a device: `cuDeviceGetName`, `cuDeviceGetAttribute`, `cuDeviceTotalMem`. */
export interface DeviceInfo {
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
  /** `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`. On the CPU device, the threads that run its kernels. */
  readonly multiprocessors: number;
  /** The most threads in a block, over all dimensions: `CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK`. */
  readonly maxThreadsPerBlock: number;
  /** Threads of a warp, 32 on the CPU device: `cuDeviceGetAttribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE)`. */
  readonly warpSize: number;
  /** Smaller is more urgent: `cuCtxGetStreamPriorityRange`. */
  readonly priorityRange: readonly [least: number, greatest: number];
}

/** What opened it, and hears when it is let go. @internal */
export interface DeviceOwner {
  readonly info: DeviceInfo;
  readonly ordering: Ordering;
  /** Do others than the one who asks have it open, or are they opening it? */
  isShared(): boolean;
  /** One of those who opened it lets go of it. */
  release(): void;
  /** It is being closed until then. */
  ends(closed: Promise<void>): void;
  /** It is being destroyed, which nobody has to wait for. */
  letsGo(): void;
}
