// Chapter 6: races of shared memory on a device that looks for them.
import { describe, expect } from 'vitest';
import { type CudaModule, cudaKernel, cudaModule, i32, inout, type InOut, type Kernel, kernel, LaunchError, openDevice } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

type Racer = Kernel<{ x: InOut<'i32'> }>;
const PARAMS = { x: inout(i32) };
const THREADS = 64;

/** What the kernels of `racer` are compiled from, at once. */
const texts: string[] = [];
/** A kernel of one array. The body sees `t`, the thread's rank in the block. */
function racer(name: string, body: string, before = ''): () => Racer {
  texts.push(`${before}extern "C" __global__ void ${name}(int* x) {
  const int t = threadIdx.x;
${body}
}`);
  return () => racers().kernel(name, PARAMS);
}
let made: CudaModule | undefined;
const racers = (): CudaModule => (made ??= cudaModule(texts.join('\n')));

/** A text, the kind of its race, and what its message says. */
const RACES: readonly (readonly [what: string, kernel: () => Racer, kind: string, message: RegExp])[] = [
  [
    'a missing barrier between a write and a read',
    racer('reversed', `  __shared__ int tile[${THREADS}];\n  tile[t] = x[t];\n  x[t] = tile[${THREADS - 1} - t];`),
    'write after read',
    /thread \(\d+, 0, 0\) writes byte \d+ of shared variable tile at .+:\d+, which thread \(\d+, 0, 0\) read at .+:\d+, and nothing orders the two/,
  ],
  [
    'a value that one thread writes for all',
    racer('told', `  __shared__ int first;\n  if (t == 0) first = x[0];\n  x[t] = first;`),
    'read after write',
    /thread \(1, 0, 0\) reads byte 0 of shared variable first at .+:\d+, which thread \(0, 0, 0\) wrote/,
  ],
  [
    'two values for one variable',
    racer('decided', `  __shared__ int last;\n  last = t;\n  __syncthreads();\n  x[t] = last;`),
    'write after write',
    /thread \(1, 0, 0\) writes byte 0 of shared variable last at .+:\d+, which thread \(0, 0, 0\) wrote/,
  ],
  [
    'a write of the next turn of a loop, after a read of the last one',
    racer(
      'turning',
      `  __shared__ int tile[${THREADS}];
  int sum = 0;
  for (int k = 0; k < 4; k++) {
    tile[t] = x[t] + k;
    __syncthreads();
    sum += tile[(t + 32) % ${THREADS}];
  }
  x[t] = sum;`,
    ),
    'read after write',
    /of shared variable tile at/,
  ],
  [
    'the last warp of a sum without __syncwarp, with volatile',
    racer(
      'lockstep',
      `  __shared__ int part[${THREADS}];
  part[t] = x[t];
  __syncthreads();
  if (t < 32) {
    volatile int* v = part;
    v[t] += v[t + 32];
    v[t] += v[t + 16];
    v[t] += v[t + 8];
  }
  __syncthreads();
  x[t] = part[0];`,
    ),
    'read after write',
    /of shared variable part at/,
  ],
  [
    'an atomic function and an ordinary read',
    racer('counted', `  __shared__ int count;\n  if (t == 0) count = 0;\n  __syncthreads();\n  atomicAdd(&count, 1);\n  x[t] = count;`),
    'write after read',
    /thread \(1, 0, 0\) atomically writes byte 0 of shared variable count/,
  ],
  [
    'counters that are used before all are zero',
    racer(
      'histogram',
      `  __shared__ int bins[${THREADS}];\n  bins[t] = 0;\n  atomicAdd(&bins[x[t] & 7], 1);\n  __syncthreads();\n  x[t] = bins[t];`,
    ),
    'write after write',
    /shared variable bins/,
  ],
  [
    'shared memory in a device function',
    racer(
      'swapped',
      `  put(t, x[t]);\n  x[t] = values[(t + 1) % ${THREADS}];`,
      `__shared__ int values[${THREADS}];\n__device__ void put(int at, int value) { values[at] = value; }\n`,
    ),
    'write after read',
    /shared variable values/,
  ],
];

