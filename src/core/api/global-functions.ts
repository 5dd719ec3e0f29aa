// Functions that name no device or no stream: they use all open devices of the thread, its default device, or the current stream of that
// device.
// Thread: owner.
import { badArgument, refuseSurplus, show, wrongDevice } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import { waitForDevices } from '../device/synchronize-devices.js';
import type { CudaParams, Kernel, LaunchShape } from '../kernels/kernel.js';
import type { Operation } from '../operations/operation.js';
import { type WaitOptions } from '../waits/wait.js';
import { refuseInCapture } from './active-capture.js';
import { currentStream, deviceOfRun, runOn, setDeviceOfRun } from './current-stream.js';
import type { Device } from './device.js';
import type { DeviceEvent } from './event.js';
import type { LaunchArgs } from './launch-args.js';
import { checkOpenDevice, chooseDefault, defaultOfThread, type DeviceLike, openDevices } from './open-devices.js';
import type { StreamOptions } from './stream-options.js';
import { Stream } from './stream.js';

/** Where a function of the module works: `device=` and `stream=` of Warp's functions. A stream of another device is an ArgumentError. */
export interface Place {
  /** The device, on whose current stream the function works. Default: the default device. */
  readonly device?: DeviceLike;
  /** The stream. Default: the current stream of the device. */
  readonly stream?: Stream;
}

/** The names of the options of `Place`. */
export const PLACE: readonly string[] = ['device', 'stream'];

/**
 * Resolves when everything submitted so far to any of the open devices of this thread has finished, as `device.synchronize` of each does:
 * `wp.synchronize`. Rejects as that does.
 */
export function synchronize(opts?: WaitOptions): Promise<void> {
  if (arguments.length > 1) refuseSurplus('synchronize', arguments, 1);
  refuseInCapture('host-wait', 'the host cannot wait for devices');
  return waitForDevices([...new Set(openDevices().map(({ core }) => core))], opts, true);
}

/**
 * `device.synchronize` of the default device, or of another one: `wp.synchronize_device('cuda:1')`, `torch.cuda.synchronize(1)`. Rejects as
 * that does, and with ArgumentError or StateError for a device that is not open.
 * @example await synchronizeDevice('cuda:1');
 */
export function synchronizeDevice(device?: DeviceLike, opts?: WaitOptions): Promise<void> {
  if (arguments.length > 2) refuseSurplus('synchronizeDevice', arguments, 2);
  refuseInCapture('host-wait', 'the host cannot wait for a device');
  return synchronizeOne(device, opts);
}

async function synchronizeOne(device: DeviceLike | undefined, opts: WaitOptions | undefined): Promise<void> {
  await deviceAt(device).synchronize(opts);
}

/**
 * The default device: inside `device.run`, `withDevice` and `stream.run` that device; outside, the device that `setDefaultDevice` set, or
 * else the oldest open one. `cupy.cuda.Device()`, `wp.get_device()`. Throws StateError if none is open.
 */
export function getDefaultDevice(): Device {
  if (arguments.length > 0) refuseSurplus('getDefaultDevice', arguments, 0);
  return deviceOfRun() ?? defaultOfThread();
}

/**
 * Sets the default device: inside a run until that run ends, outside for the thread. `cupy.cuda.Device.use`, `wp.set_device`. Throws
 * ArgumentError if `device` is not a device, StateError if it is closed or not open, DeviceLostError if it is lost.
 */
export function setDefaultDevice(device: DeviceLike): void {
  if (arguments.length > 1) refuseSurplus('setDefaultDevice', arguments, 1);
  const chosen = checkOpenDevice('device', device);
  if (!setDeviceOfRun(chosen)) chooseDefault(chosen);
}

/**
 * `device.run` of a device that may be given by its name: `with wp.ScopedDevice('cuda:1'):`, `with cupy.cuda.Device(1):`. Throws
 * ArgumentError or StateError for a device that is not open.
 * @example const y = withDevice('cuda:1', () => zeros(1000));
 */
export function withDevice<T>(device: DeviceLike, fn: () => T): T {
  if (arguments.length > 2) refuseSurplus('withDevice', arguments, 2);
  return runOn(checkOpenDevice('device', device), fn);
}

/** The current stream of the default device, or of another one: `wp.get_stream('cuda:1')`, `torch.cuda.current_stream`. */
export function getStream(device?: DeviceLike): Stream {
  if (arguments.length > 1) refuseSurplus('getStream', arguments, 1);
  return currentStream(deviceAt(device));
}

/** `device.createStream` of the default device, or of another one: `wp.Stream('cuda:1')`, `cupy.cuda.Stream()`. Throws as that does. */
export function createStream(opts: StreamOptions & { readonly device?: DeviceLike } = {}): Stream {
  if (arguments.length > 1) refuseSurplus('createStream', arguments, 1);
  if (typeof opts !== 'object' || opts === null) checkOptionNames(opts, []);
  const { device, ...own } = opts;
  return deviceAt(device).createStream(own);
}

/**
 * Calls `record` of the default device's current stream: `wp.record_event`. Throws StateError if no device is open, and what `record` throws.
 */
export function recordEvent(event?: DeviceEvent): DeviceEvent {
  if (arguments.length > 1) refuseSurplus('recordEvent', arguments, 1);
  return getStream().record(event);
}

/**
 * Calls `waitEvent` of the default device's current stream: `wp.wait_event`. Throws StateError if no device is open, and what
 * `waitEvent` throws.
 */
export function waitEvent(event: DeviceEvent): Operation {
  if (arguments.length > 1) refuseSurplus('waitEvent', arguments, 1);
  return getStream().waitEvent(event);
}

/**
 * Calls `waitStream` of the default device's current stream: `wp.wait_stream`. Throws StateError if no device is open, and what
 * `waitStream` throws.
 */
export function waitStream(stream: Stream): Operation {
  if (arguments.length > 1) refuseSurplus('waitStream', arguments, 1);
  return getStream().waitStream(stream);
}

/** `launch` of a kernel at module level. */
export function launchAt<P extends CudaParams>(kernel: Kernel<P>, shape: LaunchShape, args: LaunchArgs<P>, place?: Place): Operation {
  return streamAt(place).launch(kernel, shape, args as never);
}

/** The stream of a call. `otherwise`: the device of a call that names none. */
export function streamAt(place: Place = {}, otherwise: () => Device = getDefaultDevice): Stream {
  checkOptionNames(place, PLACE);
  const { device, stream } = place;
  if (stream === undefined) return currentStream(device === undefined ? otherwise() : checkOpenDevice('device', device));
  if (!((stream as unknown) instanceof Stream)) throw badArgument('stream', stream, `The stream (${show(stream)}) is not a stream.`);
  const own = device === undefined ? stream.device : checkOpenDevice('device', device);
  if (stream.core === own.core) return stream;
  throw wrongDevice('stream', stream, `Stream ${stream.label} belongs to device ${stream.core.name}, not to ${own.info.id}.`);
}

/** The default device, or the device of a call. */
export function deviceAt(device: DeviceLike | undefined): Device {
  return device === undefined ? getDefaultDevice() : checkOpenDevice('device', device);
}
