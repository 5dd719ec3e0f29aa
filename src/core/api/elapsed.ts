// The time between two events.
// Thread: owner.
import { badArgument, refuseSurplus, show } from '../base/arguments.js';
import { EventTimingError } from '../base/errors.js';
import { askElapsed } from '../events/event-handles.js';
import { checkWaitCall, rest, type WaitOptions } from '../waits/wait.js';
import { DeviceEvent, type TimedPoint } from './event.js';
import { performance } from '../base/timers.js';

/**
 * Waits for both events and resolves to the milliseconds from `start` to `end`, at the points where both are recorded at the call; negative
 * if `end` came first. `cudaEventElapsedTime`, `cupy.cuda.get_elapsed_time`, `wp.get_event_elapsed_time`. Rejects at once with
 * ArgumentError for anything but events, EventTimingError if an event has no timing, was never recorded or belongs to another device, and
 * StateError for a disposed event; later with AbortError, WaitTimeoutError or DeviceLostError.
 * For events that were recorded in a capture, it waits for the launches of the graph so far and gives the times of the latest launch that
 * has finished; before the first launch it rejects with EventTimingError.
 * @example console.log(await elapsed(start, end), 'ms');
 */
export async function elapsed(start: DeviceEvent, end: DeviceEvent, opts?: WaitOptions): Promise<number> {
  if (arguments.length > 3) refuseSurplus('elapsed', arguments, 3);
  checkWaitCall(opts);
  checkEvent('start', start);
  checkEvent('end', end);
  if (start.core !== end.core) {
    const message = `The start event belongs to device ${start.device.info.id}, the end event to ${end.device.info.id}: their clocks differ.`;
    throw new EventTimingError(message, 'other-device', { device: start.device.info.id });
  }
  const [from, to] = [timed('start', start), timed('end', end)];
  const { core } = start;
  const eventHandles = [from.eventHandle, to.eventHandle];
  for (const eventHandle of eventHandles) eventHandle.hold();
  try {
    const sinceMs = performance.now();
    await Promise.all([from, to].map((point) => core.waits.until(point.timeline, point.ticket, undefined, opts, [point])));
    return await askElapsed(from.eventHandle, to.eventHandle, rest(opts, sinceMs));
  } finally {
    for (const eventHandle of eventHandles) eventHandle.release();
  }
}

function checkEvent(argument: string, event: unknown): void {
  if (!(event instanceof DeviceEvent))
    throw badArgument(argument, event, `The ${argument} event (${show(event)}) is not an event of a device.`);
}

function timed(which: string, event: DeviceEvent): TimedPoint {
  const device = event.device.info.id;
  if (!event.timing) {
    throw new EventTimingError(`The ${which} event was made without the option timing. Create it with { timing: true }.`, 'timing-off', {
      device,
    });
  }
  const point = event.timedPoint;
  if (point === undefined)
    throw new EventTimingError(`The ${which} event was never recorded. Call stream.record(event) first.`, 'never-recorded', { device });
  if (point.timeline.recording === undefined) return point;
  const { last } = point.eventHandle;
  if (last === undefined) {
    const message = `The ${which} event was recorded in a capture, and its graph was not launched yet. Launch it first.`;
    throw new EventTimingError(message, 'never-recorded', { device });
  }
  return { ...last, eventHandle: point.eventHandle };
}
