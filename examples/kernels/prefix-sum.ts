// out[i] = x[0] + ... + x[i]: a sum of everything before, for every element at once.
//
// Within a block: in round after round every thread adds what stands 1, 2, 4, ... places before it, so that after eight
// rounds its sum reaches back over all 256. Each round reads one row of shared memory and writes the other; so one barrier
// a round is enough.
//
// A block knows nothing of those before it. So it also leaves its total; the totals are summed in the same way by a launch
// of their own, and a third launch adds to each block what all blocks before it have together.
import { cudaKernel, i32, inout, input, kernel, output, type Device } from 'millrace';
import { compare, FORMS, type Outcome, runAlone, someNumbers, timed } from './lesson.js';

/** Threads a block, and the most blocks: their totals have to fit into one. */
export const BLOCK = 256;

export const scanBlocks = kernel(
  'scan_blocks',
  { x: input(i32), out: output(i32), totals: output(i32) },
  ({ x, out, totals }, { threadIdx, blockIdx, globalIdx, shared, syncthreads, block }) => {
    const sums = shared(i32, [2, block]);
    const own = threadIdx.x;
    const at = globalIdx.x;
    let row = 0;
    sums[row]![own] = at < x.length ? x[at]! : 0;
    syncthreads();
    for (let reach = 1; reach < block; reach *= 2) {
      sums[1 - row]![own] = sums[row]![own]! + (own >= reach ? sums[row]![own - reach]! : 0);
      row = 1 - row;
      syncthreads();
    }
    if (at < x.length) out[at] = sums[row]![own]!;
    if (own === block - 1) totals[blockIdx.x] = sums[row]![own]!;
  },
  { constants: { block: BLOCK } },
);

export const addBefore = kernel(
  'add_before',
  { totals: input(i32), out: inout(i32) },
  ({ totals, out }, { i, idiv, block }) => {
    const before = idiv(i, block);
    if (before > 0) out[i]! += totals[before - 1]!;
  },
  { constants: { block: BLOCK } },
);

export const scanBlocksText = cudaKernel(
  'scan_blocks',
  { x: input(i32), out: output(i32), totals: output(i32), n: i32 },
  `#define BLOCK ${BLOCK}
extern "C" __global__ void scan_blocks(const int* x, int* out, int* totals, int n) {
  __shared__ int sums[2][BLOCK];
  int own = threadIdx.x, at = blockIdx.x * BLOCK + own, row = 0;
  sums[row][own] = at < n ? x[at] : 0;
  __syncthreads();
  for (int reach = 1; reach < BLOCK; reach *= 2) {
    sums[1 - row][own] = sums[row][own] + (own >= reach ? sums[row][own - reach] : 0);
    row = 1 - row;
    __syncthreads();
  }
  if (at < n) out[at] = sums[row][own];
  if (own == BLOCK - 1) totals[blockIdx.x] = sums[row][own];
}`,
);

export const addBeforeText = cudaKernel(
  'add_before',
  { totals: input(i32), out: inout(i32), n: i32 },
  `extern "C" __global__ void add_before(const int* totals, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i >= ${BLOCK}) out[i] += totals[i / ${BLOCK} - 1];
}`,
);

export function reference(x: Int32Array): Int32Array {
  let sum = 0;
  return x.map((value) => (sum += value));
}

export async function run(device: Device): Promise<readonly Outcome[]> {
  const n = 60_007;
  const blocks = Math.ceil(n / BLOCK); // 235 of at most 256
  const values = Int32Array.from(someNumbers(n), (value) => 200 * value - 100);
  const expected = reference(values);
  await Promise.all([scanBlocks, addBefore, scanBlocksText, addBeforeText].map((one) => device.compile(one)));

  const outcomes: Outcome[] = [];
  using x = device.from(values);
  for (const form of FORMS) {
    using out = device.empty(n, 'i32');
    using totals = device.empty(blocks, 'i32');
    using before = device.empty(blocks, 'i32');
    using all = device.empty(1, 'i32');
    const { stream } = device;
    const ms = await timed(device, () => {
      if (form === 'TypeScript') {
        stream.launch(scanBlocks, { grid: blocks, block: BLOCK }, { x, out, totals });
        stream.launch(scanBlocks, { grid: 1, block: BLOCK }, { x: totals, out: before, totals: all });
        stream.launch(addBefore, n, { totals: before, out });
      } else {
        stream.launch(scanBlocksText, { grid: blocks, block: BLOCK }, { x, out, totals, n });
        stream.launch(scanBlocksText, { grid: 1, block: BLOCK }, { x: totals, out: before, totals: all, n: blocks });
        stream.launch(addBeforeText, { threads: n, block: BLOCK }, { totals: before, out, n });
      }
    });
    outcomes.push(compare({ kernel: 'prefix-sum', form, ms }, await out.read(), expected, 0));
  }
  return outcomes;
}

await runAlone(import.meta.url, run);
