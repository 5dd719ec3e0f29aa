// Functions that name no device or no stream: they use all open devices of the thread, its default device, or the current stream of that
// device.
// Thread: owner.
import { waitForDevices } from '../device/synchronize-devices.js';
import type { Operation } from '../operations/operation.js';
import { type WaitOptions } from '../waits/wait.js';
import { refuseInCapture } from './active-capture.js';
import { currentStream, deviceOfRun, setDeviceOfRun } from './current-stream.js';
import type { Device } from './device.js';
import type { DeviceEvent } from './event.js';
import { checkOpenDevice, chooseDefault, defaultOfThread, openDevices } from './open-devices.js';
import type { Stream } from './stream.js';

/**
 * Resolves when everything submitted so far to any of the open devices of this thread has finished, as `device.synchronize` of each does:
 * `wp.synchronize`. Rejects as that does.
 */
export function synchronize(opts?: WaitOptions): Promise<void> {
  refuseInCapture('host-wait', 'the host cannot wait for devices');
  return waitForDevices([...new Set(openDevices().map(({ core }) => core))], opts, true);
}

/**
 * The default device: inside `stream.run` the stream's device; outside, the device that `setDefaultDevice` set, or else the oldest open
 * one. `cupy.cuda.Device()`, `wp.get_device()`. Throws StateError if none is open.
 */
export function getDefaultDevice(): Device {
  return deviceOfRun() ?? defaultOfThread();
}

/**
 * Sets the default device: inside `stream.run` until that run ends, outside for the thread. `cupy.cuda.Device.use`, `wp.set_device`.
 * Throws ArgumentError if `device` is not a device, StateError if it is closed, DeviceLostError if it is lost.
 */
export function setDefaultDevice(device: Device): void {
  checkOpenDevice('device', device);
  if (!setDeviceOfRun(device)) chooseDefault(device);
}

/**
 * Calls `record` of the default device's current stream: `wp.record_event`. Throws StateError if no device is open, and what `record` throws.
 */
export function recordEvent(event?: DeviceEvent): DeviceEvent {
  return implied().record(event);
}

/**
 * Calls `waitEvent` of the default device's current stream: `wp.wait_event`. Throws StateError if no device is open, and what
 * `waitEvent` throws.
 */
export function waitEvent(event: DeviceEvent): Operation {
  return implied().waitEvent(event);
}

/**
 * Calls `waitStream` of the default device's current stream: `wp.wait_stream`. Throws StateError if no device is open, and what
 * `waitStream` throws.
 */
export function waitStream(stream: Stream): Operation {
  return implied().waitStream(stream);
}

function implied(): Stream {
  return currentStream(getDefaultDevice());
}
