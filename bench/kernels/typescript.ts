// The kernels of bench/kernels.ts as TypeScript functions, each in a checked and an unchecked form. bench/native/kernels.cuh has the
// same ones in CUDA C++, bench/native/kernels_openmp.cpp as loops.
import { f32, i32, inout, input, kernel, output, u32, u8 } from 'millrace';

type Bounds = 'checked' | 'unchecked';

export const saxpy = (bounds: Bounds) =>
  kernel(
    'saxpy',
    { a: f32, x: input(f32), y: inout(f32) },
    ({ a, x, y }, { i }) => {
      y[i] = a * x[i]! + y[i]!;
    },
    { bounds },
  );

/** Accelerations of bodies that attract each other. A row of `bodies` is a place and a mass. */
export const nbody = (bounds: Bounds) =>
  kernel(
    'nbody',
    { bodies: input(f32, 2), pull: output(f32, 2) },
    ({ bodies, pull }, { i, rsqrt }) => {
      const x = bodies[i]![0]!;
      const y = bodies[i]![1]!;
      const z = bodies[i]![2]!;
      let ax = 0;
      let ay = 0;
      let az = 0;
      for (let k = 0; k < bodies.shape[0]; k++) {
        const dx = bodies[k]![0]! - x;
        const dy = bodies[k]![1]! - y;
        const dz = bodies[k]![2]! - z;
        const inverse = rsqrt(dx * dx + dy * dy + dz * dz + 0.01);
        const force = bodies[k]![3]! * inverse * inverse * inverse;
        ax += dx * force;
        ay += dy * force;
        az += dz * force;
      }
      pull[i]![0] = ax;
      pull[i]![1] = ay;
      pull[i]![2] = az;
    },
    { bounds },
  );

export const mandelbrot = (bounds: Bounds) =>
  kernel(
    'mandelbrot',
    { steps: output(i32, 2), most: i32 },
    ({ steps, most }, t) => {
      const cx = (t.f32(t.j) / t.f32(steps.shape[1])) * 3 - 2;
      const cy = (t.f32(t.i) / t.f32(steps.shape[0])) * 3 - 1.5;
      let x = 0;
      let y = 0;
      let n = 0;
      while (n < most && x * x + y * y < 4) {
        const next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        n++;
      }
      steps[t.i]![t.j] = n;
    },
    { bounds },
  );

export const life = (bounds: Bounds) =>
  kernel(
    'life',
    { from: input(u8, 2), to: output(u8, 2) },
    ({ from, to }, { i, j }) => {
      if (i === 0 || j === 0 || i >= from.shape[0] - 1 || j >= from.shape[1] - 1) {
        to[i]![j] = 0;
        return;
      }
      const above = from[i - 1]![j - 1]! + from[i - 1]![j]! + from[i - 1]![j + 1]!;
      const beside = from[i]![j - 1]! + from[i]![j + 1]!;
      const below = from[i + 1]![j - 1]! + from[i + 1]![j]! + from[i + 1]![j + 1]!;
      const around = above + beside + below;
      to[i]![j] = around === 3 || (around === 2 && from[i]![j] === 1) ? 1 : 0;
    },
    { bounds },
  );

export const histogram = (bounds: Bounds) =>
  kernel(
    'histogram',
    { data: input(u8), bins: inout(u32) },
    ({ data, bins }, { i, atomicAdd }) => {
      atomicAdd(bins, data[i]!, 1);
    },
    { bounds },
  );

/** Each block counts in bins of its own, 256 threads going through 64 elements each. */
export const binned = (bounds: Bounds) =>
  kernel(
    'binned',
    { data: input(u8), bins: inout(u32) },
    ({ data, bins }, { threadIdx, blockIdx, shared, syncthreads, atomicAdd }) => {
      const own = shared(u32, 256);
      own[threadIdx.x] = 0;
      syncthreads();
      const first = blockIdx.x * 16384 + threadIdx.x;
      for (let n = 0; n < 64; n++) atomicAdd(own, data[first + n * 256]!, 1);
      syncthreads();
      atomicAdd(bins, threadIdx.x, own[threadIdx.x]!);
    },
    { bounds },
  );

export const matmul = (bounds: Bounds) =>
  kernel(
    'matmul',
    { a: input(f32, 2), b: input(f32, 2), c: output(f32, 2) },
    ({ a, b, c }, { i, j, threadIdx, shared, syncthreads }) => {
      const tileA = shared(f32, [16, 16]);
      const tileB = shared(f32, [16, 16]);
      const row = threadIdx.y;
      const column = threadIdx.x;
      let sum = 0;
      for (let first = 0; first < a.shape[1]; first += 16) {
        tileA[row]![column] = a[i]![first + column]!;
        tileB[row]![column] = b[first + row]![j]!;
        syncthreads();
        for (let k = 0; k < 16; k++) sum += tileA[row]![k]! * tileB[k]![column]!;
        syncthreads();
      }
      c[i]![j] = sum;
    },
    { bounds },
  );

export const reduction = (bounds: Bounds) =>
  kernel(
    'reduction',
    { x: input(f32), sums: output(f32) },
    ({ x, sums }, { i, threadIdx, blockIdx, shared, syncthreads }) => {
      const part = shared(f32, 256);
      part[threadIdx.x] = x[i]!;
      syncthreads();
      for (let half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) part[threadIdx.x] = part[threadIdx.x]! + part[threadIdx.x + half]!;
        syncthreads();
      }
      if (threadIdx.x === 0) sums[blockIdx.x] = part[0]!;
    },
    { bounds },
  );
