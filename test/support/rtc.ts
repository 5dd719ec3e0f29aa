// NVRTC of this machine, for tests of what it accepts. It needs no GPU: `pip download nvidia-cuda-nvrtc` and MILLRACE_NVRTC suffice.
import type { Nvrtc } from '../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { loadBinding } from '../../src/native/load.js';
import { nvrtcOf } from '../../src/workers/nvrtc.js';

export const RTC_MISSING = 'NVRTC is not there (MILLRACE_NVRTC names its library)';
export const RTC: Nvrtc | undefined = nvrtcOf(loadBinding(), 0);
