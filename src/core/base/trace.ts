// The diagnostics channels of the library. Without a subscriber no payload is built.
//
// | name                 | payload                                                       |
// | `millrace:operation` | `{ operation }` after it was submitted                         |
// | `millrace:error`     | `{ device, error }`: a failure that no code awaited            |
// | `millrace:build`     | `{ device, kernel, compiler, fromCache, ms, limits }` after a build |
// | `millrace:device`    | `{ device, state }` after a device was opened, closed or lost  |
//
// Node calls subscribers in the asynchronous context of the publisher. For an operation that is the context of the call, for a
// build the context of the first call that needed the kernel, for errors and devices the context in which the device was opened.
import { type Channel as DiagnosticsChannel, channel } from 'node:diagnostics_channel';

export const operationsChannel: DiagnosticsChannel = channel('millrace:operation');
export const errorsChannel: DiagnosticsChannel = channel('millrace:error');
export const buildsChannel: DiagnosticsChannel = channel('millrace:build');
export const devicesChannel: DiagnosticsChannel = channel('millrace:device');
