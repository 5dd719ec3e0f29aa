// The public API. It also passes to core the factory of Observables from src/reactive, and the layout of drawings from src/workers.
import { installObservableFactory } from './core/base/observable.js';
import { installLayOut } from './core/graphs/graph-svg.js';
import { observableOf } from './reactive/index.js';
import { layOutInWorker } from './workers/graph-layout.js';

installObservableFactory(observableOf);
installLayOut(layOutInWorker);

export { listDevices, openDevice, openShared } from './open-device.js';
export type { DeviceSpec, OpenOptions } from './open-options.js';

export { diagnostics } from './diagnostics.js';
export type { Diagnostics, Finding } from './diagnostics.js';

export type { DeviceToken } from './core/base/device-token.js';
export type { ArrayToken } from './core/memory/array-token.js';
export type { Device } from './core/api/device.js';
export type { DeviceInfo, DeviceName } from './core/api/device-info.js';
export type { DeviceSnapshot, StreamWait } from './core/api/inspect.js';
export type { DeviceTelemetry, GpuTelemetry, ThrottleReason, XidError } from './core/api/telemetry.js';
export type { OperationInfo, OperationKind, StreamSnapshot, WaitKind } from './core/base/snapshots.js';
export type { MemoryPool, MemoryStats } from './core/memory/memory-pool.js';
export type { PeerAccess } from './core/api/peers.js';
export type { Recorder } from './core/api/recorder.js';
export type { Schedule } from './core/api/schedule.js';
export type { RunOptions } from './core/api/current-stream.js';
export type { ExternalArrays, ExternalOptions } from './core/api/external.js';
export type { RawStream } from './core/operations/external-function.js';
export type { HoldOptions } from './core/operations/hold-function.js';
export type { HostOptions, HostResult } from './core/operations/host-function.js';
export type { Partition, Share } from './core/api/partition.js';
export type { Stream } from './core/api/stream.js';
export type { Graph, GraphValues } from './core/api/graph.js';
export type { CaptureOptions } from './core/api/capture.js';
export type { GraphBody, GraphEdge, GraphNode, NodeTime } from './core/graphs/graph-view.js';
export type { CaptureBody } from './core/api/condition.js';
export type { GraphNodeKind } from './core/graphs/captured-node.js';
export type { ArraySlot, GraphSlots, ScalarSlot } from './core/graphs/slots.js';
export type { StreamOptions } from './core/api/stream-options.js';
export type { Ordering } from './core/device/stream-context.js';
export type { DeviceArray } from './core/api/array.js';
export type { AxisIndex } from './core/elements/strides.js';
export type { ArrayFactory, DTypeOf } from './core/api/array-factory.js';
export type { PinnedArray } from './core/api/pinned.js';
export type { Scope, ScopeOptions } from './core/api/scope.js';
export type { CopyBatchOptions } from './core/api/copy-batch.js';
export type { CopyPair } from './core/api/copy-recorder.js';
export type { CopyOptions } from './core/api/copy.js';
export type { ReadableOptions } from './core/api/readable.js';
export type { Surface, Texture } from './core/api/texture.js';
export type {
  LinearTextureOptions,
  TextureAddressMode,
  TextureDType,
  TextureFilterMode,
  TextureOptions,
  TextureReadMode,
  TextureSampling,
} from './core/api/texture-options.js';
export type { DeviceEvent } from './core/api/event.js';
export type { EventOptions } from './core/events/event-options.js';
export { elapsed } from './core/api/elapsed.js';
export {
  createStream,
  getDefaultDevice,
  getStream,
  recordEvent,
  setDefaultDevice,
  synchronize,
  synchronizeDevice,
  waitEvent,
  waitStream,
  withDevice,
} from './core/api/global-functions.js';
export type { Place } from './core/api/global-functions.js';
export { array, copy, empty, fill, full, ones, pinned, print, zeros } from './core/api/global-arrays.js';
export type { PrintOptions, PrintStyle } from './core/api/array-print.js';
export type { ListOptions, Nested, NestedOf } from './core/elements/array-text.js';
export type { DeviceLike } from './core/api/open-devices.js';
export type { OperationMessage } from './core/operations/traced-operation.js';
export type { CompileMessage, ItemMessage, OpenMessage, StageMessage, TracedEnd } from './core/base/trace.js';
export type { Activity, Operation, OperationStatus, OperationTiming } from './core/operations/operation.js';
export { operationsOf } from './core/operations/operation-iterator.js';
export type { BatchPolicy, LossPolicy } from './core/operations/operation-iterator.js';
export type { ObservedIterator } from './core/base/observed-iterator.js';
export type { ObservableOf } from './core/base/observable.js';
export type { WaitOptions } from './core/waits/wait.js';

