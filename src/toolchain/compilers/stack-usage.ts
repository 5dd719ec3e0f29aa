// Reads the stack usage of a compiled image's functions from the files that the compiler writes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BuildSpec } from '../../core/channel/build-spec.js';
import type { CompileError } from '../../core/base/errors.js';
import { compileError, SOURCE_NAME, titleOf } from '../base/diagnostics.js';

/** Makes the compiler write stack usage files next to the image. */
export const STACK_FLAG = '-fstack-usage';

/**
 * Kernels have 8 MiB of stack (native/cpu/kernel_memory.h); threads that wait have less, and a guard that stops them. Frames within CUDA's limits fit: a CUDA thread has at most 512 KiB
 * of local memory, and a block 48 KiB of static shared memory. Only frames above those limits count, as if each function called the next.
 */
const COUNTED_BYTES = 1 << 20;
const MOST_BYTES = 6 << 20;

/** Stack frames that are too large together. */
export interface LargeFrames {
  /** The line of the function with the largest frame. */
  readonly line: number;
  /** The sum of all frames above COUNTED_BYTES. */
  readonly bytes: number;
}

/** Checks the image that was written to `folder` as `name`. */
export function largeFrames(folder: string, name: string): LargeFrames | undefined {
  let sum = 0;
  let largest = { line: 1, bytes: 0 };
  for (const file of readdirSync(folder)) {
    if (!file.startsWith(`${name}.`) || !file.endsWith('.su')) continue;
    for (const [, where = '', line, bytes] of readFileSync(join(folder, file), 'utf8').matchAll(/^(.*?):(\d+):.*\t(\d+)\t/gm)) {
      if (Number(bytes) <= COUNTED_BYTES) continue;
      sum += Number(bytes);
      if (Number(bytes) > largest.bytes) largest = { line: where === SOURCE_NAME ? Number(line) : 1, bytes: Number(bytes) };
    }
  }
  return sum > MOST_BYTES ? { line: largest.line, bytes: sum } : undefined;
}

/** Builds K703. */
export function lacksStack(spec: BuildSpec, { line, bytes }: LargeFrames): CompileError {
  const message = `${titleOf(spec)} needs ${Math.ceil(bytes / 1024)} KiB of stack for local variables (limit on the CPU device: ${MOST_BYTES / 1024} KiB).`;
  return compileError(spec, message, [{ code: 'K703', line, column: 1, message }]);
}
