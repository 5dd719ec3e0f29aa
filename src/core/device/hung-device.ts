// The errors of a device that faulted, and of one that ended while a kernel ran that does not end.
// Thread: owner.
import { driverErrorIn } from '../base/driver-errors.js';
import { DeviceLostError } from '../base/errors.js';
import type { OperationInfo } from '../base/snapshots.js';
import type { StillRunning } from '../channel/channel.js';
import type { Timeline } from '../timeline/timeline.js';

/** `destroy` gives up on operations that still run after this time. */
export const DESTROY_MS = 5000;

/**
 * The error of a device that faulted. `cause`: that of the operation that did; undefined on a GPU, which does not tell, and for the other threads
 * of a shared device. Then the message names what had not ended, and `operation` is that if it is one. `again`: what helps.
 */
export function faultError(
  device: string,
  timelines: Iterable<Timeline>,
  cause: DeviceLostError | undefined,
  driverStatus: number,
  again: string,
  isApart: boolean,
): DeviceLostError {
  const running = cause === undefined ? runningOf([...timelines].filter(({ pending }) => pending > 0)) : [];
  const operation = cause?.operation ?? (running.length === 1 ? running[0] : undefined);
  const unknown = `one of its operations or calls faulted${running.length === 0 ? '' : `, before ${named(running)} had ended`}`;
  const how = cause?.message.slice(`Device ${device} is lost: `.length, -1) ?? unknown;
  const message = `Device ${device} is lost${driverErrorIn(driverStatus)}: ${how}; ${again}.`;
  const facts = { device, stream: operation?.stream, operation, cause, driverStatus, isApart };
  return new DeviceLostError('ERR_MILLRACE_LOST', message, 'fault', facts);
}

/**
 * The error of a device whose process ended, with the operations that had not: of stream `slot` if that is known, or of all streams. `operation` is
 * set if there is one that can be to blame.
 */
export function endedApart(error: DeviceLostError, timelines: Iterable<Timeline>, slot: number | undefined): DeviceLostError {
  const device = error.device as string;
  const open = [...timelines].filter((timeline) => (slot === undefined ? timeline.pending > 0 : timeline.slot === slot));
  const found = runningOf(open);
  if (found.length === 0) return error;
  const what = named(found);
  const message =
    slot === undefined
      ? error.message.replace('; openDevice', `, before ${what} had ended; openDevice`)
      : error.message.replace('what it had begun', what);
  const [operation] = found.length === 1 ? found : [];
  const { code, reason, cause } = error;
  return new DeviceLostError(code, message, reason, { device, stream: operation?.stream, operation, cause, isApart: true });
}

/** `timelines`: the streams of the device. The error has the first operation that still runs; the message names all of them. */
export function hungError(device: string, timelines: Iterable<Timeline>, still: StillRunning): DeviceLostError {
  const running = runningOf([...timelines].filter(({ slot }) => still.streams.includes(slot)));
  const what = named(running);
  const message =
    `Device ${device} was destroyed, and ${what || 'its worker'} has not ended within ${still.afterMs} ms: ` +
    `the thread keeps running, and the memory stays allocated.`;
  const [operation] = running;
  return new DeviceLostError('ERR_MILLRACE_LOST', message, 'hung', { device, stream: operation?.stream, operation });
}

/** The first operation of each stream that has not ended. */
function runningOf(timelines: readonly Timeline[]): readonly OperationInfo[] {
  return timelines.flatMap((timeline) => timeline.log.at(timeline.deviceCompleted + 1) ?? []);
}

function named(operations: readonly OperationInfo[]): string {
  return operations.map(({ kind, label, stream }) => `${`${kind} ${label ?? ''}`.trim()} on stream ${stream}`).join(', ');
}
