// The open devices of this thread, in the order of their opening, and its default device. A Device enters when it is made and leaves when
// it is closed or lost, so this file keeps none alive.
// Thread: owner.
import { badArgument, show } from '../base/arguments.js';
import { StateError } from '../base/errors.js';
import type { Device } from './device.js';

const open: Set<Device> = new Set();
/** Every Device that this thread has made, to tell them from other objects. */
const made: WeakSet<object> = new WeakSet();
let chosen: Device | undefined;

export function enter(device: Device): void {
  made.add(device);
  open.add(device);
}

/** It is closed or lost. */
export function leave(device: Device): void {
  open.delete(device);
  if (chosen === device) chosen = undefined;
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

/** Throws for a value that is not a Device of this thread, and for a Device that is closed or lost. */
export function checkOpenDevice(argument: string, value: unknown): Device {
  if (typeof value !== 'object' || value === null || !made.has(value)) {
    throw badArgument(argument, value, `The ${argument} (${show(value)}) is not a Device that this thread opened.`);
  }
  const device = value as Device;
  const over = device.refusal();
  if (over !== undefined) throw over;
  return device;
}
