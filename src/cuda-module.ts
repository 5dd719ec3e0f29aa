// cudaModule(): the compiler reads the source, the core makes a module of it.
import { refuseSurplus } from './core/base/arguments.js';
import { type CudaOptions } from './compiler/definitions/cuda-kernel.js';
import { readModule } from './compiler/definitions/cuda-module.js';
import { callSite } from './compiler/diagnostics/diagnostics.js';
import { CudaModule } from './core/api/cuda-module.js';

/**
 * Makes a module of several kernels from one CUDA C++ source, with the variables that they share: `cupy.RawModule`, `cuModuleLoadData`.
 * Its kernels are the `__global__` functions of the source, and instances of its kernel templates. `source` is the text, or the URL of a file;
 * the call reads the file, and the headers that the source includes in quotes. A `__managed__` variable becomes a `__device__` variable. Throws
 * ArgumentError if `source` is neither a string nor the URL of a readable file. The compiler checks the source when the module is built for a
 * device.
 * @example const module = cudaModule('extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }');
 */
export function cudaModule(source: string | URL, opts: CudaOptions = {}): CudaModule {
  if (arguments.length > 2) refuseSurplus('cudaModule', arguments, 2);
  return new CudaModule(readModule(source, opts, callSite(cudaModule)));
}
