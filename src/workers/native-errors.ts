// Failures of native calls as errors of the library.
// Thread: control.
import {
  CompileError,
  DeviceLostError,
  LaunchError,
  MillraceError,
  OutOfMemoryError,
  StateError,
  UnavailableError,
  UnsupportedError,
} from '../core/base/errors.js';
import { driverErrorIn } from '../core/base/driver-errors.js';
import type { NativeFailure } from '../native/binding.js';
import { loaderHelp, RAISE_LIMITS } from '../native/load.js';
import { Status } from '../protocol/protocol.gen.js';
import { lockedMemoryHelp } from './locked-memory-limit.js';

/** The facts of a native failure; the message ends with the driver's name of its error. */
function factsOf(error: unknown): Pick<NativeFailure, 'status' | 'driverStatus' | 'message'> {
  const { status, driverStatus, message } = error as NativeFailure;
  return { status, driverStatus, message: driverStatus === undefined ? message : `${message}${driverErrorIn(driverStatus)}` };
}

/** Turns the status of a native failure into an error of the library. */
export function asMillraceError(error: unknown, what: string, capability: string = ''): unknown {
  if (error instanceof MillraceError || !(error instanceof Error)) return error;
  const { status, driverStatus, message } = factsOf(error);
  const facts = { driverStatus, cause: error };
  switch (status) {
    case Status.COMPILE:
      return new CompileError('ERR_MILLRACE_COMPILE', `${what}: ${message}`, message, [], facts);
    case Status.OUT_OF_MEMORY:
      return new OutOfMemoryError('ERR_MILLRACE_MEMORY', `${what}: ${message}`, 0, 0, facts);
    case Status.UNAVAILABLE:
      return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `${what}: ${message}`, loaderHelp(message), facts);
    case Status.UNSUPPORTED:
      return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', `${what}: ${message}`, capability, facts);
    case Status.STATE:
      return new StateError('ERR_MILLRACE_STATE', `${what}: ${message}`, facts);
    case Status.DEVICE_LOST:
      return new DeviceLostError('ERR_MILLRACE_LOST', `${what}: ${message}`, 'fault', facts);
    default:
      return status === undefined ? error : new LaunchError('ERR_MILLRACE_LAUNCH', `${what}: ${message}`, facts);
  }
}

const NVML_HELP: readonly string[] = [
  'NVML (libnvidia-ml.so.1) is installed with the NVIDIA driver.',
  'A container gets it with the capability utility: NVIDIA_DRIVER_CAPABILITIES=compute,utility.',
  'MILLRACE_NVML names another file.',
];

/** Where NVML does not answer. */
export function asUntold(error: unknown): unknown {
  const { status, driverStatus, message } = factsOf(error);
  if (status !== Status.UNAVAILABLE) return asMillraceError(error, 'The GPU is not monitored', 'telemetry');
  const what = `The GPU is not monitored: ${message}`;
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', what, NVML_HELP, { driverStatus, cause: error });
}

/** Where CPU devices do not open with OpenBLAS. */
export const OPENBLAS_HELP: readonly string[] = [
  'MILLRACE_OPENBLAS is 1 for the library that the system has (Debian, Ubuntu: apt install libopenblas0-pthread), or the path of one with sizes of 32 bits.',
  'Without the variable, kernels of Millrace multiply matrices.',
];

/** CUDA_ERROR_OPERATING_SYSTEM. */
const SYSTEM_CALL_FAILED = 304;

/** What a call of the addon returns; its errors as `asMillraceError`. */
export function asked<T>(what: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw asMillraceError(error, what);
  }
}

/** As `asMillraceError`, for a device that does not open. A loss without a code of the driver is a kernel that does not end. */
export function asOpenFailure(error: unknown, device: string): unknown {
  const { status, driverStatus, message } = factsOf(error);
  const what = `Device ${device} cannot be opened`;
  // Such as "Array buffer allocation failed", for the 4 GiB of addresses that pinned memory grows in.
  if (error instanceof RangeError) {
    return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `${what}: ${message} (it reserves 4 GiB of addresses).`, [RAISE_LIMITS], {
      device,
      cause: error,
    });
  }
  if ((status === Status.OUT_OF_MEMORY || driverStatus === SYSTEM_CALL_FAILED) && message.includes('page-locking')) {
    const facts = { driverStatus, device, cause: error };
    return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `${what}: ${message}`, [lockedMemoryHelp()], facts);
  }
  if (status === Status.UNAVAILABLE && message.includes('opening OpenBLAS'))
    return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `${what}: ${message}`, OPENBLAS_HELP, { device, cause: error });
  if (status !== Status.DEVICE_LOST || driverStatus !== 0) return asMillraceError(error, what);
  return new DeviceLostError('ERR_MILLRACE_LOST', `${what}: ${message}`, 'hung', { device, cause: error });
}

/** Status codes of failures that are not about the handle itself. */
const NOT_THE_HANDLE: ReadonlySet<Status> = new Set([
  Status.STATE,
  Status.UNSUPPORTED,
  Status.UNAVAILABLE,
  Status.OUT_OF_MEMORY,
  Status.DEVICE_LOST,
]);

/** If the driver refuses a handle, the process that exported it has usually ended. */
export function asUnopened(error: unknown): unknown {
  const { status, driverStatus, message } = factsOf(error);
  if (driverStatus === undefined || NOT_THE_HANDLE.has(status)) return error;
  const help = ['The process that created the handle must still run on the same GPU, and must not have freed its memory or event.'];
  const what = `The handle of another process cannot be opened: ${message}`;
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', what, help, { driverStatus, cause: error });
}
