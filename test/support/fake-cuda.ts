// Imported before the library: points the CUDA backend at the fake driver and its compiler, for this process only.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { QUICK } from './quick-compiler.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const BUILT = 'build/cmake/test/native/libfake_cuda.so';

/** The built library, if there is one. MILLRACE_FAKE_CUDA_LIBRARY names another place. */
export const FAKE_DRIVER: string | undefined = [process.env['MILLRACE_FAKE_CUDA_LIBRARY'], path.join(ROOT, BUILT)].find(
  (file) => file !== undefined && existsSync(file),
);
export const FAKE_DRIVER_MISSING = `libfake_cuda.so was not built (looked for ${BUILT}); npm run test:native builds it.`;

if (FAKE_DRIVER !== undefined) {
  process.env['MILLRACE_CUDA_DRIVER'] = FAKE_DRIVER;
  process.env['MILLRACE_NVCC'] = process.env['MILLRACE_FAKE_NVCC'] ?? path.join(ROOT, 'test/native/fake_cuda/nvcc.mjs');
  process.env['MILLRACE_NVRTC'] = '/nonexistent';
  // Any file: the fake driver has the device runtime itself.
  process.env['MILLRACE_CUDADEVRT'] = process.env['MILLRACE_NVCC'];
  // The subject is native/cuda, not what a compiler makes of the kernels.
  Object.assign(process.env, QUICK);
  process.env['MILLRACE_FAKE_CUDA_MEMORY'] ??= String(2 ** 30);
}
