// What a device's streams are doing, from what the owner submitted and the words the device writes: no driver call.
// Thread: owner.
import type { Device, DeviceName } from './device.js';
import type { DeviceState } from './device-core.js';
import type { Stream } from './stream.js';

export interface StreamSnapshot {
  /** The stream's label. */
  readonly stream: string;
  /** Operations submitted and not finished. */
  readonly pending: number;
  /** Why the device does not go on with it at present, if it does not. */
  readonly parkedFor?: string;
}

/** What `device.inspect()` saw. */
export interface DeviceSnapshot {
  readonly device: DeviceName;
  readonly state: DeviceState;
  readonly streams: readonly StreamSnapshot[];
}

export function inspectDevice(device: Device, streams: Iterable<Stream>): DeviceSnapshot {
  const { core, state } = device;
  const isOpen = state === 'open' || state === 'closing';
  const parked = new Map(isOpen ? core.channel.stats().parked.map((park) => [park.stream, park.reason]) : []);
  const snapshots = [...streams].map((stream) => {
    const parkedFor = parked.get(stream.timeline.slot);
    return { stream: stream.label, pending: stream.pending, ...(parkedFor === undefined ? {} : { parkedFor }) };
  });
  return { device: device.info.id, state, streams: snapshots };
}
