// y = a x + y: one thread an element, the "hello" of kernels.
//
// The TypeScript kernel is launched over as many threads as there are elements; whole blocks are what really runs, and the
// threads too many leave before its first line. In CUDA C++ that line is yours: `if (i < n)`.
import { cudaKernel, f32, i32, inout, input, kernel, type Device } from 'millrace';
import { compare, FORMS, type Outcome, runAlone, someNumbers, timed } from './lesson.js';

export const saxpy = kernel('saxpy', { a: f32, x: input(f32), y: inout(f32) }, ({ a, x, y }, { i }) => {
  y[i] = a * x[i]! + y[i]!;
});

export const saxpyText = cudaKernel(
  'saxpy',
  { n: i32, a: f32, x: input(f32), y: inout(f32) },
  `extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}`,
);

export function reference(a: number, x: Float32Array, y: Float32Array): Float32Array {
  return y.map((value, i) => a * x[i]! + value);
}

export async function run(device: Device): Promise<readonly Outcome[]> {
  const n = 1_000_003; // prime, so that the last block is never full
  const a = 2.5;
  const [xs, ys] = [someNumbers(n, 1), someNumbers(n, 2)];
  const expected = reference(a, xs, ys);
  // Else the first launch would compile, and its time would be the compiler's.
  await Promise.all([device.compile(saxpy), device.compile(saxpyText)]);

  const outcomes: Outcome[] = [];
  using x = device.from(xs);
  for (const form of FORMS) {
    using y = device.from(ys);
    const ms = await timed(device, () => {
      if (form === 'TypeScript') device.stream.launch(saxpy, n, { a, x, y });
      else device.stream.launch(saxpyText, { threads: n, block: 256 }, { n, a, x, y });
    });
    // A device may round the product and the sum together, or each for itself.
    outcomes.push(compare({ kernel: 'saxpy', form, ms }, await y.read(), expected, 1e-6));
  }
  return outcomes;
}

await runAlone(import.meta.url, run);
