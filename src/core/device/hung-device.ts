// The error of a device that was destroyed while a kernel ran that does not end.
// Thread: owner.
import { DeviceLostError } from '../base/errors.js';
import type { OperationInfo } from '../base/snapshots.js';
import type { StillRunning } from '../channel/channel.js';
import type { Timeline } from '../timeline/timeline.js';

/** `destroy` gives up on operations that still run after this time. */
export const DESTROY_MS = 5000;

/** The same for a device whose process ended itself: `error` with the operation that did not end, if its stream is known. */
export function hungApart(error: DeviceLostError, timelines: Iterable<Timeline>, slot: number): DeviceLostError {
  const device = error.device as string;
  for (const timeline of timelines) {
    const operation = timeline.slot === slot ? timeline.log.at(timeline.deviceCompleted + 1) : undefined;
    if (operation === undefined) continue;
    const { kind, label, stream } = operation;
    const what = `${kind} ${label ?? ''}`.trim();
    const message = error.message.replace('it made', `${what} on stream ${stream} made`);
    return new DeviceLostError(error.code, message, 'hung', { device, stream, operation, isApart: true });
  }
  return error;
}

/** `timelines`: the streams of the device. The error has the first operation that still runs; the message names all of them. */
export function hungError(device: string, timelines: Iterable<Timeline>, still: StillRunning): DeviceLostError {
  const running: OperationInfo[] = [];
  for (const timeline of timelines) {
    if (!still.streams.includes(timeline.slot)) continue;
    const operation = timeline.log.at(timeline.deviceCompleted + 1);
    if (operation !== undefined) running.push(operation);
  }
  const what = running.map(({ kind, label, stream }) => `${kind} ${label ?? ''}`.trim() + ` on stream ${stream}`).join(', ');
  const message =
    `Device ${device} was destroyed, and ${what || 'its worker'} has not ended within ${still.afterMs} ms: ` +
    `the thread keeps running, and the memory stays allocated.`;
  const [operation] = running;
  return new DeviceLostError('ERR_MILLRACE_LOST', message, 'hung', { device, stream: operation?.stream, operation });
}
