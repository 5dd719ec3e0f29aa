// What the compiler finds out about the outputs of a kernel (S642).
import { expect, test } from 'vitest';
import { f32, i32, inout, input, kernel, output } from '../../../src/index.js';

const params = { x: output(f32), other: input(f32), z: inout(f32), n: i32 };
const planes = { x: output(f32, 2) };

const OWN = [
  kernel('store', params, ({ x }, { i }) => {
    x[i] = 5;
  }),
  kernel('named', params, ({ x }, { i }) => {
    const at = i;
    x[at] = 5;
    x[i] = x[at]! + 1;
  }),
  kernel('after_a_loop', params, ({ x, other, n }, { i }) => {
    let sum = 0;
    for (let k = 0; k < n; k++) {
      if (other[k]! < 0) break;
      sum += other[k]!;
    }
    x[i] = sum;
    if (i > n) return;
    x[0] = sum;
  }),
  kernel('in_both_branches', params, ({ x, n, z }, { i }) => {
    if (i > n) x[i] = 5;
    else {
      z[i] = 2;
      x[i] = z[i]!;
    }
  }),
  kernel('plane', planes, ({ x }, { i, j }) => {
    x[i]![j] = 5;
  }),
  kernel('within_the_array', params, ({ x }, { i }) => {
    if (i < x.length) x[i] = 5;
  }),
  kernel('return_beyond_the_array', params, ({ x, n }, { i }) => {
    const at = i;
    if (x.length <= at) return;
    x[i] = n;
  }),
  kernel('within_the_plane', planes, ({ x }, { i, j }) => {
    if (i < x.shape[0]! && x.shape[1]! > j) x[i]![j] = 5;
  }),
];

const PART = [
  kernel('of_the_second_thread', params, ({ x }, { i }) => {
    if (i === 1) x[0] = 5;
  }),
  kernel('of_the_first_thread_if', params, ({ x, n }, { i }) => {
    if (i === 0 && n > 3) x[0] = 5;
  }),
  kernel('of_each_block', params, ({ x }, { threadIdx, blockIdx }) => {
    if (threadIdx.x === 0) x[blockIdx.x] = 5;
  }),
  kernel('within_another_array', params, ({ x, other }, { i }) => {
    if (i < other.length) x[i] = 5;
  }),
  kernel('within_a_part_of_the_array', params, ({ x, n }, { i }) => {
    if (i < x.length && i < n) x[i] = 5;
  }),
  kernel('return_within_the_array', params, ({ x }, { i }) => {
    if (i < x.length) return;
    x[i] = 5;
  }),
  kernel('return_of_some', params, ({ x, n }, { i }) => {
    if (i >= x.length || i > n) return;
    x[i] = 5;
  }),
  kernel('of_another_dimension', planes, ({ x }, { i, j }) => {
    if (i < x.shape[1]! && j < x.shape[0]!) x[i]![j] = 5;
  }),
  kernel('branch', params, ({ x, n }, { i }) => {
    if (i < n) x[i] = 5;
  }),
  kernel('early_return', params, ({ x, n }, { i }) => {
    if (i >= n) return;
    x[i] = 5;
  }),
  kernel('return_in_a_loop', params, ({ x, n }, { i }) => {
    for (let k = 0; k < n; k++) if (k > 3) return;
    x[i] = 5;
  }),
  kernel('return_in_a_branch', params, ({ x, n }, { i }) => {
    if (i < n) return;
    else x[i] = 5;
  }),
  kernel('loop', params, ({ x, n }, { i }) => {
    for (let k = 0; k < n; k++) x[i] = 5;
  }),
  kernel('other_element', params, ({ x, n }, { i }) => {
    x[i + n] = 5;
  }),
  kernel('assigned_name', params, ({ x, n }, { i }) => {
    let at = i;
    if (n > 3) at = 0;
    x[at] = 5;
  }),
  kernel('not_at_all', params, ({ z }, { i }) => {
    z[i] = 5;
  }),
  kernel('by_the_block', params, ({ x }, { blockIdx, blockDim, threadIdx }) => {
    x[blockIdx.x * blockDim.x + threadIdx.x] = 5;
  }),
  kernel('crossed', planes, ({ x }, { i, j }) => {
    x[j]![i] = 5;
  }),
  kernel('column', planes, ({ x }, { i }) => {
    x[i]![0] = 5;
  }),
];

const FIRST = [
  kernel('of_every_thread', params, ({ x, n }) => {
    x[0] = n;
  }),
  kernel('of_the_first_thread', params, ({ x, other }, { i }) => {
    if (i === 0) x[0] = other[0]! > 0 ? 1 : 0;
  }),
  kernel('other_threads_return', params, ({ x, n }, { threadIdx, blockIdx }) => {
    const t = threadIdx.x;
    if (t !== 0 || blockIdx.x !== 0) return;
    x[0] = n;
  }),
  kernel('of_a_plane', planes, ({ x }, { i, j }) => {
    if (i === 0 && j === 0) x[0]![0] = 5;
  }),
];

const READ = [
  kernel('of_the_first_thread', params, ({ x, z }, { i }) => {
    if (i === 0) x[0] = 5;
    z[i] = x[0]!;
  }),
  kernel('change', params, ({ x }, { i }) => {
    x[i]! += 1;
  }),
  kernel('in_a_branch', params, ({ x, n }, { i }) => {
    if (i < n) x[i] = 5;
    x[i] = x[i]! + 1;
  }),
  kernel('in_a_test', params, ({ x, n }, { i }) => {
    if (x[n]! > 3) x[i] = 5;
    else x[i] = 6;
  }),
  kernel('of_another_thread', params, ({ x, n }, { i }) => {
    x[i] = 5;
    x[i] = x[i + n]!;
  }),
  kernel('as_another_output', params, ({ x, z }, { i }) => {
    z[i] = x[i]!;
  }),
  kernel('atomically', params, ({ x }, { i, atomicAdd }) => {
    atomicAdd(x, i, 1);
  }),
  kernel('in_an_arrow', params, ({ x }, { i }) => {
    const at = (k: number): number => x[k]!;
    x[i] = at(i) + 1;
  }),
];

test.each([
  ['own', OWN],
  ['first', FIRST],
  ['part', PART],
  ['read', READ],
] as const)('S642 kernels whose output is %s', (use, kernels) => {
  for (const each of kernels) expect((each as { readonly outputs?: unknown }).outputs, each.name).toEqual({ x: use });
});
