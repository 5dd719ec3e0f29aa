// The environment variables that the library reads.
/** Every variable that the library reads: docs/environment.md. */
export const VARIABLES: readonly string[] =
  'ADDON CACHE CACHE_DIR CACHE_LIMIT CPU_DEVICES CPU_SEED CPU_SPIN_MS CUBLASLT CUDADEVRT CUDA_DRIVER CUFFT CXX CXX_ARM64 CXX_X64 IMAGES NVCC NVJITLINK NVML NVRTC SIMD TIMELINE WERROR'
    .split(' ')
    .map((name) => `MILLRACE_${name}`);
/** Of tests and benchmarks of the library itself. */
export const OF_DEVELOPERS: RegExp = /^MILLRACE_(?:TEST_|FAKE_|BENCH_|FAILING_|LONG$|STATE$)/;

/** The one whose name differs least. */
export function nearestVariable(name: string): string {
  return VARIABLES.toSorted((a, b) => distance(a, name) - distance(b, name))[0]!;
}

/** How many characters to insert, remove or exchange. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + Number(a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length]!;
}
