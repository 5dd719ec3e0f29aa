// cudaKernel(): CUDA C++ source with a typed parameter list. The call compares the list with the source, so that an error has the caller's
// stack. The device's compiler checks the source itself when the kernel is built.
import { refuseSurplus } from '../../core/base/arguments.js';
import { KERNEL_STAYS } from '../../core/base/uncloneable.js';
import { defined } from '../../core/kernels/definitions.js';
import { type CudaParams, type Kernel, MADE } from '../../core/kernels/kernel.js';
import { type CallSite, callSite } from '../diagnostics/diagnostics.js';
import { checkedCudaParams, checkOptions, elementTypes, refuseArgument } from './arguments.js';
import { checkedOptions, kernelSpec, readGivenSource } from './cuda-build.js';
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
  /**
   * The path of the file that the source was read from. Messages name it and its lines, and `#include "..."` looks beside it first. Without
   * it, as for a source in a string literal, that is the working directory.
   */
  readonly file?: string;
}

/**
 * Makes a kernel from CUDA C++ source: `cupy.RawKernel`, `nvrtcCompileProgram`. `source` is the text, or the URL of a file; the call reads
 * the file, and the headers that the source includes in quotes. `name` is the name of a `__global__` function of the source. It includes the
 * namespaces if it is not unique without them, and the arguments of a template: `'reduce<float, 256>'`.
 *
 * `params` declares the parameters in the order of the source. Scalars (`i32`), structs (`struct`), vectors (`vec3f`) and `bytes` are passed
 * by value. Arrays (`input(f32)`) are pointers, without a length; `optional` allows a null pointer. Throws CompileError if the source has no
 * such kernel, and ArgumentError if the parameters differ or a file cannot be read. The compiler checks the source when the kernel is built
 * for a device.
 * @example const twice = cudaKernel('twice', { x: inout(f32) }, 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }');
 */
export function cudaKernel<const P extends CudaParams>(name: string, params: P, source: string | URL, opts: CudaOptions = {}): Kernel<P> {
  if (arguments.length > 4) refuseSurplus('cudaKernel', arguments, 4);
  return make(name, params, source, opts, callSite(cudaKernel));
}

/** @internal A kernel whose text the library itself wrote, for an operation on arrays of these types: its image may come with the package. */
export function cudaKernelOfText<const P extends CudaParams>(name: string, params: P, text: string): Kernel<P> {
  return make(name, params, text, {}, { file: undefined, line: 0 }, elementTypes(params));
}

function make<const P extends CudaParams>(
  name: string,
  params: P,
  source: string | URL,
  opts: CudaOptions,
  site: CallSite,
  operation?: string,
): Kernel<P> {
  checkEntryName(name);
  const own = checkedCudaParams(params) as P;
  checkOptions(opts);
  const options = checkedOptions(opts.options ?? []);
  if (opts.deviceRuntime !== undefined && typeof opts.deviceRuntime !== 'boolean')
    refuseArgument(`deviceRuntime (${String(opts.deviceRuntime)}) must be true or false.`, 'deviceRuntime', opts.deviceRuntime);
  const given = readGivenSource(source, opts.file, options, site);
  const entry = checkEntry(given, name, own);
  const made: Kernel<P> = {
    uncloneable: KERNEL_STAYS,
    name,
    params: own,
    source: typeof source === 'string' ? source : given.original,
    [MADE]: true,
    build: {
      ...kernelSpec({ ...given, options, deviceRuntime: opts.deviceRuntime }, name, entry),
      ...(operation !== undefined && { operation }),
    },
    abi: 'plain',
    indexRank: 0,
  };
  return defined(made);
}
