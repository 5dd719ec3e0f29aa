// Builds CUDA C++ sources for the CPU device and runs them without the addon: a small C++ program loads the image and calls it from two
// threads. It is compiled once.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { SHIM_DIRECTORY } from '../../../src/toolchain/base/package-and-cpu-identity.js';
import { keptFile, textsIn } from '../../support/kept-output.js';

export type ImageArgument =
  | Uint8Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array
  | { readonly value: NodeJS.TypedArray };

export interface ImageLaunch {
  readonly grid: readonly [number, number, number];
  readonly block: readonly [number, number, number];
  readonly sharedBytes?: number;
  /** 0: all blocks at once. */
  readonly threads?: number;
}

export type ImageRun = readonly [image: Uint8Array | string, entry: string, launch: ImageLaunch, args: readonly ImageArgument[]];

/** One argument by value. */
export function f32(value: number): ImageArgument {
  return { value: Float32Array.of(value) };
}
export function i32(value: number): ImageArgument {
  return { value: Int32Array.of(value) };
}

export function specOf(source: string, entry: string, more: Partial<BuildSpec> = {}): BuildSpec {
  return {
    source,
    entry,
    name: entry,
    options: [],
    fmad: true,
    isBounded: false,
    isChecked: false,
    mapping: { file: 'user.ts', lines: [] },
    ...more,
  };
}

const NATIVE = join(SHIM_DIRECTORY, '..', '..');

function program(): string {
  const sources = [
    fileURLToPath(new URL('./run_image.cpp', import.meta.url)),
    ...['address_space', 'image_variables', 'kernel_memory', 'thread_stacks'].map((name) => join(NATIVE, 'cpu', `${name}.cpp`)),
  ];
  const options = ['-std=c++20', '-O1', '-rdynamic', '-I', SHIM_DIRECTORY, '-I', NATIVE];
  const own = [sources[0]!, fileURLToPath(new URL('../../native/image_memory.h', import.meta.url))].map((file) =>
    readFileSync(file, 'utf8'),
  );
  const facts = [...options, ...own, ...['cpu', 'hal'].flatMap((name) => textsIn(join(NATIVE, name)))];
  return keptFile(facts, (file) => execFileSync('g++', [...options, ...sources, '-o', file, '-ldl', '-pthread']));
}

export class ImageRunner {
  readonly directory: string = mkdtempSync(join(tmpdir(), 'millrace-run-image-'));

  readonly #program: string = program();

  /** Arrays hold what the kernel left in them afterwards. Returns what it printed. */
  run(...one: ImageRun): string {
    return this.runAll([one]);
  }

  /** One after the other, in one process. */
  runAll(runs: readonly ImageRun[]): string {
    const files: [string, NodeJS.TypedArray][] = [];
    const words = runs.flatMap(([image, entry, { grid, block, sharedBytes = 0, threads = 2 }, args]) => [
      '--',
      typeof image === 'string' ? image : Buffer.from(image).toString(),
      entry,
      ...[...grid, ...block, sharedBytes, threads].map(String),
      ...args.map((argument) => {
        if ('value' in argument) return `v:${Buffer.from(argument.value.buffer).toString('hex')}`;
        const file = join(this.directory, `argument-${files.length}`);
        writeFileSync(file, argument);
        files.push([file, argument]);
        return `m:${file}`;
      }),
    ]);
    const printed = execFileSync(this.#program, words.slice(1), { encoding: 'utf8', timeout: 60_000 });
    for (const [file, array] of files) new Uint8Array(array.buffer).set(readFileSync(file));
    return printed;
  }

  close(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
