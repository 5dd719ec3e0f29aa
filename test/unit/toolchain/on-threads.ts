// Builds CUDA C++ with a thread of the system for each thread of a block (cuda_on_threads.h), with which the CPU device's forms are compared.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rewriteForCpu } from '../../../src/cuda-cpp/lower/rewrite.js';
import { HEADER_DIRECTORY, WRITTEN_HEADERS } from '../../../src/toolchain/base/kernel-headers.js';
import { SHIM_DIRECTORY } from '../../../src/toolchain/base/package-and-cpu-identity.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const INCLUDES = [HERE, SHIM_DIRECTORY, join(SHIM_DIRECTORY, 'include'), HEADER_DIRECTORY, join(WRITTEN_HEADERS, 'kernels')];

/** The path of the image, in the folder. */
export function buildOnThreads(directory: string, name: string, text: string, entries: readonly string[]): string {
  const source = join(directory, `${name}.cpp`);
  const exported = entries.map((entry) => `MR_KERNEL(${entry})`).join('\n');
  writeFileSync(source, `#include "cuda_on_threads.h"\n${rewriteForCpu(text).text}\n${exported}\n`);
  const barriers = join(directory, 'barriers.o');
  const path = join(directory, `${name}.so`);
  execFileSync('g++', ['-std=c++20', '-O1', '-fPIC', '-c', join(HERE, 'cuda_on_threads.cpp'), '-o', barriers]);
  const flags = ['-std=c++20', '-O1', '-w', '-fPIC', '-shared', '-pthread', '-fvisibility=hidden'];
  execFileSync('g++', [...flags, ...INCLUDES.flatMap((folder) => ['-I', folder]), source, barriers, '-o', path]);
  return path;
}
