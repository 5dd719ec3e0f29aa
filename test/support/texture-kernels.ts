// Kernels that take a texture or a surface of one dimension, for tests of order and of arguments.
import { cudaModule, f32, i32, output, surface, texture } from 'millrace';

export const SOURCE = `extern "C" __global__ void show(cudaTextureObject_t t, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1D<float>(t, i + 0.5f);
}
extern "C" __global__ void put(cudaSurfaceObject_t s, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) surf1Dwrite(value + i, s, i * 4);
}
extern "C" __global__ void fetch(cudaTextureObject_t t, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float>(t, i);
}`;
/** The elements of the textures. */
export const N = 64;
export const ONE = { grid: 1, block: N } as const;
/** All are compiled at once. */
const module = cudaModule(SOURCE);
export const show = module.kernel('show', { t: texture, out: output(f32), n: i32 });
export const fetched = module.kernel('fetch', { t: texture, out: output(f32), n: i32 });
export const put = module.kernel('put', { s: surface, value: f32, n: i32 });
export const counted = (from: number): Float32Array => Float32Array.from({ length: N }, (_, i) => from + i);
