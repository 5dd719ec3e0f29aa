// The reactive layer's public part.
export { observableOf } from './hub-observable.js';
export { overlap, overlapMap } from './overlap.js';
export type { LaneOptions, Overlapped, OverlapOptions, OverlapReport } from './overlap.js';
export type { Skipped, ErrorOptions, RetryPolicy } from './error-policy.js';
export type { OverflowOptions, PullSource, PushSource, Source } from './sources.js';
export type { StageReport } from './meter.js';
export type { Stage, Staged } from './stage.js';
export type { Devices } from './slots.js';
export type { Lane } from './lane.js';
export { createLanes } from './lanes.js';
export type { Lanes, LanesOptions } from './lanes.js';
export { createBatcher } from './batcher.js';
export type { BatcherOptions } from './batcher.js';
export { download, launch, upload } from './operators.js';
export { cpuStage, cpuTasks } from './cpu-stage.js';
export type { CpuPool, CpuStageOptions, CpuTasks } from './cpu-stage.js';
export { batchFor } from './batch-for.js';
export type { BatchLimits } from './batch-for.js';
