// The kernels of random programs with failures: what failure-model.ts computes.
import { cudaKernel, i32, inout, input, kernel, output, type Kernel, type LaunchArgs } from 'millrace';
import type { KernelName } from './failure-model.js';

const add = kernel('add', { x: input(i32), y: output(i32), k: i32 }, ({ x, y, k }, { i }) => {
  y[i] = (x[i]! * 3 + k) % 1009;
});
const mix = kernel('mix', { x: input(i32), y: inout(i32), k: i32 }, ({ x, y, k }, { i }) => {
  y[i] = (y[i]! * 5 + x[i]! + k) % 1009;
});
/** Not checked: it cannot fail itself. */
const plain = cudaKernel(
  'plain',
  { n: i32, x: input(i32), y: inout(i32), k: i32 },
  `extern "C" __global__ void plain(int n, const int* x, int* y, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (y[i] * 3 + x[i] * 2 + k) % 1009;
}`,
);
const bump = kernel('bump', { y: inout(i32), k: i32 }, ({ y, k }, { i }) => {
  y[i] = (y[i]! + k) % 1009;
});
const pick = kernel('pick_at', { x: input(i32), y: output(i32), k: i32, at: i32 }, ({ x, y, k, at }, { i }) => {
  y[i] = (x[at]! + k) % 1009;
});
/** An assertion fails in the thread whose number the index `by` names, as farOf gives it. */
const claim = kernel('claim', { x: input(i32), y: output(i32), k: i32, by: i32 }, ({ x, y, k, by }, { i, assert }) => {
  assert(by === 0 || by !== 5000 + i * 128);
  y[i] = (x[i]! * 2 + k) % 1009;
});
const shift = kernel('shift_by', { y: inout(i32), k: i32, by: i32 }, ({ y, k, by }, { i }) => {
  y[i] = (y[i + by]! * 7 + k) % 1009;
});
const gather = kernel(
  'gather',
  { x: input(i32), z: input(i32), y: output(i32), k: i32, limit: i32, far: i32 },
  ({ x, z, y, k, limit, far }, { i }) => {
    let at = i;
    if (z[i]! >= limit) at = far + i;
    y[i] = (x[at]! + k) % 1009;
  },
);
const split = kernel('split', { x: input(i32), y: output(i32), z: output(i32), k: i32, by: i32 }, ({ x, y, z, k, by }, { i }) => {
  const value = x[i + by]!;
  y[i] = (value + k) % 1009;
  z[i] = (value * 11 + k) % 1009;
});

/** It has a thread for each element of the first half. */
const half = kernel('half', { x: input(i32), y: output(i32), k: i32 }, ({ x, y, k }, { i }) => {
  y[i] = (x[i]! * 13 + k) % 1009;
});
/** It writes the first half. */
const some = kernel('some', { x: input(i32), y: output(i32), k: i32, count: i32 }, ({ x, y, k, count }, { i }) => {
  if (i * 2 < count) y[i] = (x[i]! * 17 + k) % 1009;
});
/** It reads what it declares as its output. */
const stale = kernel('stale', { x: input(i32), y: output(i32), k: i32 }, ({ x, y, k }, { i }) => {
  y[i] = (y[i]! * 19 + x[i]! + k) % 1009;
});

/** An array or a slot, a number or a slot. */
type Arg = LaunchArgs<typeof bump.params>['y'] | number | object;
interface Call {
  readonly x: Arg;
  readonly y: Arg;
  readonly z: Arg;
  readonly k: number;
  readonly count: number;
  readonly limit: number;
  /** What is added to an index: 0, or far outside. A slot in a graph. */
  readonly by: Arg;
  /** Far outside, for what the data decide. */
  readonly far: number;
  readonly isBad: boolean;
}

/** Each kernel with the arguments of a call. */
export const FAILING_KERNELS: Readonly<Record<KernelName, readonly [Kernel, (call: Call) => Readonly<Record<string, Arg>>]>> = {
  add: [add as never, ({ x, y, k }) => ({ x, y, k })],
  mix: [mix as never, ({ x, y, k }) => ({ x, y, k })],
  plain: [plain as never, ({ x, y, k, count }) => ({ n: count, x, y, k })],
  bump: [bump as never, ({ y, k }) => ({ y, k })],
  pick: [pick as never, ({ x, y, k, count, by, isBad }) => ({ x, y, k, at: isBad ? by : k % count })],
  shift: [shift as never, ({ y, k, by, isBad }) => ({ y, k, by: isBad ? by : 0 })],
  claim: [claim as never, ({ x, y, k, by, isBad }) => ({ x, y, k, by: isBad ? by : 0 })],
  gather: [gather as never, ({ x, y, z, k, limit, far }) => ({ x, z, y, k, limit, far })],
  half: [half as never, ({ x, y, k }) => ({ x, y, k })],
  some: [some as never, ({ x, y, k, count }) => ({ x, y, k, count })],
  stale: [stale as never, ({ x, y, k }) => ({ x, y, k })],
  split: [split as never, ({ x, y, z, k, by, isBad }) => ({ x, y, z, k, by: isBad ? by : 0 })],
};