/** Texts whose accesses are ordered. */
const ORDERED: readonly (readonly [what: string, kernel: () => Racer])[] = [
  [
    'a barrier between',
    racer('reversed_well', `  __shared__ int tile[${THREADS}];\n  tile[t] = x[t];\n  __syncthreads();\n  x[t] = tile[${THREADS - 1} - t];`),
  ],
  [
    'the last warp of a sum with __syncwarp, and sums in registers',
    racer(
      'warp_sum',
      `  __shared__ int part[${THREADS}];
  part[t] = x[t];
  __syncthreads();
  if (t < 32) {
    volatile int* v = part;
    int sum = v[t] + v[t + 32];
    __syncwarp();
    for (int by = 16; by > 0; by /= 2) {
      v[t] = sum;
      __syncwarp();
      sum += v[t + by < 32 ? t + by : t];
      __syncwarp();
    }
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
    if (t == 0) part[0] = sum;
  }
  __syncthreads();
  x[t] = part[0];`,
    ),
  ],
  [
    'atomic functions alone',
    racer(
      'all_atomic',
      `  __shared__ int count;\n  if (t == 0) count = 0;\n  __syncthreads();\n  atomicAdd(&count, x[t] & 1);\n  atomicMax(&count, 3);\n  __syncthreads();\n  x[t] = count;`,
    ),
  ],
  [
    'a flag that several threads set to the same value',
    racer(
      'same_value',
      `  __shared__ bool found;\n  if (t == 0) found = false;\n  __syncthreads();\n  if (x[t] > 3) found = true;\n  __syncthreads();\n  x[t] = found;`,
    ),
  ],
  ['neighbouring bytes', racer('bytes_beside', `  __shared__ char row[${THREADS}];\n  row[t] = 1;\n  row[t] += t;\n  x[t] = row[t];`)],
  [
    'parts of a warp, each with its own mask',
    racer(
      'halves',
      `  __shared__ int part[${THREADS}];\n  part[t] = x[t];\n  const unsigned half = 0xffffu << (t & 16);\n  __syncwarp(half);\n  x[t] = part[t ^ 8];`,
    ),
  ],
  [
    'a fence and an atomic function that tells the last thread',
    racer(
      'last_one',
      `  __shared__ int part[${THREADS}], done;
  if (t == 0) done = 0;
  __syncthreads();
  part[t] = x[t];
  __threadfence_block();
  if (atomicAdd(&done, 1) == ${THREADS - 1}) {
    int sum = 0;
    for (int k = 0; k < ${THREADS}; k++) sum += part[k];
    x[0] = sum;
  }`,
    ),
  ],
  [
    'a loop around a compare and swap, which reads first',
    racer(
      'swaps',
      `  __shared__ int most;
  if (t == 0) most = 0;
  __syncthreads();
  int old = most, seen;
  do {
    seen = old;
    old = atomicCAS(&most, seen, x[t] > seen ? x[t] : seen);
  } while (old != seen);
  __syncthreads();
  x[t] = most;`,
    ),
  ],
  [
    'votes of the block',
    racer(
      'votes',
      `  __shared__ int most;\n  if (t == 5) most = x[t];\n  const int some = __syncthreads_or(x[t] > 0);\n  x[t] = most + some;`,
    ),
  ],
];

const deep = racer(
  'deep',
  `  __shared__ int one;
  if (blockIdx.x == 3 && threadIdx.z == 1) one = threadIdx.y;
  if (threadIdx.y == 0) x[threadIdx.z] = t;`,
);
const dynamic = racer(
  'dynamic_race',
  `  extern __shared__ int pool[];\n  int* upper = pool + ${THREADS};\n  upper[t] = x[t];\n  x[t] = upper[t ^ 1];`,
);

const inTypeScript = kernel('in_typescript', { x: inout(i32) }, ({ x }, { i, shared, syncthreads, threadIdx }) => {
  const tile = shared(i32, 64);
  tile[threadIdx.x] = x[i]!;
  syncthreads();
  x[i] = tile[63 - threadIdx.x]!;
  tile[threadIdx.x] = x[i]!;
});

const orderedInTypeScript = kernel('ordered_in_typescript', { x: inout(i32) }, ({ x }, { i, shared, syncthreads, threadIdx }) => {
  const tile = shared(i32, 64);
  tile[threadIdx.x] = x[i]!;
  syncthreads();
  x[i] = tile[63 - threadIdx.x]!;
  syncthreads();
  tile[threadIdx.x] = x[i]!;
});

const grouped = cudaModule(`#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
__global__ void tiles(int* x) {
  __shared__ int part[64];
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const int t = block.thread_rank();
  part[t] = x[t];
  tile.sync();
  const int other = part[t ^ 7];
  block.sync();
  x[t] = other + part[t ^ 32];
}
__global__ void tiles_too_small(int* x) {
  __shared__ int part[64];
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  part[threadIdx.x] = x[threadIdx.x];
  tile.sync();
  x[threadIdx.x] = part[threadIdx.x ^ 8];
}
__global__ void arrivals(int* x) {
  __shared__ int part[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> all;
  const int t = threadIdx.x;
  if (t == 0) init(&all, blockDim.x);
  __syncthreads();
  for (int k = 0; k < 3; k++) {
    part[t] = x[t] + k;
    all.arrive_and_wait();
    x[t] = part[63 - t];
    all.arrive_and_wait();
  }
}`);

