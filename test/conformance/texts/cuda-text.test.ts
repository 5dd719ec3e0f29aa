// Chapter 4, last part: CUDA C++ kernels whose threads wait for each other, against plain loops in JavaScript.
import { describe, expect } from 'vitest';
import { cudaModule, f32, i32, inout, input, output, u32 } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

/** All are compiled at once. */
const module = cudaModule(`template <typename T>
__device__ __forceinline__ void add_down(T* values, int count) {
  for (int reach = 512; reach > 0; reach /= 2) {
    if (threadIdx.x < reach && threadIdx.x + reach < count) values[threadIdx.x] += values[threadIdx.x + reach];
    __syncthreads();
  }
}
extern "C" __global__ void block_sums(const float* x, float* sums, int n) {
  __shared__ float values[1024];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  add_down(values, blockDim.x);
  if (threadIdx.x == 0) sums[blockIdx.x] = values[0];
}
extern "C" __global__ void transposed(const float* src, float* dst, int rows, int columns) {
  extern __shared__ float tile[];
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows && column < columns) tile[threadIdx.x * (blockDim.y + 1) + threadIdx.y] = src[row * columns + column];
  __syncthreads();
  const int rank = threadIdx.y * blockDim.x + threadIdx.x;
  row = blockIdx.y * blockDim.y + rank % blockDim.y;
  column = blockIdx.x * blockDim.x + rank / blockDim.y;
  if (row < rows && column < columns) dst[column * rows + row] = tile[rank / blockDim.y * (blockDim.y + 1) + rank % blockDim.y];
}
extern "C" __global__ void leaving(int* out, int rounds) {
  __shared__ int left;
  const int t = threadIdx.x;
  if (t == 0) left = 0;
  __syncthreads();
  for (int round = 0; round < rounds; round++) {
    if (t % rounds == round && t > 0) {
      out[t] = atomicAdd(&left, 1) * 0 + round;
      return;
    }
    __syncthreads();
  }
  out[t] = t == 0 ? left : -1;
}
__device__ int warp_sum(int v) {
  for (int by = 16; by > 0; by >>= 1) v += __shfl_xor_sync(0xffffffffu, v, by);
  return v;
}
extern "C" __global__ void warp_sums(const int* x, int* out, unsigned* votes) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  out[i] = warp_sum(x[i]);
  const unsigned odd = __ballot_sync(0xffffffffu, x[i] & 1);
  const unsigned alike = __match_any_sync(0xffffffffu, x[i] % 3);
  if (lane >= 16) return;
  unsigned vote = odd ^ alike;
  if (lane < 4) vote += __shfl_sync(0xfu, lane * 100, 3) + __any_sync(0xfu, x[i] < 0);
  else vote += __shfl_up_sync(0xfff0u, 7 * lane, 1, 4);
  __syncwarp(0xffff);
  votes[i] = vote + __all_sync(0xffffu, lane < 16);
}
// A warp of which only the lanes below the end stay. The lanes of a mask are below 4.
__global__ void absent_lanes(unsigned* out, unsigned end) {
  const unsigned lane = threadIdx.x, own = 100 + lane;
  if (lane >= end) return;
  out[lane] = __shfl_down_sync(0xffffffff, own, 16);
  if (lane < 4) {
    out[32 + lane] = __shfl_xor_sync(0xf, own, 8);
    out[64 + lane] = __shfl_up_sync(0xf, own, 8);
  }
  out[96 + lane] = __shfl_sync(0xffffffff, own, 25);
}`);
const blockSums = module.kernel('block_sums', { x: input(f32), sums: output(f32), n: i32 });
const transposed = module.kernel('transposed', { src: input(f32), dst: output(f32), rows: i32, columns: i32 });
const leaving = module.kernel('leaving', { out: output(i32), rounds: i32 });
const warpSums = module.kernel('warp_sums', { x: input(i32), out: output(i32), votes: output(u32) });
const absentLanes = module.kernel('absent_lanes', { out: inout(u32), end: u32 });

