// `device.inspect()`.
// Thread: owner.
import type { StreamSnapshot } from '../base/snapshots.js';
import type { DeviceState } from '../device/device-core.js';
import type { Timeline } from '../timeline/timeline.js';
import { lookAt } from '../waits/stuck.js';
import type { DeviceName } from './device-info.js';
import type { Device } from './device.js';

/** What `device.inspect()` saw. */
export interface DeviceSnapshot {
  readonly device: DeviceName;
  readonly state: DeviceState;
  readonly streams: readonly StreamSnapshot[];
}

export function inspectDevice(device: Device, timelines: Iterable<Timeline>): DeviceSnapshot {
  const { state } = device;
  const isOver = state === 'closed' || state === 'lost';
  return { device: device.info.id, state, streams: lookAt(timelines, isOver ? device.core.channel : undefined) };
}
