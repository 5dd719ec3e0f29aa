// The open devices of this thread, in the order of their opening, and its default device. A Device enters when it is made and leaves when
// it is closed or lost, so this file keeps none alive.
// Thread: owner.
import { badArgument, show } from '../base/arguments.js';
import { StateError } from '../base/errors.js';
import { isPromiseLike } from '../base/promise-like.js';
import { checkDeviceName, type DeviceName } from './device-info.js';
import type { Device } from './device.js';

/**
 * A device that this thread has open: the Device, or its name, as in `cupy.cuda.Device(1)` and `wp.get_device('cuda:1')`. 'cuda' is
 * 'cuda:0', 'cpu' is 'cpu:0'. Of several Devices with the name, it is the oldest. A call throws ArgumentError for what names no device,
 * and StateError for a device that is not open.
 */
export type DeviceLike = Device | DeviceName | 'cuda';

const open: Set<Device> = new Set();
/** Every Device that this thread has made, to tell them from other objects. */
const made: WeakSet<object> = new WeakSet();
let chosen: Device | undefined;

/** Called with each Device that this thread makes. */
export const onEnter: Set<(device: Device) => void> = new Set();

/** Called with each Device that is closed or lost. */
export const onLeave: Set<(device: Device) => void> = new Set();

export function enter(device: Device): void {
  made.add(device);
  open.add(device);
  for (const told of onEnter) told(device);
}

/** It is closed or lost. */
export function leave(device: Device): void {
  open.delete(device);
  if (chosen === device) chosen = undefined;
  for (const told of onLeave) told(device);
}

/** Those that are not closed yet. */
export function openDevices(): readonly Device[] {
  return [...open];
}

/** What `setDefaultDevice` chose outside of runs, else the first that is open. */
export function defaultOfThread(): Device {
  if (chosen !== undefined) return chosen;
  for (const device of open) if (device.state === 'open') return device;
  throw new StateError(
    'ERR_MILLRACE_STATE',
    'There is no default device, because this thread has no open device. Call openDevice() first.',
  );
}

export function chooseDefault(device: Device): void {
  chosen = device;
}

/** The device. Throws for a value that is no Device of this thread and no name of one, and for a device that is not open or lost. */
export function checkOpenDevice(argument: string, value: unknown): Device {
  if (typeof value === 'string' || typeof value === 'number') return named(argument, value);
  if (typeof value !== 'object' || value === null || !made.has(value)) {
    const cure = isPromiseLike(value) ? ': await it first' : '';
    throw badArgument(argument, value, `The ${argument} (${show(value)}) is not a Device that this thread opened${cure}.`);
  }
  const device = value as Device;
  const over = device.refusal();
  if (over !== undefined) throw over;
  return device;
}

function named(argument: string, value: unknown): Device {
  const name = checkDeviceName(argument, value);
  const usable = [...open].filter(({ state }) => state === 'open');
  const found = usable.find(({ info }) => info.id === name);
  if (found !== undefined) return found;
  const others = [...new Set(usable.map(({ info }) => info.id))].join(', ');
  const message = `Device ${name} is not open in this thread (open: ${others || 'none'}). Call openDevice('${name}') first.`;
  throw new StateError('ERR_MILLRACE_STATE', message, { device: name });
}
