// `device.inspect()`.
// Thread: owner.
import type { StreamSnapshot } from '../base/snapshots.js';
import type { DeviceState } from '../device/device-core.js';
import type { Timeline } from '../timeline/timeline.js';
import { lookAt } from '../waits/wait-diagnosis.js';
import type { DeviceName } from './device-info.js';
import type { Device } from './device.js';

/** What `device.inspect()` returns: plain data. */
export interface DeviceSnapshot {
  /** The device's id, for example 'cuda:0'. */
  readonly device: DeviceName;
  /** 'open', 'closing', 'closed' or 'lost', as `device.state`. */
  readonly state: DeviceState;
  /** The streams of the device: what each has pending, and what it waits for. */
  readonly streams: readonly StreamSnapshot[];
}

export function inspectDevice(device: Device, timelines: Iterable<Timeline>): DeviceSnapshot {
  const { state } = device;
  const isOver = state === 'closed' || state === 'lost';
  return { device: device.info.id, state, streams: lookAt(timelines, isOver ? device.core.channel : undefined) };
}
