// Builds CUDA C++ with a thread of the system for each thread of a block (cuda_on_threads.h), with which the CPU device's forms are compared.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rewriteForCpu } from '../../../src/cuda-cpp/lower/rewrite.js';
import { HEADER_DIRECTORY, WRITTEN_HEADERS } from '../../../src/toolchain/base/kernel-headers.js';
import { SHIM_DIRECTORY } from '../../../src/toolchain/base/package-and-cpu-identity.js';
import { keptFile, textsIn } from '../../support/kept-output.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const INCLUDES = [HERE, SHIM_DIRECTORY, join(SHIM_DIRECTORY, 'include'), HEADER_DIRECTORY, join(WRITTEN_HEADERS, 'kernels')];

const FLAGS = ['-std=c++20', '-O1', '-fPIC'];
const SHARED = [...FLAGS, '-w', '-shared', '-pthread', '-fvisibility=hidden'];

/** The path of the image. */
export function buildOnThreads(text: string, entries: readonly string[]): string {
  const exported = entries.map((entry) => `MR_KERNEL(${entry})`).join('\n');
  const input = `#include "cuda_on_threads.h"\n${rewriteForCpu(text).text}\n${exported}\n`;
  const [source, header] = ['cuda_on_threads.cpp', 'cuda_on_threads.h'].map((name) => join(HERE, name)) as [string, string];
  const facts = [source, header].map((file) => readFileSync(file, 'utf8'));
  // Without the shim's headers, some of which stand for those of the system.
  const barriers = keptFile(['barriers', ...facts], (file) => execFileSync('g++', [...FLAGS, '-c', source, '-o', file]));
  return keptFile([...facts, ...[SHIM_DIRECTORY, HEADER_DIRECTORY, WRITTEN_HEADERS].flatMap(textsIn), input], (file) => {
    const folders = INCLUDES.flatMap((folder) => ['-I', folder]);
    execFileSync('g++', [...SHARED, ...folders, '-x', 'c++', '-', '-x', 'none', barriers, '-o', file], { input });
  });
}
