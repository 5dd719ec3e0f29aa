// The environment variables that the library reads.
import { nearestName } from '../../core/base/nearest-name.js';

/** Every variable that the library reads: docs/environment.md. */
export const VARIABLES: readonly string[] =
  'ADDON CACHE CACHE_DIR CACHE_LIMIT CPU_DEVICES CPU_NICE CPU_SEED CPU_SPIN_MS CUBLASLT CUDADEVRT CUDA_DRIVER CUFFT CXX CXX_ARM64 CXX_X64 IMAGES NCCL NVCC NVJITLINK NVML NVRTC OPENBLAS SECRET SIMD TIMELINE WERROR'
    .split(' ')
    .map((name) => `MILLRACE_${name}`);
/** Of tests and benchmarks of the library itself. */
export const OF_DEVELOPERS: RegExp = /^MILLRACE_(?:TEST_|FAKE_|BENCH_|FAILING_|LONG$|STATE$)/;

/** The one that a misspelt name may stand for. */
export function nearestVariable(name: string): string {
  return nearestName(name, VARIABLES)!;
}
