// Chapter 6: source ranks of `shfl` in tiles of more than a warp.
import { describe, expect } from 'vitest';
import { cudaKernel, cudaModule, i32, inout, LaunchError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

const SOURCE = `#include <cooperative_groups.h>
namespace cg = cooperative_groups;
template <class Tile>
__device__ int told(Tile tile, int v, int from) {
  return tile.shfl(v, from);
}
__global__ void by_parity(int* x, int odd) {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  int t = threadIdx.x;
  x[t] = told(tile, x[t], tile.meta_group_rank() == 1 && t % 2 == 1 ? odd : 5);
}
__global__ void by_branch(int* x, int odd) {
  auto tile = cg::tiled_partition<128>(cg::this_thread_block());
  int t = threadIdx.x;
  if (t < 96)
    x[t] = tile.shfl(x[t], 2);
  else
    x[t] = tile.shfl(x[t], odd);
}
`;
const PARAMS = { x: inout(i32), odd: i32 };
const FILE = 'tiles.cu';
const parity = cudaKernel('by_parity', PARAMS, SOURCE, { file: FILE });
const branch = cudaModule(SOURCE, { file: FILE }).kernel('by_branch', PARAMS);

defineChapter((target) => {
  const unless = target.spec.startsWith('cpu') ? false : 'a GPU waits without end when the source ranks of a tile differ';
  describe('6 failure: source ranks of tiles', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule(
      'S624',
      'different source ranks in a tile of more than 32 threads fail the launch, and the device continues',
      async () => {
        const { device } = chapter;
        for (const [kernel, odd, said] of [
          [parity, 7, /thread \(64, 0, 0\) gives 5 at .*tiles\.cu:5, and thread \(65, 0, 0\) gives 7 at .*tiles\.cu:5\. /],
          [branch, 3, /thread \(0, 0, 0\) gives 2 at .*tiles\.cu:16, and thread \(96, 0, 0\) gives 3 at .*tiles\.cu:18\. /],
        ] as const) {
          using poisoned = device.full(256, 1, 'i32');
          const error = await rejectionOf(device.stream.launch(kernel, { grid: 1, block: 128 }, { x: poisoned, odd }).done);
          expect(error).toBeInstanceOf(LaunchError);
          expect(error).toMatchObject({ code: 'ERR_MILLRACE_LAUNCH' });
          expect(error.message).toContain(`Kernel ${kernel.name} on stream `);
          expect(error.message).toContain('gives shfl of a tile different source ranks in block (0, 0, 0)');
          expect(error.message).toMatch(said);
        }
      },
      { unless },
    );

    rule('S624', 'the threads of a tile give the same source rank, and other tiles may give others', async () => {
      const { device } = chapter;
      using x = device.from(Int32Array.from({ length: 128 }, (_unused, i) => i * i));
      device.stream.launch(parity, { grid: 1, block: 128 }, { x, odd: 5 });
      expect([...(await x.read())]).toEqual(Array.from({ length: 128 }, (_unused, i) => (i < 64 ? 25 : 69 * 69)));
      const told = cudaKernel(
        'by_tile',
        { x: inout(i32) },
        `${SOURCE}__global__ void by_tile(int* x) {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  x[threadIdx.x] = told(tile, (int)threadIdx.x, 10 + tile.meta_group_rank());
}`,
        { file: FILE },
      );
      device.stream.launch(told, { grid: 1, block: 128 }, { x });
      expect([...(await x.read())]).toEqual(Array.from({ length: 128 }, (_unused, i) => (i < 64 ? 10 : 75)));
    });
  });
});
