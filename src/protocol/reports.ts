// Reports of the native side, as plain data. The addon's binding, the messages of a device's worker and core share these types.
import type { DeviceProperties, Status } from './protocol.gen.js';

export type BackendName = 'cuda' | 'cpu';

/** hal::DeviceInfo. Bytes are numbers, because no device has 2^53 of them. */
export interface NativeDeviceInfo extends DeviceProperties {
  readonly ordinal: number;
  readonly name: string;
  readonly totalMemoryBytes: number;
  readonly computeCapability: readonly [major: number, minor: number];
  readonly maxBlock: readonly [x: number, y: number, z: number];
  readonly maxGrid: readonly [x: number, y: number, z: number];
  /** Of all parameters of a kernel. */
  readonly maxParameterBytes: number;
  /** The largest textures, surfaces and textures of linear memory: core/memory/texture-limits.ts reads them. */
  readonly textureLimits: readonly number[];
  readonly priorityRange: readonly [least: number, greatest: number];
  /** Those of an open device, as far as they are known at once. */
  readonly libraries: readonly LibraryReport[];
}

/** hal::LibraryInfo: a library of the machine that works in the place of kernels. */
export interface LibraryReport {
  readonly name: string;
  readonly version: string;
  readonly path: string;
}

/** cuda::GpuTelemetry: what NVML tells of a GPU or a slice of one. Values that it does not tell are missing. */
export interface GpuReport {
  readonly uuid: string;
  readonly name: string;
  readonly isSlice: boolean;
  readonly busyPercent?: number;
  readonly memoryBusyPercent?: number;
  readonly memoryUsedBytes?: number;
  readonly memoryTotalBytes?: number;
  readonly graphicsClockMHz?: number;
  readonly smClockMHz?: number;
  readonly memoryClockMHz?: number;
  readonly temperatureC?: number;
  readonly powerW?: number;
  readonly powerLimitW?: number;
  /** NVML's bits of reasons for low clocks. */
  readonly throttleBits?: number;
  readonly xids: readonly { readonly code: number; readonly agoMs: number }[];
}

/** hal::Division: how a device was divided. Without partitions, the shares do not fit in whole units. */
export interface DivisionReport {
  readonly unit: number;
  readonly partitions: readonly { readonly id: number; readonly multiprocessors: number }[];
}

/** One backend's devices, or why it has none and what the user can do. */
export interface BackendReport {
  readonly name: BackendName;
  readonly devices: readonly NativeDeviceInfo[];
  readonly reason: string;
  readonly help: readonly string[];
  readonly driverVersion: string;
}

/** Some of a stream's failures, in the order in which they were noticed. */
export interface FailurePart {
  readonly records: readonly FailureRecord[];
  /** How many follow these. */
  readonly rest: number;
}

/** Why a device is lost: by a fault, because it closed, or because its thread was ended. */
export interface DeviceLoss {
  readonly status: Status;
  /** The driver's code of a fault; 0 if there is none. */
  readonly driverStatus: number;
}

/** One interval of failed tickets of one stream. */
export interface FailureRecord {
  /** Unique within the process and never 0: memory of one device can be poisoned by a failure on another. */
  readonly id: number;
  readonly first: number;
  readonly last: number;
  readonly status: Status;
  readonly driverStatus: number;
  readonly note: string;
  /** UPSTREAM: the id of the failure that poisoned the memory, on a stream of any device; else 0. */
  readonly cause: number;
  /** DEVICE_LOST: the channel of the other device that was lost; 0 if it is not known. */
  readonly lostDevice: number;
  /** OUT_OF_MEMORY. */
  readonly requestedBytes: number;
  readonly freeBytes: number;
  /** LAUNCH_FAILED: the requested amount of the resource that `note` names, and its limit; else 0. */
  readonly requested: number;
  readonly limit: number;
  /** LAUNCH_FAILED, COMPILE, BOUNDS: the kernel's handle. */
  readonly kernel: number;
  /** Of a graph's launch: the number of the node that failed, if one did. `kernel` is then a handle of the node's device. */
  readonly node?: number;
  /** BOUNDS. */
  readonly fault?: {
    readonly parameter: number;
    readonly dimension: number;
    readonly index: number;
    readonly limit: number;
    readonly block: readonly [x: number, y: number, z: number];
    readonly thread: readonly [x: number, y: number, z: number];
    /**
     * Of a race of shared memory: the offsets of both accesses in the image. Of a shuffle: the source ranks of both threads. Of an access
     * outside an array: where the array's pointer is in its parameter.
     */
    readonly places: readonly [first: number, second: number];
  };
}

/** hal::KernelLimits: the limits of a launch of a built kernel. */
export interface KernelLimits {
  readonly maxThreadsPerBlock: number;
  /** Dynamic shared memory of a block. */
  readonly maxSharedBytes: number;
  /** The most blocks of a cooperative launch, of any size; 0 if the device supports none. */
  readonly maxCooperativeBlocks: number;
  /**
   * The occupancy: how many blocks of one warp, two warps, and so on, one multiprocessor runs at once, without dynamic shared memory.
   * Empty if the block size has no effect.
   */
  readonly blocksAtOnce: readonly number[];
}

/** hal::PoolStats: a device's stream-ordered pool, in bytes. */
export interface PoolReport {
  readonly total: number;
  readonly free: number;
  readonly used: number;
  readonly usedHigh: number;
  readonly reserved: number;
  readonly reservedHigh: number;
}

/** hal::PeerState. */
export interface PeerReport {
  readonly canGrant: boolean;
  readonly isGranted: boolean;
}

export interface ChannelStats {
  /** Records submitted and not yet issued to the backend. */
  readonly pendingRecords: number;
  readonly ringBytes: number;
  readonly liveMemory: number;
  readonly liveBytes: number;
  /** Temporary memory of copies between devices: device memory and page-locked memory. */
  readonly stagingBytes: number;
  /** Host memory that is page-locked for the device. */
  readonly pinnedBytes: number;
  readonly streams: number;
  readonly parked: readonly { readonly stream: number; readonly reason: string; readonly deferred: number }[];
}
