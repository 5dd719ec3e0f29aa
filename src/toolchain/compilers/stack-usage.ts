// What the functions of an image take of the stack of a thread that runs them, as the compiler says it in its files.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BuildSpec } from '../../core/channel/build.js';
import type { CompileError } from '../../core/base/errors.js';
import { compileError, TEXT_NAME, titleOf } from '../base/diagnostics.js';

/** Has the compiler write them, beside the image. */
export const STACK_FLAG = '-fstack-usage';

/**
 * A thread of the device has 8 MiB (native/cpu/pool.cpp). What CUDA takes fits: a thread there has 512 KiB of local memory in all, and
 * a block 48 KiB of arrays in shared memory. So only frames that CUDA would not take are counted, as if each called the next.
 */
const COUNTED_BYTES = 1 << 20;
const MOST_BYTES = 6 << 20;

/** A function's frame that is too large, alone or with others. */
export interface LargeFrame {
  readonly line: number;
  readonly bytes: number;
}

/** Of the image that was written to `folder` by `name`. */
export function largeFrame(folder: string, name: string): LargeFrame | undefined {
  let sum = 0;
  let largest: LargeFrame | undefined;
  for (const file of readdirSync(folder)) {
    if (!file.startsWith(`${name}.`) || !file.endsWith('.su')) continue;
    for (const [, where = '', line, bytes] of readFileSync(join(folder, file), 'utf8').matchAll(/^(.*?):(\d+):.*\t(\d+)\t/gm)) {
      if (Number(bytes) <= COUNTED_BYTES) continue;
      sum += Number(bytes);
      if (Number(bytes) > (largest?.bytes ?? 0)) largest = { line: where === TEXT_NAME ? Number(line) : 1, bytes: Number(bytes) };
    }
  }
  return sum > MOST_BYTES ? largest : undefined;
}

/** K703. */
export function lacksStack(spec: BuildSpec, { line, bytes }: LargeFrame): CompileError {
  const message = `${titleOf(spec)} has a function whose variables take ${Math.ceil(bytes / 1024)} KiB of a thread's stack on the CPU device (${MOST_BYTES / 1024} KiB).`;
  return compileError(spec, message, [{ code: 'K703', line, column: 1, message }]);
}