export { bf16, bool, f16, f32, f64, i16, i32, i64, i8, u16, u32, u64, u8 } from './core/elements/dtype.js';
export { bitsFromFloats, floatsFromBits } from './core/elements/float-bits.js';
export type { DType, DTypeLike, HostArray, HostOf, HostValue, Scalar, ScalarInput } from './core/elements/dtype.js';
export type { Shape } from './core/elements/shape.js';
export { inout, input, output } from './core/kernels/kernel.js';
export type {
  Access,
  ArrayParam,
  CudaParam,
  CudaParams,
  Dim3,
  In,
  InOut,
  Kernel,
  LaunchShape,
  Out,
  Param,
  Params,
  Rank,
} from './core/kernels/kernel.js';
export { optional, surface, texture } from './core/kernels/params.js';
export type { OptionalArray, SurfaceParam, TextureParam } from './core/kernels/params.js';
export { arrayOf, bytes, dim3, struct, vec } from './core/kernels/value-params.js';
export type {
  BytesParam,
  Dim3Param,
  Field,
  Fields,
  FixedArray,
  StructParam,
  ValueOptions,
  ValueParam,
  VectorParam,
  VectorSize,
} from './core/kernels/value-params.js';
export type { ArgOf, FieldInput, LaunchArgs, SlotAccess, VectorInput } from './core/api/launch-args.js';
export {
  AbortError,
  ArgumentError,
  BoundsError,
  CaptureError,
  CollectiveError,
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
} from './core/base/errors.js';
export type { CaptureReason, CollectiveReason, CompilerDiagnostic, HazardNode, HazardSite, LostReason } from './core/base/errors.js';

export { kernel } from './compiler/definitions/kernel.js';
export { cudaKernel } from './compiler/definitions/cuda-kernel.js';
export type { CudaOptions } from './compiler/definitions/cuda-kernel.js';
export { cudaModule } from './cuda-module.js';
export type { CudaModule } from './core/api/cuda-module.js';
export { func } from './compiler/definitions/func.js';
export type { BodyArgs, Constants, Func, KernelOptions, TypedKernel } from './compiler/language/language.js';
export type { Rng, Thread } from './compiler/language/thread.js';
export {
  vec2d,
  vec2f,
  vec2i,
  vec2u,
  vec3d,
  vec3f,
  vec3i,
  vec3u,
  vec4d,
  vec4f,
  vec4i,
  vec4u,
} from './compiler/language/elements.js';
export type { ReadArray, Vector, WriteArray } from './compiler/language/elements.js';

export {
  batchFor,
  cpuStage,
  cpuTasks,
  createBatcher,
  createLanes,
  download,
  launch,
  launchGraph,
  onStream,
  overlap,
  overlapMap,
  upload,
} from './reactive/index.js';
export type {
  BatcherOptions,
  BatcherQueue,
  BatchReport,
  FixedBatches,
  LatencyBatches,
  BatchLimits,
  CpuPool,
  CpuStageOptions,
  CpuTasks,
  Devices,
  ErrorOptions,
  Lane,
  LaneOptions,
  Lanes,
  LanesOptions,
  LanesReport,
  OverflowOptions,
  Overlapped,
  OverlapOptions,
  OverlapReport,
  PullSource,
  PushSource,
  RetryPolicy,
  Skipped,
  Source,
  Stage,
  Staged,
  StageReport,
} from './reactive/index.js';
export { createCpuPool } from './workers/cpu-pool.js';
export type { CpuPoolOptions, CpuThreads } from './workers/cpu-pool.js';
