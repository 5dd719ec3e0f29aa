// nvcc compiles every source of the suite: those emitted for TypeScript kernels, and those of CUDA C++ kernels.
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

test.skipIf(!hasNvcc)('nvcc compiles the kernels of the suite (skipped without nvcc)', { timeout: 300_000 }, async () => {
  await import('./suite.js');
  expect(made.typed.length).toBeGreaterThan(25);
  expect(made.texts.length).toBeGreaterThan(5);
  compileWithNvcc(made.typed, [...new Set(made.texts)]);
});
