// The diagnostics channels of the library. Nothing is built for them while nobody subscribes.
//
// | name                 | payload                                                       |
// | `millrace:operation` | `{ operation }` when it was submitted                          |
// | `millrace:error`     | `{ device, error }`: a failure that nobody waited for          |
// | `millrace:build`     | `{ device, kernel, compiler, fromCache, ms, limits }` when it was built |
// | `millrace:device`    | `{ device, state }` when it was opened, closed or lost         |
//
// Subscribers are called in the asynchronous context of the publisher, as Node does it: that of the call for an operation, that
// of the first call that needed the kernel for a build, and that in which the device was opened for the others.
import { type Channel as DiagnosticsChannel, channel } from 'node:diagnostics_channel';

export const operationsChannel: DiagnosticsChannel = channel('millrace:operation');
export const errorsChannel: DiagnosticsChannel = channel('millrace:error');
export const buildsChannel: DiagnosticsChannel = channel('millrace:build');
export const devicesChannel: DiagnosticsChannel = channel('millrace:device');
