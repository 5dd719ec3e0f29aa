// The first argument of the functions that look at devices.
import { badArgument, show } from '../core/base/arguments.js';
import type { Device } from '../core/api/device.js';
import { checkOpenDevice, type DeviceLike } from '../core/api/open-devices.js';

/**
 * Undefined for all devices. Throws ArgumentError for what is no device, with the right form where options were given instead, and StateError
 * for a device that is not open.
 */
export function devicesOf(name: string, devices: DeviceLike | readonly DeviceLike[] | undefined): readonly Device[] | undefined {
  if (devices === undefined) return undefined;
  if (typeof devices === 'object' && devices !== null && Object.getPrototypeOf(devices) === Object.prototype) {
    const message = `The first argument of ${name} (${show(devices)}) is no device. Options are the second one: ${name}(undefined, options) is for all devices.`;
    throw badArgument('device', devices, message);
  }
  return ([devices].flat() as readonly DeviceLike[]).map((device) => checkOpenDevice('device', device));
}
