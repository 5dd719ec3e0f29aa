// Imported before the library: points the CUDA backend at the fake driver and its compiler, for this process only.
import path from 'node:path';
import { FAKE_DRIVER } from './fake-driver.js';

/** Its stand-in for NVIDIA's library of matrix products. */
export const FAKE_CUBLASLT: string | undefined = FAKE_DRIVER && path.join(path.dirname(FAKE_DRIVER), 'libfake_cublaslt.so');
/** Its stand-in for NVIDIA's library of Fourier transforms, for tests of that alone: it computes by the definition, which takes long. */
export const FAKE_CUFFT: string | undefined = FAKE_DRIVER && path.join(path.dirname(FAKE_DRIVER), 'libfake_cufft.so');
/** Its stand-in for NVIDIA's library of collectives. */
export const FAKE_NCCL: string | undefined = FAKE_DRIVER && path.join(path.dirname(FAKE_DRIVER), 'libfake_nccl.so');

/** Its stand-in for NVML. */
export const FAKE_NVML: string | undefined = FAKE_DRIVER && path.join(path.dirname(FAKE_DRIVER), 'libfake_nvml.so');

export { FAKE_DRIVER, FAKE_DRIVER_MISSING } from './fake-driver.js';

if (FAKE_DRIVER !== undefined) {
  process.env['MILLRACE_CUDA_DRIVER'] = FAKE_DRIVER;
  process.env['MILLRACE_NVCC'] = process.env['MILLRACE_FAKE_NVCC'] ?? path.resolve(import.meta.dirname, '../native/fake_cuda/nvcc.mjs');
  process.env['MILLRACE_NVRTC'] = '/nonexistent';
  process.env['MILLRACE_CUBLASLT'] = FAKE_CUBLASLT;
  process.env['MILLRACE_NVML'] = FAKE_NVML;
  process.env['MILLRACE_CUFFT'] = '/nonexistent';
  process.env['MILLRACE_NCCL'] = FAKE_NCCL;
  // Any file: the fake driver has the device runtime itself.
  process.env['MILLRACE_CUDADEVRT'] = process.env['MILLRACE_NVCC'];
  process.env['MILLRACE_FAKE_CUDA_MEMORY'] ??= String(2 ** 30);
}
