// CUDA's indices are unsigned, and every expression of one has the same type and value as in CUDA, also in conditionals, templates and
// overloads.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { i32 } from './run-image.js';
import { TextRunner } from './text-runner.js';

let texts: TextRunner;
beforeAll(() => {
  texts = new TextRunner();
});
afterAll(() => texts.close());

const BLOCK = 300;
/** Code outside the kernel, an expression of `n`, which is 0, and its value for thread t. */
const CASES: Readonly<Record<string, readonly [outside: string, text: string, of: (t: number) => number]>> = {
  below_zero: ['', '(n > 0 ? threadIdx.x : -1) > 5', () => 1],
  below_zero_on_the_left: ['', '(n == 0 ? -1 : threadIdx.x) / 2 > 5', () => 1],
  wrapped: ['', '(n == 0 ? threadIdx.x : 0) - 1 < 0', () => 0],
  narrow: ['', 'n == 0 ? threadIdx.x : (signed char)3', (t) => t],
  narrower: ['', 'n == 0 ? threadIdx.x : n > 3', (t) => t],
  of_the_grid: ['', 'n == 0 ? blockIdx.x * blockDim.x + threadIdx.x : (short)n', (t) => t],
  product: ['', 'n == 0 ? threadIdx.x * 3 : (unsigned char)1', (t) => 3 * t],
  inferred: ['', '[&] { auto i = threadIdx.x; return n == 0 ? i : (char)n; }()', (t) => t],
  scaled: ['', '[&] { auto i = threadIdx.x; i *= 1.5f; i -= 1; i += 2ll; return i; }()', (t) => Math.trunc(t * 1.5) + 1],
  same_types: ['', 'n == 0 ? threadIdx.x : blockIdx.x', (t) => t],
  unsigned_types: ['', 'n == 0 ? threadIdx.x : 7u', (t) => t],
  deduced: ['template <class T> __device__ T larger(T a, T b) { return a > b ? a : b; }', 'larger(threadIdx.x, 7u)', (t) => Math.max(t, 7)],
  deduced_zero: [
    'template <class T> __device__ T sum(T a) { T s = 0; for (T i = 0; i < 3; i++) s += a; return s; }',
    'sum(threadIdx.x)',
    (t) => 3 * t,
  ],
  overloaded: [
    '__device__ int kind(unsigned) { return 1; } template <class T> __device__ int kind(T) { return 2; }',
    'kind(threadIdx.x) * 10 + kind(threadIdx.x + 1) + kind(3.0f)',
    () => 13,
  ],
  specialised: [
    'template <class T> struct Size { enum { value = 2 }; }; template <> struct Size<unsigned> { enum { value = 1 }; }; template <class T> __device__ int size(T) { return Size<T>::value; }',
    'size(threadIdx.x)',
    () => 1,
  ],
  square_root: ['', '(int)sqrt(threadIdx.x)', (t) => Math.floor(Math.sqrt(t))],
  converted: [
    'struct Whole { unsigned v; __device__ Whole(unsigned x) : v(x) {} }; __device__ int of(Whole w) { return w.v; }',
    'of(threadIdx.x)',
    (t) => t,
  ],
};

test.each(Object.entries(CASES))('%s', async (name, [outside, text, of]) => {
  const expected = Int32Array.from({ length: BLOCK }, (_unused, t) => of(t));
  const forms = {
    plain: `y[threadIdx.x] = ${text};`,
    row: `if (threadIdx.x >= 300 + n) return; y[threadIdx.x] = ${text};`,
    cut: `__shared__ int s[${BLOCK}]; s[threadIdx.x] = ${text}; __syncthreads(); y[threadIdx.x] = s[threadIdx.x];`,
    waiting: `int v = ${text}; __syncwarp(); y[threadIdx.x] = v;`,
  };
  for (const [form, body] of Object.entries(forms)) {
    const y = new Int32Array(BLOCK).fill(-7);
    const source = `${outside}\nextern "C" __global__ void ${name}(int* y, int n) { ${body} }`;
    await texts.run(source, name, { grid: [1, 1, 1], block: [BLOCK, 1, 1] }, [y, i32(0)]);
    expect(y, form).toEqual(expected);
  }
});
