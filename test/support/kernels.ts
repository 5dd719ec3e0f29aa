// Kernels that tests share, each of which is compiled once. CUDA C++ text where it must depend on no translation.
import { cudaKernel, f32, i32, inout, input, kernel, output, u32, type InOut, type In, type Kernel, type Out, type Scalar } from 'millrace';

/** Says in `expired[1]` that it runs, spins until `flag` is set, and says in `expired[0]` when it had to give up. */
export const latchKernel: Kernel<{ flag: In<'i32'>; expired: InOut<'i32'>; turns: Scalar<'i32'> }> = cudaKernel(
  'latch',
  { flag: input(i32), expired: inout(i32), turns: i32 },
  `extern "C" __global__ void latch(const int* flag, int* expired, int turns) {
  const volatile int* seen = flag;
  volatile int* told = expired;
  told[1] = 1;
  for (int n = 0; n < turns; ++n)
    for (int k = 0; k < 1024; ++k)
      if (seen[0] != 0) return;
  expired[0] = 1;
}`,
);

/** Sets its own flag and spins until its partner's is set: two of them finish only side by side. */
export const rendezvousKernel: Kernel<{ flags: InOut<'i32'>; mine: Scalar<'i32'>; turns: Scalar<'i32'> }> = cudaKernel(
  'rendezvous',
  { flags: inout(i32), mine: i32, turns: i32 },
  `extern "C" __global__ void rendezvous(int* flags, int mine, int turns) {
  volatile int* shared = flags;
  shared[mine] = 1;
  for (int n = 0; n < turns; ++n)
    for (int k = 0; k < 1024; ++k)
      if (shared[1 - mine] != 0) return;
  shared[2] = 1;
}`,
);

/** Meets its partner as above, then keeps its thread busy for `steps` dependent multiplications. */
export const meetAndSpinKernel: Kernel<{
  flags: InOut<'i32'>;
  mine: Scalar<'i32'>;
  turns: Scalar<'i32'>;
  steps: Scalar<'i32'>;
  out: InOut<'u32'>;
}> = cudaKernel(
  'meet_and_spin',
  { flags: inout(i32), mine: i32, turns: i32, steps: i32, out: inout(u32) },
  `extern "C" __global__ void meet_and_spin(int* flags, int mine, int turns, int steps, unsigned* out) {
  volatile int* shared = flags;
  shared[mine] = 1;
  bool met = false;
  for (int n = 0; n < turns && !met; ++n)
    for (int k = 0; k < 1024 && !met; ++k) met = shared[1 - mine] != 0;
  if (!met) shared[2] = 1;
  unsigned value = out[mine];
  for (int n = 0; n < steps; ++n) value = value * 1664525u + 1013904223u;
  out[mine] = value;
}`,
);

/** x[0] = x[0] * 1664525 + k: the result depends on every launch and on their order. */
export const mixKernel: Kernel<{ x: InOut<'u32'>; k: Scalar<'u32'> }> = cudaKernel(
  'mix',
  { x: inout(u32), k: u32 },
  `extern "C" __global__ void mix(unsigned* x, unsigned k) {
  x[0] = x[0] * 1664525u + k;
}`,
);

/** What `mixKernel` leaves after launches with k = first .. first + count - 1. */
export function mixed(start: number, first: number, count: number): number {
  let x = start;
  for (let k = first; k < first + count; k++) x = (Math.imul(x, 1664525) + k) >>> 0;
  return x;
}

/** y[i] = x[i + by], checked: an access outside of x is a BoundsError. */
export const shifted: Kernel<{ x: In<'f32'>; y: Out<'f32'>; by: Scalar<'i32'> }> = kernel(
  'shifted',
  { x: input(f32), y: output(f32), by: i32 },
  ({ x, y, by }, { i }) => {
    y[i] = x[i + by]!;
  },
);

/** x[i + by] = 1, checked: so is one outside of x. */
export const stray: Kernel<{ x: InOut<'f32'>; by: Scalar<'i32'> }> = kernel('stray', { x: inout(f32), by: i32 }, ({ x, by }, { i }) => {
  x[i + by] = 1;
});

/** The same with any value. */
export const write: Kernel<{ x: InOut<'i32'>; value: Scalar<'i32'>; by: Scalar<'i32'> }> = kernel(
  'write_at',
  { x: inout(i32), value: i32, by: i32 },
  ({ x, value, by }, { i }) => {
    x[i + by] = value;
  },
);

/** x[i] = 2 * x[i] */
export const twice: Kernel<{ x: InOut<'f32'> }> = kernel('twice', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = 2 * x[i]!;
});

/** x[i] = x[i] + by */
export const increased: Kernel<{ x: InOut<'i32'>; by: Scalar<'i32'> }> = kernel(
  'increased',
  { x: inout(i32), by: i32 },
  ({ x, by }, { i }) => {
    x[i] = x[i]! + by;
  },
);

let unique = 0;

/** A kernel that no cache has seen: it adds one to x[0]. Building it takes a while, on purpose. */
export function unbuiltKernel(): Kernel<{ x: InOut<'i32'> }> {
  const stamp = `${process.pid}-${Date.now()}-${++unique}`;
  return cudaKernel(
    'unbuilt',
    { x: inout(i32) },
    `// ${stamp}
extern "C" __global__ void unbuilt(int* x) {
  const char stamp[] = "${stamp}";
  x[0] += stamp[0] != 0;
}`,
  );
}
