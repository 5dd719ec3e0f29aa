// Chapter 4: threads that wait for each other in loops.
import os from 'node:os';
import { describe, expect } from 'vitest';
import { cudaModule, i32, inout, LaunchError, type Operation, type Recorder } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

/** All are compiled at once. */
const module =
  cudaModule(`// A barrier of the whole grid, as programs write it without cooperative groups. Each block then adds what the block before it has written.
__device__ void wait_for_all(int* arrived, int goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < goal);
  }
  __syncthreads();
}
extern "C" __global__ void chained(int* arrived, int* sums) {
  if (threadIdx.x == 0) sums[blockIdx.x] = blockIdx.x;
  wait_for_all(arrived, gridDim.x);
  const int before = sums[(blockIdx.x + gridDim.x - 1) % gridDim.x];
  wait_for_all(arrived + 1, gridDim.x);
  if (threadIdx.x == 0) sums[blockIdx.x] += 100 * before;
}
// Blocks in a row, the first of which waits for the last.
extern "C" __global__ void relayed(int* turn, int* order) {
  volatile int* now = turn;
  while (now[0] != (int)(gridDim.x - 1 - blockIdx.x)) __nanosleep(100);
  order[now[0]] = blockIdx.x;
  __threadfence();
  now[0] = now[0] + 1;
}
// Launches that meet.
extern "C" __global__ void meeting(int* arrived, int goal) {
  atomicAdd(arrived, 1);
  while (atomicAdd(arrived, 0) < goal);
}
// A thread that waits for a later one of its block.
extern "C" __global__ void crossed(int* flag) {
  volatile int* seen = flag;
  if (threadIdx.x == 0) {
    while (seen[0] == 0);
    seen[1] = 7;
  } else if (threadIdx.x == 33) {
    seen[0] = 1;
  }
}`);
const chained = module.kernel('chained', { arrived: inout(i32), sums: inout(i32) });
const relayed = module.kernel('relayed', { turn: inout(i32), order: inout(i32) });
const meeting = module.kernel('meeting', { arrived: inout(i32), goal: i32 });
const crossed = module.kernel('crossed', { flag: inout(i32) });

defineChapter((target) => {
  const unless = target.name === 'fake-cuda' && 'the driver for tests runs the blocks of a launch one after the other';
  const isOnCpu = target.spec.startsWith('cpu');
  // The addon reads it at the first wait of the process.

  describe('4 kernels: threads that wait in loops', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule(
      'S487',
      'blocks meet at a barrier that the source itself makes of atomic functions',
      async () => {
        const { device } = chapter;
        const blocks = 48;
        using arrived = device.zeros(2, 'i32');
        using sums = device.zeros(blocks, 'i32');
        await device.stream.launch(chained, { grid: blocks, block: 64 }, { arrived, sums }).done;
        expect([...(await sums.read())]).toEqual(Array.from({ length: blocks }, (_, n) => n + 100 * ((n + blocks - 1) % blocks)));
      },
      { unless },
    );

    rule(
      'S487',
      'a block may wait for a later block, also in a graph',
      async () => {
        const { device } = chapter;
        const blocks = 20;
        using turn = device.zeros(1, 'i32');
        using order = device.zeros(blocks, 'i32');
        const expected = Array.from({ length: blocks }, (_, n) => blocks - 1 - n);
        const config = { grid: blocks, block: 1 };
        await device.stream.launch(relayed, config, { turn, order }).done;
        expect([...(await order.read())]).toEqual(expected);
        device.stream.fill(turn, 0);
        device.stream.fill(order, 0);
        const graph = device.stream.capture((stream) => void stream.launch(relayed, config, { turn, order }));
        await graph.launch().done;
        expect([...(await order.read())]).toEqual(expected);
        await graph.close();
      },
      { unless },
    );

    rule(
      'S487',
      'launches on more streams than the device has threads wait for each other',
      async () => {
        const { device } = chapter;
        const streams = Array.from({ length: isOnCpu ? 2 * os.availableParallelism() + 1 : 5 }, () =>
          device.createStream({ ordering: 'explicit' }),
        );
        using arrived = device.zeros(1, 'i32');
        await device.stream.synchronize();
        const launch = (stream: Recorder): Operation => stream.launch(meeting, { grid: 1, block: 1 }, { arrived, goal: streams.length });
        await Promise.all(streams.map((stream) => launch(stream).done));
        await device.stream.fill(arrived, 0).done;
        const graphs = streams.map((stream) => stream.capture(launch));
        await Promise.all(graphs.map((graph, n) => streams[n]!.launch(graph).done));
        expect([...(await arrived.read())]).toEqual([streams.length]);
        await Promise.all(graphs.map((graph) => graph.close()));
        await Promise.all(streams.map((stream) => stream.close()));
      },
      { unless },
    );

    rule(
      'S487',
      'a thread that waits for a later thread of its block ends: on the CPU device, in a LaunchError',
      async () => {
        const { device } = chapter;
        using flag = device.zeros(2, 'i32');
        const { done } = device.stream.launch(crossed, { grid: 1, block: 64 }, { flag });
        if (isOnCpu) {
          const error = await rejectionOf(done);
          expect(error).toBeInstanceOf(LaunchError);
          expect(error.message).toMatch(
            /^Kernel crossed .* waited in a loop for another thread, or for another launch, for more than \d+ ms/,
          );
          using other = device.full(2, 1, 'i32');
          await device.stream.launch(crossed, { grid: 1, block: 64 }, { flag: other }).done;
          expect([...(await other.read())]).toEqual([1, 7]);
        } else {
          await done;
          expect([...(await flag.read())]).toEqual([1, 7]);
        }
      },
      { unless },
    );
  });
});
