// The diagnostics channels of the library. Without a subscriber no payload is built.
//
// | name                 | payload                                                       |
// | `millrace:operation` | `{ operation }` after it was submitted                         |
// | `millrace:error`     | `{ device, error }`: a failure that no code awaited            |
// | `millrace:build`     | `{ device, kernel, compiler, fromCache, ms, limits }` after a build |
// | `millrace:device`    | `{ device, state }` after a device was opened, closed or lost  |
// | `millrace:span`      | a Span: what a lane of a pipeline did, after it has ended      |
//
// Node calls subscribers in the asynchronous context of the publisher. For an operation that is the context of the call, for a
// build the context of the first call that needed the kernel, for errors and devices the context in which the device was opened.
import { type Channel as DiagnosticsChannel, channel } from 'node:diagnostics_channel';

export const operationsChannel: DiagnosticsChannel = channel('millrace:operation');
export const errorsChannel: DiagnosticsChannel = channel('millrace:error');
export const buildsChannel: DiagnosticsChannel = channel('millrace:build');
/** What a lane of a pipeline did. `millrace/timeline` records spans. */
export interface Span {
  /** 'item': an item of a pipeline was on its lane. 'stage': a stage of `report()` ran. */
  readonly kind: 'item' | 'stage';
  readonly name: string;
  readonly lane: number;
  readonly device: string;
  /** In milliseconds of `performance.now()`. */
  readonly startMs: number;
  readonly endMs: number;
}

export const spansChannel: DiagnosticsChannel = channel('millrace:span');
export const devicesChannel: DiagnosticsChannel = channel('millrace:device');
