// `millrace/timeline`: what devices and the thread do, recorded. Programs that do not import it do not load it.
import { recordByEnvironment } from './by-environment.js';

export { recordTimeline } from './recording.js';
export type { Recording, RecordingOptions } from './recording.js';
export { serveTimeline } from './serve.js';
export type { ServeOptions, TimelineServer } from './serve.js';
export { usage } from './usage.js';
export type { Measured, UsageOptions } from './usage.js';
export type { DeviceUsage, Usage, UsageTotals } from './usage-scope.js';
export type { UsageCounts } from './usage-counts.js';
export type { BusyShare, Explanation, Gap, GapOptions, Reason, ReasonCost, RecordingSummary } from './explained.js';
export type { AwaitedPoint, Parked, RecordedOperation, RecordedSpan } from './recorded.js';

recordByEnvironment();
