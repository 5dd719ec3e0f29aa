// The current stream of each device, and the default device: of the thread, or of the `stream.run` or `device.run` that encloses the code
// and everything that it awaits.
//
// A run keeps its values in AsyncLocalStorage, which the first run loads, because it makes every await slower. setCurrentStream and
// setDefaultDevice change the values of the enclosing run, or of the thread outside of runs. The end of a run restores the values before it.
//
// A closed stream stays the current one: calls then throw with its name, so no work goes to another stream.
// Thread: owner.
import type { AsyncLocalStorage } from 'node:async_hooks';
import { badArgument, show, wrongDevice } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import { isPromiseLike } from '../base/promise-like.js';
import type { DeviceCore } from '../device/device-core.js';
import { capturingStream, refuseInCapture } from './active-capture.js';
import type { Device } from './device.js';
import type { MadeArrays } from './made-arrays.js';
import type { Stream } from './stream.js';

/** What `stream.run` orders at its start and at its end: `wp.ScopedStream(sync_enter=, sync_exit=)`. */
export interface RunOptions {
  /** Default true: the stream first waits for the previous current stream, on the device. */
  readonly syncEnter?: boolean;
  /**
   * Default false. True: the previous current stream waits for the stream that is current at the end of the run. If the device has no room
   * for that wait, the next operation of the previous stream submits the wait first, and throws LimitError until there is room.
   */
  readonly syncExit?: boolean;
}

/** The values of one run. */
interface Scope {
  readonly outer: Scope | undefined;
  /** The default device of the run. */
  device: Device;
  /** The current streams that were set in the run. */
  readonly streams: Map<DeviceCore, Stream>;
  /** What disposes the arrays that are made in the run. */
  readonly made: MadeArrays | undefined;
}

let storage: AsyncLocalStorage<Scope> | undefined;
const streamsOfThread: WeakMap<DeviceCore, Stream> = new WeakMap();

/** `stream.run`. */
export function runIn<T>(stream: Stream, fn: () => T, opts: RunOptions = {}): T {
  checkOptionNames(opts, ['syncEnter', 'syncExit']);
  const { syncEnter = true, syncExit = false } = opts;
  checkFunction(fn);
  const { device } = stream;
  const previous = currentStream(device);
  if (syncEnter) comeAfter(stream, previous);
  const scope: Scope = { outer: storage?.getStore(), device, streams: new Map([[device.core, stream]]), made: madeInRun() };
  storage ??= load();
  if (!syncExit) return storage.run(scope, fn);
  // The result or error of the function stays as it is: a wait that cannot be submitted now is submitted later (`comeAfter`).
  const leave = (): void => previous.comeAfter(scope.streams.get(device.core) as Stream);
  let result: T;
  try {
    result = storage.run(scope, fn);
    if (isPromiseLike(result)) {
      return result.then(
        (value) => {
          leave();
          return value;
        },
        (error: unknown) => {
          leave();
          throw error;
        },
      ) as T;
    }
  } catch (error) {
    leave();
    throw error;
  }
  leave();
  return result;
}

/** `device.run`: changes no current stream. */
export function runOn<T>(device: Device, fn: () => T): T {
  checkFunction(fn);
  return runMaking(madeInRun(), device, fn);
}

/** `scope.run`: as `runOn`, and `made` gets the arrays. */
export function runMaking<T>(made: MadeArrays | undefined, device: Device, fn: () => T): T {
  storage ??= load();
  return storage.run({ outer: storage.getStore(), device, streams: new Map(), made }, fn);
}

/** What gets the arrays that are made in the enclosing run. */
export function madeInRun(): MadeArrays | undefined {
  return storage?.getStore()?.made;
}

function checkFunction(fn: unknown): void {
  if (typeof fn !== 'function') throw badArgument('fn', fn, `The function to run (${show(fn)}) is not a function.`);
}

export function currentStream(device: Device): Stream {
  const captured = capturingStream(device.core);
  for (let scope = storage?.getStore(); scope !== undefined; scope = scope.outer) {
    if (captured !== undefined && scope === captured.scope) break;
    const stream = scope.streams.get(device.core);
    if (stream !== undefined) return stream;
  }
  // Only streams are captured.
  if (captured !== undefined) return captured.stream as Stream;
  return streamsOfThread.get(device.core) ?? device.defaultStream;
}

/** The run that encloses the code. */
export function enclosingRun(): object | undefined {
  return storage?.getStore();
}

/** `device.setCurrentStream`. */
export function setCurrent(device: Device, stream: Stream, isSynced: boolean): void {
  if (stream.core !== device.core) {
    throw wrongDevice('stream', stream, `Stream ${stream.label} belongs to device ${stream.device.info.id}, not to ${device.info.id}.`);
  }
  refuseInCapture('unsupported-node', 'the current stream cannot be set; use stream.run in a capture');
  stream.checkOpen();
  if (isSynced) comeAfter(stream, currentStream(device));
  const streams = storage?.getStore()?.streams ?? streamsOfThread;
  streams.set(device.core, stream);
}

/** The default device of the enclosing run; undefined outside of runs. */
export function deviceOfRun(): Device | undefined {
  return storage?.getStore()?.device;
}

/** Sets the default device of the enclosing run. Returns false outside of runs. */
export function setDeviceOfRun(device: Device): boolean {
  const scope = storage?.getStore();
  if (scope === undefined) return false;
  scope.device = device;
  return true;
}

function load(): AsyncLocalStorage<Scope> {
  const { AsyncLocalStorage } = process.getBuiltinModule('node:async_hooks');
  return new AsyncLocalStorage<Scope>();
}

/** Makes `stream` wait, on the device, for `other`. A stream that is ending has nothing pending. */
function comeAfter(stream: Stream, other: Stream): void {
  if (stream !== other && !other.timeline.isEnding) stream.waitStream(other);
}
