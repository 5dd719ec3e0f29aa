// NVRTC as the addon finds it, in the form that compilers of kernels use. Thread: control.
import type { Binding } from '../native/binding.js';
import type { BackendReport } from '../protocol/reports.js';
import type { Nvrtc } from '../toolchain/compilers/nvrtc-or-nvcc.js';

/** Undefined where NVRTC is not installed. `ordinal`: the GPU whose driver links kernels that launch kernels. */
export function nvrtcOf(binding: Binding, ordinal: number): Nvrtc | undefined {
  const found = binding.nvrtc();
  return (
    found && {
      ...found,
      compile: ({ source, name, options, headers, kernels }) =>
        binding.compileNvrtc(source, name, options, [...headers.keys()], [...headers.values()], kernels),
      link: (cubin, library, architecture) => binding.linkDevice(ordinal, cubin, library, architecture),
    }
  );
}

/** The major version of CUDA that the driver supports: it loads code of compilers up to this one. Undefined without a driver. */
export function cudaMajorOf(backends: readonly BackendReport[]): number | undefined {
  return Number.parseInt(backends.find(({ name }) => name === 'cuda')?.driverVersion ?? '', 10) || undefined;
}
