// The reactive layer's public part.
export { observableOf } from './sources.js';
export { overlap } from './overlap.js';
export type { LaneOptions, Overlapped, OverlapOptions, OverlapReport, Source, Stage, Staged } from './overlap.js';
export type { Lane } from './lane.js';
export { cpu$, cpuTasks, download$, launch$, upload$ } from './operators.js';
export type { CpuPool, CpuTasks } from './operators.js';
