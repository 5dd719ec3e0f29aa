// C = A B, in tiles: threads of a block fetch together what each of them needs.
//
// A thread an element of C would read a row of A and a column of B by itself, and its neighbours the same ones again. Here
// the block copies a tile of A and one of B into its shared memory, every thread one element of each; then all work on
// the copies. Each element is fetched once a block instead of once a thread.
//
// Two barriers a tile: nobody reads before all have written, and nobody overwrites before all have read. So the threads
// beyond the edge of C must come along, and do their part with zeros: one that returned early could not fetch.
import { cudaKernel, f32, i32, input, kernel, output, type Device } from 'millrace';
import { compare, FORMS, type Outcome, runAlone, someNumbers, timed } from './lesson.js';

/** Side of a tile; a block has TILE x TILE threads. */
export const TILE = 16;

export const matmul = kernel(
  'matmul',
  { a: input(f32, 2), b: input(f32, 2), c: output(f32, 2) },
  ({ a, b, c }, { blockIdx, threadIdx, shared, syncthreads, tile }) => {
    const left = shared(f32, [tile, tile]);
    const right = shared(f32, [tile, tile]);
    const { x, y } = threadIdx;
    const row = blockIdx.y * tile + y;
    const column = blockIdx.x * tile + x;
    let sum = 0.0;
    for (let at = 0; at < a.shape[1]; at += tile) {
      left[y]![x] = row < a.shape[0] && at + x < a.shape[1] ? a[row]![at + x]! : 0;
      right[y]![x] = at + y < b.shape[0] && column < b.shape[1] ? b[at + y]![column]! : 0;
      syncthreads();
      for (let k = 0; k < tile; k++) sum += left[y]![k]! * right[k]![x]!;
      syncthreads();
    }
    if (row < c.shape[0] && column < c.shape[1]) c[row]![column] = sum;
  },
  { constants: { tile: TILE } },
);

export const matmulText = cudaKernel(
  'matmul',
  { a: input(f32, 2), b: input(f32, 2), c: output(f32, 2), m: i32, n: i32, p: i32 },
  `#define TILE ${TILE}
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int p) {
  __shared__ float left[TILE][TILE];
  __shared__ float right[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0;
  for (int at = 0; at < n; at += TILE) {
    left[y][x] = row < m && at + x < n ? a[row * n + at + x] : 0;
    right[y][x] = at + y < n && column < p ? b[(at + y) * p + column] : 0;
    __syncthreads();
    for (int k = 0; k < TILE; k++) sum += left[y][k] * right[k][x];
    __syncthreads();
  }
  if (row < m && column < p) c[row * p + column] = sum;
}`,
);

export function reference(a: Float32Array, b: Float32Array, [m, n, p]: readonly [number, number, number]): Float64Array {
  const c = new Float64Array(m * p);
  for (let row = 0; row < m; row++) {
    for (let k = 0; k < n; k++) {
      const factor = a[row * n + k]!;
      for (let column = 0; column < p; column++) c[row * p + column]! += factor * b[k * p + column]!;
    }
  }
  return c;
}

export async function run(device: Device): Promise<readonly Outcome[]> {
  const [m, n, p] = [250, 190, 301]; // no multiple of the tile
  const [left, right] = [someNumbers(m * n, 1), someNumbers(n * p, 2)];
  const expected = reference(left, right, [m, n, p]);
  const shape = { grid: [Math.ceil(p / TILE), Math.ceil(m / TILE)], block: [TILE, TILE] } as const;
  await Promise.all([device.compile(matmul), device.compile(matmulText)]);

  const outcomes: Outcome[] = [];
  using a = device.from(left, { shape: [m, n] });
  using b = device.from(right, { shape: [n, p] });
  for (const form of FORMS) {
    using c = device.empty([m, p]);
    const ms = await timed(device, () => {
      if (form === 'TypeScript') device.stream.launch(matmul, shape, { a, b, c });
      else device.stream.launch(matmulText, shape, { a, b, c, m, n, p });
    });
    // Sums of 190 products near 50, each rounded to f32.
    outcomes.push(compare({ kernel: 'matmul', form, ms }, await c.read(), expected, 1e-3));
  }
  return outcomes;
}

await runAlone(import.meta.url, run);
