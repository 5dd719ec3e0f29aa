// cudaKernel(): CUDA C++ source with a typed parameter list. The call compares the list with the source, so that an error has the caller's
// stack. The device's compiler checks the source itself when the kernel is built.
import { KERNEL_STAYS } from '../../core/base/uncloneable.js';
import { type Kernel, MADE, type Params } from '../../core/kernels/kernel.js';
import { callSite } from '../diagnostics/diagnostics.js';
import { checkedParams, checkOptions, refuseArgument } from './arguments.js';
import { checkedOptions, kernelSpec, readText } from './cuda-build.js';
import { checkEntry, checkEntryName } from './cuda-entry.js';

/** How CUDA C++ source is compiled: options of `cudaKernel` and `cudaModule`. */
export interface CudaOptions {
  /** Extra options for the device's compiler, as NVRTC spells them; `options` of `cupy.RawKernel`. */
  readonly options?: readonly string[];
  /**
   * Whether kernels of the source launch kernels. On CUDA the source is then compiled as relocatable device code and linked with the device
   * runtime (`nvcc -rdc=true -lcudadevrt`). Default: whether `<<<` occurs in the source.
   */
  readonly deviceRuntime?: boolean;
}

/**
 * Makes a kernel from CUDA C++ source: `cupy.RawKernel`, `nvrtcCompileProgram`. `name` is the name of a `__global__`
 * function of the source, with its namespaces if it is not unique without them, and with the arguments of a template: `'reduce<float, 256>'`.
 * `params` are in the order of its parameter list; arrays are pointers without lengths. Throws CompileError if the source has no such
 * kernel and ArgumentError if the lists differ. The compiler checks the source when the kernel is built for a device.
 * @example const twice = cudaKernel('twice', { x: inout(f32) }, 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }');
 */
export function cudaKernel<const P extends Params>(name: string, params: P, source: string, opts: CudaOptions = {}): Kernel<P> {
  const site = callSite(cudaKernel);
  checkEntryName(name);
  const own = checkedParams(params) as P;
  if (typeof source !== 'string') refuseArgument(`The source (${typeof source}) must be a string.`, 'source', source);
  checkOptions(opts);
  const options = checkedOptions(opts.options ?? []);
  if (opts.deviceRuntime !== undefined && typeof opts.deviceRuntime !== 'boolean')
    refuseArgument(`deviceRuntime (${String(opts.deviceRuntime)}) must be true or false.`, 'deviceRuntime', opts.deviceRuntime);
  const given = readText(source);
  const entry = checkEntry(given.source, given.text, name, own, site);
  const made: Kernel<P> = {
    uncloneable: KERNEL_STAYS,
    name,
    params: own,
    source,
    [MADE]: true,
    build: kernelSpec({ ...given, options, site, deviceRuntime: opts.deviceRuntime }, name, entry),
    abi: 'plain',
    indexRank: 0,
  };
  return Object.freeze(made);
}
