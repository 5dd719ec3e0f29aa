// The sum of an array: every block sums its share in shared memory, a second launch sums the blocks' sums.
//
// Each thread first adds up elements that lie a whole grid apart. Then the block folds its 256 sums: the lower half adds
// the upper one to itself, with a barrier behind each halving, eight times. The same kernel, launched as a single block,
// folds what the blocks left; it comes later in the stream, so it finds their sums complete.
//
// Sums in a tree are also better ones: no small number is added to a huge one.
import { cudaKernel, f32, i32, input, kernel, output, type Device } from 'millrace';
import { compare, FORMS, type Outcome, runAlone, someNumbers, timed } from './lesson.js';

/** Threads a block, a power of two. */
export const BLOCK = 256;
const BLOCKS = 64;

export const blockSums = kernel(
  'block_sums',
  { x: input(f32), sums: output(f32) },
  ({ x, sums }, { threadIdx, blockIdx, globalIdx, gridDim, shared, syncthreads, block }) => {
    const partial = shared(f32, block);
    let own = 0.0;
    for (let at = globalIdx.x; at < x.length; at += gridDim.x * block) own += x[at]!;
    partial[threadIdx.x] = own;
    syncthreads();
    for (let half = block / 2; half > 0; half >>= 1) {
      if (threadIdx.x < half) partial[threadIdx.x]! += partial[threadIdx.x + half]!;
      syncthreads();
    }
    if (threadIdx.x === 0) sums[blockIdx.x] = partial[0]!;
  },
  { constants: { block: BLOCK } },
);

export const blockSumsText = cudaKernel(
  'block_sums',
  { x: input(f32), sums: output(f32), n: i32 },
  `#define BLOCK ${BLOCK}
extern "C" __global__ void block_sums(const float* x, float* sums, int n) {
  __shared__ float partial[BLOCK];
  float own = 0;
  for (int at = blockIdx.x * BLOCK + threadIdx.x; at < n; at += gridDim.x * BLOCK) own += x[at];
  partial[threadIdx.x] = own;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}`,
);

export function reference(x: Float32Array): number {
  return x.reduce((sum, value) => sum + value, 0);
}

export async function run(device: Device): Promise<readonly Outcome[]> {
  const n = 1_000_003;
  const values = someNumbers(n);
  const expected = reference(values);
  await Promise.all([device.compile(blockSums), device.compile(blockSumsText)]);

  const outcomes: Outcome[] = [];
  using x = device.from(values);
  for (const form of FORMS) {
    using sums = device.empty(BLOCKS);
    using sum = device.empty(1);
    const [all, one] = [
      { grid: BLOCKS, block: BLOCK },
      { grid: 1, block: BLOCK },
    ];
    const ms = await timed(device, () => {
      if (form === 'TypeScript') {
        device.stream.launch(blockSums, all, { x, sums });
        device.stream.launch(blockSums, one, { x: sums, sums: sum });
      } else {
        device.stream.launch(blockSumsText, all, { x, sums, n });
        device.stream.launch(blockSumsText, one, { x: sums, sums: sum, n: BLOCKS });
      }
    });
    // Of half a million; the next f32 is 0.03 away.
    outcomes.push(compare({ kernel: 'reduction', form, ms }, await sum.read(), [expected], 0.25));
  }
  return outcomes;
}

await runAlone(import.meta.url, run);
