// Functions of the caller in a stream. `host` is told of a place in the stream; `hold` makes the stream stand still there.
// Thread: owner.
import type { StreamSite } from './device-core.js';
import { InternalError } from './errors.js';
import type { Operation } from './operation.js';
import type { WaitOptions } from './wait.js';

export interface HostOptions {
  /** What messages and `inspect()` call it. */
  readonly label?: string;
  /** Aborted before `fn` was called, it is not called and `done` rejects with AbortError. */
  readonly signal?: AbortSignal;
}

export interface HoldOptions extends HostOptions, WaitOptions {
  /** How long the stream stands still at most, in milliseconds. */
  readonly timeoutMs: number;
}

type MakeOperation = (ticket: number) => Operation;

export function submitHost(_site: StreamSite, _fn: unknown, _opts: HostOptions | undefined, _make: MakeOperation): Operation {
  throw new InternalError('ERR_MILLRACE_INTERNAL', 'host is not built yet.');
}

export function submitHold(_site: StreamSite, _fn: unknown, _opts: HoldOptions, _make: MakeOperation): Operation {
  throw new InternalError('ERR_MILLRACE_INTERNAL', 'hold is not built yet.');
}
