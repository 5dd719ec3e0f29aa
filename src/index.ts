// The public surface, and the one place that hands the reactive layer to core.
import { installObservableFactory } from './core/observable.js';
import { observableOf } from './reactive/index.js';

installObservableFactory(observableOf);

export { listDevices, openDevice } from './open.js';
export type { DeviceSpec, OpenOptions } from './open.js';

export type { Device, DeviceInfo, DeviceName } from './core/device.js';
export type { DeviceSnapshot, StreamSnapshot, WaitKind } from './core/inspect.js';
export type { MemoryPool, MemoryStats } from './core/pool.js';
export type { PeerAccess } from './core/peers.js';
export type { Recorder } from './core/recorder.js';
export type { RunOptions } from './core/current.js';
export type { HoldOptions } from './core/hold-function.js';
export type { HostOptions } from './core/host-function.js';
export type { Stream } from './core/stream.js';
export type { StreamOptions } from './core/stream-options.js';
export type { Ordering } from './core/storage.js';
export type { DeviceArray } from './core/array.js';
export type { AxisIndex } from './core/strides.js';
export type { ArrayFactory, DTypeOf } from './core/array-factory.js';
export type { PinnedArray } from './core/pinned.js';
export type { CopyOptions } from './core/copy.js';
export type { DeviceEvent } from './core/event.js';
export type { EventOptions } from './core/event-options.js';
export { elapsed } from './core/elapsed.js';
export { getDefaultDevice, recordEvent, setDefaultDevice, synchronize, waitEvent, waitStream } from './core/thread-calls.js';
export type { Activity, Operation, OperationTiming } from './core/operation.js';
export { operationsOf } from './core/iterate.js';
export type { BatchPolicy, LossPolicy, ObservedIterator } from './core/iterate.js';
export type { ObservableOf } from './core/observable.js';
export type { WaitOptions } from './core/wait.js';

export { bool, f16, f32, f64, i16, i32, i64, i8, u16, u32, u64, u8 } from './core/dtype.js';
export type { DType, DTypeLike, HostArray, HostOf, HostValue, Scalar, ScalarInput } from './core/dtype.js';
export { inout, input, output } from './core/kernel.js';
export type {
  Access,
  ArgOf,
  ArrayParam,
  Dim3,
  In,
  InOut,
  Kernel,
  LaunchArgs,
  LaunchShape,
  Out,
  Param,
  Params,
  Rank,
  Shape,
} from './core/kernel.js';
export {
  AbortError,
  ArgumentError,
  BoundsError,
  CompileError,
  DeviceLostError,
  EventTimingError,
  InternalError,
  LaunchError,
  LimitError,
  MillraceError,
  OutOfMemoryError,
  StateError,
  StreamHazardError,
  UnavailableError,
  UnsupportedError,
  UpstreamError,
  WaitTimeoutError,
} from './core/errors.js';
export type { HazardSite, LostReason, OperationInfo, OperationKind } from './core/errors.js';
export type { CompilerDiagnostic } from './core/build.js';

export { kernel } from './compiler/kernel.js';
export { cudaKernel } from './compiler/cuda-kernel.js';
export type { CudaOptions } from './compiler/cuda-kernel.js';
export { func } from './compiler/func.js';
export type { BodyArgs, Constants, Func, KernelOptions, ReadArray, Thread, TypedKernel, WriteArray } from './compiler/language.js';

export { cpu$, cpuTasks, download$, launch$, overlap, upload$ } from './reactive/index.js';
export type {
  CpuPool,
  CpuTasks,
  Lane,
  LaneOptions,
  Overlapped,
  OverlapOptions,
  OverlapReport,
  Source,
  Stage,
  Staged,
} from './reactive/index.js';
export { createCpuPool } from './workers/cpu-pool.js';
export type { CpuPoolOptions, CpuThreads } from './workers/cpu-pool.js';
