// cudaModule(): the compiler reads the text, the core makes a module of it.
import { type CudaOptions } from './compiler/definitions/cuda-kernel.js';
import { readModule } from './compiler/definitions/cuda-module.js';
import { callSite } from './compiler/places/diagnostics.js';
import { CudaModule } from './core/faces/cuda-module.js';

/**
 * Several kernels from one CUDA C++ text, with the variables that they share: `cupy.RawModule`, `cuModuleLoadData`. The text has kernels
 * as `extern "C" __global__`. Throws CompileError for a `__managed__` variable (K007), ArgumentError for what is no text; the
 * rest of the text is checked when it is built for a device.
 */
export function cudaModule(source: string, opts: CudaOptions = {}): CudaModule {
  return new CudaModule(readModule(source, opts, callSite(cudaModule)));
}