defineChapter((target) => {
  describe('4 kernels: threads of a block', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S440', 'a tree reduction with barriers, in blocks of every size', async () => {
      const { device } = chapter;
      for (const block of [1, 31, 256, 1024]) {
        for (const n of [0, 1, 3, block - 1, block + 1, 3 * block]) {
          const values = Float32Array.from({ length: Math.max(n, 1) }, (_, i) => (i % 9) - 3);
          using x = device.from(values);
          using sums = device.zeros(3);
          device.stream.launch(blockSums, { grid: 3, block }, { x, sums, n });
          const expected = [0, 1, 2].map((at) =>
            values
              .subarray(0, n)
              .subarray(at * block, (at + 1) * block)
              .reduce((a, v) => a + v, 0),
          );
          expect([...(await sums.read())], `${n} in blocks of ${block}`).toEqual(expected);
        }
      }
    });

    rule('S440', 'tiles in dynamic shared memory, in blocks of two dimensions', async () => {
      const { device } = chapter;
      const [rows, columns] = [37, 53];
      using src = device.from(Float32Array.from({ length: rows * columns }, (_, i) => i));
      using dst = device.zeros(rows * columns);
      for (const [width, height] of [
        [8, 8],
        [32, 4],
        [5, 7],
      ] as const) {
        device.stream.fill(dst, 0);
        const grid = [Math.ceil(columns / width), Math.ceil(rows / height)] as const;
        const sharedBytes = 4 * width * (height + 1);
        device.stream.launch(transposed, { grid, block: [width, height], sharedBytes }, { src, dst, rows, columns });
        const expected = Float32Array.from({ length: rows * columns }, (_, i) => (i % rows) * columns + Math.floor(i / rows));
        expect(await dst.read(), `${width} x ${height}`).toEqual(expected);
      }
    });

    rule('S440', 'threads return between barriers, one part after the other', async () => {
      const { device } = chapter;
      for (const block of [1, 32, 33, 500]) {
        using out = device.full(block, 99, 'i32');
        device.stream.launch(leaving, { grid: 1, block }, { out, rounds: 3 });
        const expected = Int32Array.from({ length: block }, (_, t) => (t === 0 ? block - 1 : t % 3));
        expect(await out.read(), `blocks of ${block}`).toEqual(expected);
      }
    });

    rule('S441', 'lanes exchange values, before and after other lanes have returned', async () => {
      const { device } = chapter;
      const [grid, block] = [5, 96];
      const values = Int32Array.from({ length: grid * block }, (_, i) => (i * 7919) % 1009);
      using x = device.from(values);
      using out = device.zeros(values.length, 'i32');
      using votes = device.zeros(values.length, 'u32');
      device.stream.launch(warpSums, { grid, block }, { x, out, votes });
      const warp = (i: number): Int32Array => values.subarray(i - (i % 32), i - (i % 32) + 32);
      expect(await out.read()).toEqual(values.map((_, i) => warp(i).reduce((a, v) => a + v, 0)));
      const expected = Uint32Array.from(values, (value, i) => {
        const lane = i % 32;
        if (lane >= 16) return 0;
        const odd = warp(i).reduce((mask, v, at) => mask | ((v & 1) << at), 0);
        const alike = warp(i).reduce((mask, v, at) => mask | (v % 3 === value % 3 ? 1 << at : 0), 0);
        return (odd ^ alike) + (lane < 4 ? 300 : 7 * (lane % 4 === 0 ? lane : lane - 1)) + 1;
      });
      expect(await votes.read()).toEqual(expected);
    });

    rule('S441', 'a shuffle that reads a lane which has returned, is outside the mask or does not exist gives 0', async () => {
      const { device } = chapter;
      using out = device.full(128, 9, 'u32');
      device.stream.launch(absentLanes, { grid: 1, block: 32 }, { out, end: 20 });
      const own = (lane: number): number => 100 + lane;
      const rows = [
        // Lane 32 is beyond the warp, which gives the own value.
        (lane: number) => (lane + 16 < 20 ? own(lane + 16) : lane + 16 < 32 ? 0 : own(lane)),
        (lane: number) => (lane < 4 ? 0 : 9),
        (lane: number) => (lane < 4 ? own(lane) : 9),
        () => 0,
      ];
      const expected = Uint32Array.from({ length: 128 }, (_, i) => (i % 32 < 20 ? rows[Math.floor(i / 32)]!(i % 32) : 9));
      expect(await out.read(), 'lanes have returned').toEqual(expected);
      device.stream.launch(absentLanes, { grid: 1, block: 20 }, { out, end: 32 });
      expect(await out.read(), 'the warp has 20 lanes').toEqual(expected);
    });
  });
});