defineChapter((target) => {
  const rule = rulesOf(target);
  const isOnCpu = target.spec.startsWith('cpu');

  describe.runIf(!isOnCpu)('6 failure: races of shared memory on a GPU', () => {
    rule('S623', 'a GPU refuses to find races, and names the tool that does', async () => {
      const error = await rejectionOf(openDevice(target.spec, { racecheck: true }));
      expect(error).toMatchObject({ name: 'UnsupportedError', capability: 'racecheck' });
      expect(error.message).toContain('compute-sanitizer --tool racecheck');
    });
  });

  describe.runIf(isOnCpu)('6 failure: races of shared memory', () => {
    const chapter = chapterDevice(target, { guard: false, racecheck: true });
    const launch = async (of: Racer, options: object = {}): Promise<readonly number[]> => {
      const { device } = chapter;
      using x = device.from(Int32Array.from({ length: THREADS }, (_unused, i) => i));
      await device.stream.launch(of, { grid: 1, block: THREADS, ...options }, { x }).done;
      return [...(await x.read())];
    };
    const raceOf = async (launched: Promise<unknown>): Promise<Error> => {
      const error = await rejectionOf(launched);
      expect(error).toBeInstanceOf(LaunchError);
      expect(error).toMatchObject({ code: 'ERR_MILLRACE_RACE' });
      return error;
    };

    for (const [what, of, kind, message] of RACES)
      rule('S623', `finds ${what} (${kind})`, async () => {
        const error = await raceOf(launch(of()));
        expect(error.message).toContain(`Kernel ${of().name} on stream`);
        expect(error.message).toContain(`has a race in block (0, 0, 0), ${kind}: `);
        expect(error.message).toMatch(message);
      });

    for (const [what, of] of ORDERED)
      rule('S623', `reports nothing for ${what}`, async () => {
        expect(await launch(of())).toHaveLength(THREADS);
      });

    rule('S623', 'names the lines of both accesses', async () => {
      const source = `// line 1
extern "C" __global__ void on_lines(int* x) {
  __shared__ int tile[2];
  if (threadIdx.x == 0)
    tile[1] = x[0];
  x[threadIdx.x] =
    tile[threadIdx.x];
}`;
      const of = cudaKernel('on_lines', { x: inout(i32) }, source, { file: '/sources/lines.cu' });
      const { message } = await raceOf(launch(of, { block: 2 }));
      expect(message).toContain('thread (1, 0, 0) reads byte 4 of shared variable tile at /sources/lines.cu:7, which thread (0, 0, 0)');
      expect(message).toContain('wrote at /sources/lines.cu:5, and nothing');
    });

    rule('S623', 'names the byte of dynamic shared memory, the thread in three dimensions and the block', async () => {
      const { device } = chapter;
      using x = device.zeros(THREADS, 'i32');
      const error = await raceOf(launch(dynamic(), { sharedBytes: 8 * THREADS }));
      expect(error.message).toMatch(/writes byte 26[0-3] of its dynamic shared memory at .+, which thread \(0, 0, 0\) read/);
      const second = await raceOf(device.stream.launch(deep(), { grid: 5, block: [1, 3, 2] }, { x }).done);
      expect(second.message).toMatch(/in block \(3, 0, 0\), write after write: thread \(0, 1, 1\) writes .+ thread \(0, 0, 1\) wrote/);
    });

    rule('S623', 'the arrays that a racing kernel writes are poisoned, and the device goes on', async () => {
      const { device } = chapter;
      using x = device.zeros(THREADS, 'i32');
      const [, racing] = RACES[0]!;
      await raceOf(device.stream.launch(racing(), { grid: 4, block: THREADS }, { x }).done);
      await expect(x.read()).rejects.toMatchObject({ name: 'UpstreamError' });
      expect(await launch(ORDERED[0]![1]())).toEqual(Array.from({ length: THREADS }, (_unused, i) => THREADS - 1 - i));
    });

    rule('S623', 'finds races of TypeScript kernels, with the lines of their file', async () => {
      const { device } = chapter;
      using x = device.zeros(THREADS, 'i32');
      const error = await raceOf(device.stream.launch(inTypeScript, { threads: THREADS, block: THREADS }, { x }).done);
      expect(error.message).toMatch(
        /read after write: .+ of shared variable tile at .*shared-memory-races\.test\.ts:\d+, which .+ wrote at .*shared-memory-races\.test\.ts:\d+/,
      );
      await device.stream.launch(orderedInTypeScript, { threads: THREADS, block: THREADS }, { x: device.zeros(THREADS, 'i32') }).done;
    });

    rule('S623', 'groups order their own threads, and a cuda::barrier those that arrive and wait', async () => {
      const of = (name: string) => grouped.kernel(name, PARAMS);
      expect(await launch(of('tiles'))).toHaveLength(THREADS);
      expect((await raceOf(launch(of('tiles_too_small')))).message).toContain('shared variable part');
      expect((await launch(of('arrivals')))[0]).toBe(66);
    });

    rule('S623', 'a device that is open is not opened again in another way, and the option is true or false', async () => {
      await expect(openDevice(target.spec, { racecheck: false })).rejects.toMatchObject({ name: 'StateError' });
      await expect(openDevice(target.spec, { racecheck: 'yes' as never })).rejects.toMatchObject({
        name: 'ArgumentError',
        argument: 'racecheck',
      });
    });
  });
});
