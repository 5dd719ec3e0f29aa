// NVRTC of this machine, for tests of what it accepts. It needs no GPU: `pip download nvidia-cuda-nvrtc` and MILLRACE_NVRTC suffice.
import type { Nvrtc } from '../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { loadBinding } from '../../src/native/load.js';

export const RTC_MISSING = 'NVRTC is not there (MILLRACE_NVRTC names its library)';
export const RTC: Nvrtc | undefined = findNvrtc();

function findNvrtc(): Nvrtc | undefined {
  const binding = loadBinding();
  const found = binding.nvrtc();
  return (
    found && {
      ...found,
      compile: ({ source, name, options, headers, kernels }) =>
        binding.compileNvrtc(source, name, options, [...headers.keys()], [...headers.values()], kernels),
      link: () => Promise.reject(new Error('Linking needs a device.')),
    }
  );
}
