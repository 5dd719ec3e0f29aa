// nvcc compiles every source of the suite: those emitted for TypeScript kernels, and those of CUDA C++ kernels.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import type * as Millrace from 'millrace';
import type { Kernel } from 'millrace';
import { compileWithNvcc, hasNvcc } from '../support/nvcc.js';

const made = vi.hoisted(() => ({ typed: [] as Kernel[], texts: [] as string[] }));

vi.mock('millrace', async (importOriginal) => {
  const real = await importOriginal<typeof Millrace>();
  const kernel = (...args: readonly unknown[]): Kernel => {
    const one = (real.kernel as (...given: readonly unknown[]) => Kernel)(...args);
    made.typed.push(one);
    return one;
  };
  const cudaKernel = (...args: readonly unknown[]): Kernel => {
    const one = (real.cudaKernel as (...given: readonly unknown[]) => Kernel)(...args);
    made.texts.push(one.source);
    return one;
  };
  return { ...real, kernel, cudaKernel };
});

// The chapters define kernels, and no tests here.
vi.mock('../support/chapter.js', () => ({ defineChapter: () => {} }));

test.skipIf(!hasNvcc)('nvcc compiles the kernels of the suite (skipped without nvcc)', { timeout: 300_000 }, async () => {
  for (const file of readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }))
    if (file.includes('/') && file.endsWith('.test.ts')) await import(path.join(import.meta.dirname, file));
  expect(made.typed.length).toBeGreaterThan(25);
  expect(made.texts.length).toBeGreaterThan(5);
  compileWithNvcc(made.typed, [...new Set(made.texts)]);
});
