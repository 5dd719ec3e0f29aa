// The calls that name neither device nor stream: all open devices of the thread, its default device, and the current
// stream of that.
// Thread: owner.
import { waitForDevices } from '../device/wait-for-devices.js';
import type { Operation } from '../operations/operation.js';
import { type WaitOptions } from '../waits/wait.js';
import { currentStream, deviceOfRun, setDeviceOfRun } from './current.js';
import type { Device } from './device.js';
import type { DeviceEvent } from './event.js';
import { checkOpenDevice, chooseDefault, defaultOfThread, openDevices } from './open-devices.js';
import type { Stream } from './stream.js';

/**
 * Resolves when everything submitted so far by this thread to any of its open devices has finished: `wp.synchronize`. Rejects as
 * `device.synchronize` does.
 */
export async function synchronize(opts?: WaitOptions): Promise<void> {
  await waitForDevices(
    openDevices().map(({ core }) => core),
    opts,
  );
}

/**
 * Inside `stream.run` the stream's device; outside the one that `setDefaultDevice` named, else the first that was opened and is open:
 * `cupy.cuda.Device()`, `wp.get_device()`. StateError where none is open.
 */
export function getDefaultDevice(): Device {
  return deviceOfRun() ?? defaultOfThread();
}

/**
 * Inside `stream.run` until that run ends, outside for the thread: `cupy.cuda.Device.use`, `wp.set_device`. Throws ArgumentError for what
 * is no device, StateError for one that is closed, DeviceLostError for one that is lost.
 */
export function setDefaultDevice(device: Device): void {
  checkOpenDevice('device', device);
  if (!setDeviceOfRun(device)) chooseDefault(device);
}

/** `record` of the current stream of the default device: `wp.record_event`. */
export function recordEvent(event?: DeviceEvent): DeviceEvent {
  return implied().record(event);
}

/** `waitEvent` of the current stream of the default device: `wp.wait_event`. */
export function waitEvent(event: DeviceEvent): Operation {
  return implied().waitEvent(event);
}

/** `waitStream` of the current stream of the default device: `wp.wait_stream`. */
export function waitStream(stream: Stream): Operation {
  return implied().waitStream(stream);
}

function implied(): Stream {
  return currentStream(getDefaultDevice());
}
