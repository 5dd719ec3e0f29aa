// What a program leaves on a device: memory and streams that only the end of the device frees.
import { AssertionError } from 'node:assert';
import { checkOrdering } from '../core/api/stream-options.js';
import type { Device } from '../core/api/device.js';
import { badArgument, show } from '../core/base/arguments.js';
import { StateError } from '../core/base/errors.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { Ordering } from '../core/device/stream-context.js';
import { openDevice } from '../open-device.js';

/** Options of `expectNoLeaks`. */
export interface LeakOptions {
  /** The `ordering` of the device's streams that do not set their own, as in `openDevice`. Default 'tracked'. */
  readonly ordering?: Ordering;
}

const MOST_LISTED = 10;

/**
 * Runs a program on a new CPU device and resolves to the value of `run`. Rejects with an AssertionError if, when all operations have ended, the
 * program has left arrays, textures or pinned memory that it did not dispose, or streams that it did not close. The message has the number
 * and the bytes, and the ten largest arrays with the lines that made them. An error of `run` is given as it is. What the garbage
 * collector ended meanwhile is not seen: `using` makes it no matter of luck. A graph keeps the arrays that it names until it is disposed. No
 * counterpart in CUDA; `compute-sanitizer --leak-check full` does so for `cudaMalloc`. Rejects with StateError if the CPU device is open in
 * this thread, ArgumentError for a bad option.
 * @example await expectNoLeaks((device) => pipeline(device, input));
 */
export async function expectNoLeaks<T>(run: (device: Device) => T | PromiseLike<T>, opts: LeakOptions = {}): Promise<T> {
  if (typeof run !== 'function') throw badArgument('run', run, `The program (${show(run)}) is not a function.`);
  checkOptionNames(opts, ['ordering']);
  const { ordering = 'tracked' } = opts;
  checkOrdering(ordering);
  await using device = await openDevice('cpu', { ordering });
  if (device.context.owner.isShared()) {
    const message = 'The CPU device is open in this thread, and may have arrays of other code: close it first.';
    throw new StateError('ERR_MILLRACE_STATE', message, { device: device.core.name });
  }
  const { core, context } = device;
  // Arrays know the lines that made them.
  core.isChecked = true;
  const before = new Set(context.streams);
  const pinnedBytes = core.arena.liveBytes;
  const value = await run(device);
  await device.synchronize();
  core.arena.reclaim();
  const left = [
    ...arraysLeft(core.live.arrays),
    ...pinnedLeft(core.arena.liveBytes - pinnedBytes),
    ...[...context.streams]
      .filter((stream) => stream.isOfUser && !before.has(stream))
      .map(({ label }) => `the stream ${label}, which is not closed`),
  ];
  if (left.length === 0) return value;
  const message = `The program left on the device:\n${left.map((one) => `- ${one}`).join('\n')}`;
  throw new AssertionError({ message, stackStartFn: expectNoLeaks });
}

function arraysLeft(arrays: readonly { readonly byteLength: number; readonly description: string }[]): string[] {
  if (arrays.length === 0) return [];
  const bytes = arrays.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const listed = arrays.slice(0, MOST_LISTED).map(({ description }) => `  ${description}`);
  const rest = arrays.length - listed.length;
  return [[`arrays, ${arrays.length} with ${bytes} bytes in all:`, ...listed, ...(rest > 0 ? [`  and ${rest} more`] : [])].join('\n')];
}

function pinnedLeft(bytes: number): string[] {
  return bytes === 0 ? [] : [`${bytes} bytes of pinned memory`];
}
