// The macros of CUDA's compilers that source of users sees on the CPU device.

/**
 * What NVRTC defines, so that sources take the same branches on both devices. The architecture is one whose features the CPU device has:
 * shuffles with masks and atomics of doubles, no asynchronous copies.
 */
export const CUDA_MACROS: ReadonlyMap<string, string> = new Map([
  ['__CUDACC__', '1'],
  ['__CUDACC_RTC__', '1'],
  ['__CUDACC_VER_MAJOR__', '13'],
  ['__CUDACC_VER_MINOR__', '0'],
  ['__CUDA_ARCH__', '700'],
  ['CUDART_VERSION', '13000'],
]);
