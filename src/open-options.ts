// The options of `openDevice`, and their checks.
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CheckOptions, checkCheckOptions } from './core/api/check-options.js';
import { checkDeviceName, type DeviceName } from './core/api/device-info.js';
import { checkSchedule, type Schedule } from './core/api/schedule.js';
import { checkOrdering } from './core/api/stream-options.js';
import { badArgument, checkInteger, show } from './core/base/arguments.js';
import { checkOptionNames } from './core/base/option-names.js';
import type { Ordering } from './core/device/stream-context.js';
import { checkWaitOptions } from './core/waits/wait.js';
import { MAX_PENDING } from './protocol/protocol.gen.js';

/** Which device to open. 'cuda' is 'cuda:0' and 'cpu' is 'cpu:0'. 'auto' is the first GPU, or the CPU device if there is no GPU. */
export type DeviceSpec = DeviceName | 'cuda' | 'auto';

/** Options of `openDevice`, which rejects with ArgumentError for bad values. */
export interface OpenOptions extends CheckOptions {
  /** Aborts the opening with an AbortError. It has no effect on the open device; use `close` or `destroy` for that. */
  readonly signal?: AbortSignal;
  /** The `ordering` of streams that do not set their own: 'tracked' (default), 'checked' or 'explicit'. See `StreamOptions`. */
  readonly ordering?: Ordering;
  /**
   * The most operations that may be submitted and not yet issued to the device, 1 to 2^20 (default). A call beyond it throws LimitError.
   */
  readonly maxPending?: number;
  /** What the device's thread does after its last work, 'auto' by default. See `Schedule`. */
  readonly schedule?: Schedule;
  /**
   * A folder of kernels that `npx millrace build` has built for this device: its path, or its `file:` URL, also as a text. The device loads them
   * from there, in place of its cache and of what a compiler builds. Default: the folder that `MILLRACE_IMAGES` names, or none.
   */
  readonly images?: string | URL;
  /** What hosts the device: a thread of this process ('thread', default), or a process of its own ('process'). See `Isolation`. */
  readonly isolation?: Isolation;
  /**
   * With `isolation: 'process'`: if an operation that the device has begun has not ended after so long, the device is lost with
   * DeviceLostError, reason 'hung', and its process ends. A launch counts as one, however many blocks or nodes of a graph it has. The time stands still while the
   * process is stopped. Milliseconds, 1 to 2^31 - 1. Default: no limit.
   */
  readonly launchTimeoutMs?: number;
}

/**
 * What hosts a device. A 'process' ends alone: if a kernel or the driver crashes in it, or the system kills it, the device is lost with
 * DeviceLostError, and the program and other devices go on. Then `openDevice` gives a new one.
 */
export type Isolation = 'thread' | 'process';
const ISOLATIONS: readonly Isolation[] = ['thread', 'process'];

/** The options that a later opening of the device cannot change. */
export interface Settings {
  readonly ordering: Ordering;
  readonly maxPending: number;
  readonly guard: boolean;
  readonly memoryLimitBytes: number | undefined;
  readonly racecheck: boolean;
  readonly seed: number | undefined;
  readonly threads: number | undefined;
  readonly schedule: Schedule;
  readonly images: string | undefined;
  readonly isolation: Isolation;
  readonly launchTimeoutMs: number | undefined;
}
export const SETTINGS: readonly (keyof Settings)[] = [
  'ordering',
  'maxPending',
  'guard',
  'memoryLimitBytes',
  'racecheck',
  'seed',
  'threads',
  'schedule',
  'images',
  'isolation',
  'launchTimeoutMs',
];

/** The options of one call. `images` is an absolute path. */
export type Opening = Omit<OpenOptions, 'images'> & { readonly images?: string | undefined };

/** Returns the full name of the device, or 'auto'. Throws ArgumentError. */
export function checkOptions(spec: unknown, opts: OpenOptions): DeviceName | 'auto' {
  const name = checkDeviceName('spec', spec, 'auto');
  checkOptionNames(opts, ['signal', ...SETTINGS]);
  if (opts.signal !== undefined) checkWaitOptions({ signal: opts.signal });
  if (opts.maxPending !== undefined) checkInteger('maxPending', opts.maxPending, 1, MAX_PENDING);
  if (opts.ordering !== undefined) checkOrdering(opts.ordering);
  if (opts.schedule !== undefined) checkSchedule(opts.schedule);
  if (opts.isolation !== undefined && !ISOLATIONS.includes(opts.isolation))
    throw badArgument('isolation', opts.isolation, `The isolation (${show(opts.isolation)}) is neither 'thread' nor 'process'.`);
  if (opts.launchTimeoutMs !== undefined) checkLaunchTimeout(opts.launchTimeoutMs, opts.isolation);
  checkCheckOptions(opts);
  return name;
}

function checkLaunchTimeout(launchTimeoutMs: number, isolation: Isolation | undefined): void {
  checkInteger('launchTimeoutMs', launchTimeoutMs, 1, 2 ** 31 - 1);
  if (isolation === 'process') return;
  const message = `The option launchTimeoutMs (${launchTimeoutMs}) needs isolation: 'process'. A kernel ends only with its process.`;
  throw badArgument('launchTimeoutMs', launchTimeoutMs, message);
}

/** The absolute path of a path or a URL, which may be a text: `import.meta.resolve` gives one. The device's worker reads the folder. */
export function imagesFolder(given: string | URL | undefined): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string' && given !== '' && !given.startsWith('file:')) return resolve(given);
  try {
    return fileURLToPath(given);
  } catch {
    throw badArgument('images', given, `The folder of images (${show(given)}) is neither a path nor a file: URL.`);
  }
}
