// Statements on volatile arrays that the lanes of a warp take together on the CPU device.
import { expect, test } from 'vitest';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { lockstepEdits } from '../../../src/cuda-cpp/lower/lockstep.js';
import { specOf } from './run-image.js';
import { imagesOfFile } from './images.js';

const images = imagesOfFile();

const kernel = (body: string): string => `extern "C" __global__ void k(int* y) { const int t = threadIdx.x; ${body} }`;
const steps = (of: (offset: number) => string): string => [32, 16, 8, 4, 2, 1].map(of).join(' ');
const SUM = (63 * 64) / 2;

test('sums of the last warp', async () => {
  const ways = {
    in_a_function: steps((d) => `s[t] += s[t + ${d}];`),
    through_a_variable: `int sum = t; ${steps((d) => `s[t] = sum = sum + s[t + ${d}];`)}`,
    under_conditions: steps((d) => `if (t < ${d}) s[t] = s[t] + s[t + ${d}]; else t += 0;`),
    in_a_loop: 'for (int d = 32; d > 0; d /= 2) s[t] += s[t + d];',
  };
  const kernels = Object.entries(ways).map(
    ([way, body]) => `__device__ void last_${way}(volatile int* s, int t) { ${body} }
    extern "C" __global__ void ${way}(int* y) {
      const int t = threadIdx.x; __shared__ int s[96]; s[t] = t; s[t % 32 + 64] = 0; __syncthreads();
      if (t < 32) last_${way}(s, t); __syncthreads(); y[t] = s[0]; }`,
  );
  const image = await images.built(specOf(kernels.join('\n'), 'in_a_function'), Object.keys(ways));
  for (const way of Object.keys(ways)) {
    const y = new Int32Array(64);
    images.run(image, way, { grid: [1, 1, 1], block: [64, 1, 1] }, [y]);
    expect([...y], way).toEqual(Array.from({ length: 64 }, () => SUM));
  }
});

test('a scan of each warp by a macro, in a kernel without barriers', async () => {
  const source = `#define STEP(d) s[at] += s[at - d]
    ${kernel('__shared__ volatile int s[160]; int at = 2 * t - t % 32; s[at] = 0; at += 32; s[at] = 1; STEP(1); STEP(2); STEP(4); STEP(8); STEP(16); y[t] = s[at];')}`;
  const y = new Int32Array(64);
  images.run(await images.built(specOf(source, 'k'), ['k']), 'k', { grid: [1, 1, 1], block: [64, 1, 1] }, [y]);
  expect([...y]).toEqual(Array.from({ length: 64 }, (_unused, t) => (t % 32) + 1));
});

/** What lane `t` writes in one step: the index and the value. */
type Step = (at: (i: number) => number, t: number) => readonly [index: number, value: number] | undefined;
type Case = readonly [body: string, ...steps: Step[]];
const SATURATED: Case = ['x[t] = (x[t + 1] + 1) * 1e30f;', (_at, t) => [t, 0x7fffffff]];
/** Bodies of kernels without a barrier, and their steps. */
const ALONE: readonly Case[] = [
  ['x[t] = x[t] + x[t + 1];', (at, t) => [t, at(t) + at(t + 1)]],
  ['x[t + 1] = x[t];', (at, t) => [t + 1, at(t)]],
  ['x[t] += x[t + 16]; x[t] -= x[t + 1];', (at, t) => [t, at(t) + at(t + 16)], (at, t) => [t, at(t) - at(t + 1)]],
  [
    'if (t % 3 == 0) x[t] = x[t + 3]; else if (t % 3 == 1) x[t] += x[t + 3];',
    (at, t) => (t % 3 === 0 ? [t, at(t + 3)] : undefined),
    (at, t) => (t % 3 === 1 ? [t, at(t) + at(t + 3)] : undefined),
  ],
  [
    'for (int d = 2; d > 0; d--) { if (t < 20 + d) x[t] += x[t + d]; }',
    ...[2, 1].map(
      (d) =>
        (at: (i: number) => number, t: number): readonly [number, number] | undefined =>
          t < 20 + d ? [t, at(t) + at(t + d)] : undefined,
    ),
  ],
  [
    'switch (t & 1) { case 0: x[t] = x[t + 2]; break; default: x[t] = x[t + 2] + 1; }',
    (at, t) => (t % 2 === 0 ? [t, at(t + 2)] : undefined),
    (at, t) => (t % 2 === 1 ? [t, at(t + 2) + 1] : undefined),
  ],
  ['Pair p{x}; p.add(t);', (at, t) => [t, at(t) + at(t + 1)]],
  ['added<4>(x, t);', (at, t) => [t, at(t) + at(t + 4)]],
  ['step_t go = added<2>; go(x, t);', (at, t) => [t, at(t) + at(t + 2)]],
  ['auto go = [&](int d) { x[t] += x[t + d]; }; go(1); go(2);', (at, t) => [t, at(t) + at(t + 1)], (at, t) => [t, at(t) + at(t + 2)]],
  ['volatile int a[4]; a[0] = x[t]; a[1] = a[0] + 1; x[t + 1] = a[1];', (at, t) => [t + 1, at(t) + 1]],
  ['for (int i = 0; i < 2; x[t] = x[t] + 1) i++;', (at, t) => [t, at(t) + 2]],
  ['x[t]++; --x[t + 1];', (at, t) => [t, at(t) + 1], (at, t) => [t + 1, at(t + 1) - 1]],
  ['x[0]++; x[t] *= x[0];', (at) => [0, at(0) + 1], (at, t) => [t, at(t) * at(0)]],
  ['x[t] <<= x[t + 1] & 3;', (at, t) => [t, at(t) << (at(t + 1) & 3)]],
  ['int i = t; x[i++] += x[i]; x[i] = x[i] + i - t;', (at, t) => [t, at(t) + at(t)], (at, t) => [t + 1, at(t + 1) + 1]],
  ['*(x + t) = *(x + t + 1) * 2;', (at, t) => [t, at(t + 1) * 2]],
  ['((volatile int*)(int*)x)[t] += x[t + 1];', (at, t) => [t, at(t) + at(t + 1)]],
  ['flags_t* f = x; f[t] += f[t + 1];', (at, t) => [t, at(t) + at(t + 1)]],
  ['auto f = x + 1; f[t] += f[t + 1];', (at, t) => [t + 1, at(t + 1) + at(t + 2)]],
  ['volatile int *e, *f = x; e = f; e[t] = f[t + 1];', (at, t) => [t, at(t + 1)]],
  ['volatile int (*r)[4] = (volatile int (*)[4])x; r[t / 4][t % 4] = r[t / 4 + 1][t % 4];', (at, t) => [t, at(t + 4)]],
  [
    '__shared__ volatile int s[2][64]; const int w = threadIdx.x / 32; s[w][t] = x[t]; s[w][t] = s[w][t ^ 1]; x[t] = s[w][t];',
    (at, t) => [t, at(t ^ 1)],
  ],
  [
    'extern __shared__ volatile int e[]; e[threadIdx.x + 1] = x[t]; e[threadIdx.x] = e[threadIdx.x + 1]; x[t + 1] = e[threadIdx.x];',
    (at, t) => [t + 1, at(t)],
  ],
  [
    '__shared__ Box b; b.s[threadIdx.x] = x[t]; b.s[threadIdx.x] += 1; Box* p = &b; p->s[threadIdx.x] = p->s[threadIdx.x / 2 * 2]; x[t] = p->s[threadIdx.x];',
    (at, t) => [t, at(t - (t % 2)) + 1],
  ],
  ['do x[t] += x[t + 1]; while (0);', (at, t) => [t, at(t) + at(t + 1)]],
  ['x[t] = x[t + 1] * 1e30f > 5 ? 7 : x[t + 2];', (at, t) => [t, at(t + 1) > 0 ? 7 : at(t + 2)]],
  ['t % 2 ? x[t] = 5 : x[t] = x[t] + 1;', (at, t) => [t, t % 2 ? 5 : at(t) + 1]],
];
const HELPERS = `struct Pair { volatile int* x; __device__ void add(int t) { x[t] += x[t + 1]; } };
  template <int D> __device__ void added(volatile int* x, int t) { x[t] += x[t + D]; }
  typedef volatile int flags_t;
  struct Box { volatile int s[80]; };
  using step_t = void (*)(volatile int*, int);
`;

/** What lanes give that take each step together. 40 threads: a warp, and one of 8 lanes that goes on alone. */
function together(x: Int32Array, of: readonly Step[]): number[] {
  const model = [...x];
  for (const lanes of [32, 8]) {
    const first = lanes === 32 ? 0 : 64;
    for (const step of of) {
      const writes = Array.from({ length: lanes }, (_unused, t) => step((i) => model[first + i]!, t));
      for (const write of writes) if (write) model[first + write[0]] = write[1];
    }
  }
  return model;
}
const start = (): Int32Array => Int32Array.from({ length: 128 }, (_unused, i) => (i * 37) % 101);

test.each([
  ['alone in the source', '', ALONE],
  ['with a kernel that waits', 'extern "C" __global__ void other(int* x) { __syncwarp(); }', ALONE.slice(0, 1)],
  [
    'with a kernel that has a lock',
    '__device__ void take(int* y) { while (atomicCAS(y, 0, 1) != 0); } extern "C" __global__ void other(int* y) { take(y); y[1]++; atomicExch(y, 0); }',
    ALONE.slice(0, 1),
  ],
  ['with a macro', '#define NAMED 1\n', [ALONE[0]!, SATURATED]],
] as const)('kernels without a barrier: %s', async (_where, more, cases) => {
  const kernels = cases.map(
    ([body], n) =>
      `extern "C" __global__ void k${n}(volatile int* y) {
        const int t = threadIdx.x % 32; volatile int* x = y + threadIdx.x / 32 * 64; ${body} }`,
  );
  const image = await images.built(
    specOf(`${HELPERS}${more}${kernels.join('\n')}`, 'k0'),
    cases.map((_unused, n) => `k${n}`),
  );
  for (const [n, [body, ...of]] of cases.entries()) {
    const x = start();
    images.run(image, `k${n}`, { grid: [1, 1, 1], block: [40, 1, 1], sharedBytes: 256 }, [x]);
    expect([...x], body).toEqual(together(start(), of));
  }
});

test.each([0, 1])('two kernels, one of which has a barrier, call the same function: launch %i first', async (first) => {
  const source = `__device__ void f(volatile int* s, int t) { s[t] = s[t] + s[t + 1]; }
    extern "C" __global__ void other(int* x) { __syncthreads(); f(x, threadIdx.x); }
    extern "C" __global__ void r(int* x) { f(x, threadIdx.x); }`;
  const image = await images.built(specOf(source, 'r'), ['other', 'r']);
  for (const name of first === 0 ? ['other', 'r'] : ['r', 'other']) {
    const x = start();
    images.run(image, name, { grid: [1, 1, 1], block: [8, 1, 1] }, [x]);
    const model = [...start()];
    expect([...x]).toEqual(model.map((value, i) => (i < 8 ? value + model[i + 1]! : value)));
  }
});

test.each([
  ['no volatile array', '__shared__ int s[64]; s[t] += s[t ^ 1];', 0],
  ['an element of a volatile array', '__shared__ volatile int s[64]; s[t] += s[t ^ 1];', 3],
  ['a barrier follows', '__shared__ volatile int s[64]; if (t < 32) { s[t] += s[t + 32]; } __syncthreads();', 0],
  ['a barrier follows, and lanes meet', '__shared__ volatile int s[64]; if (t < 32) { s[t] += s[t ^ 1]; } __syncthreads();', 3],
  ['no element is read', '__shared__ volatile int s[64]; s[t] = t;', 0],
  ['no statement of its own', '__shared__ volatile int s[64]; y[0] = (s[t] += s[t + 1]); s[t] = 1, s[t] += s[1];', 0],
  ['a lock', '__shared__ volatile int s[64]; s[t] += s[t ^ 1]; atomicExch(y, 0);', 0],
])('which statements are changed: %s', (_why, body, count) => {
  expect(lockstepEdits(tokenize(kernel(body)).tokens)).toHaveLength(count);
});

const LOCKED = '__device__ void take(int* y) { while (atomicCAS(y, 0, 1) != 0); }';
const SUM_OF_TWO = '__device__ void add(volatile int* s, int t) { s[t] += s[t ^ 1]; }';
test.each([
  ['another kernel has a lock', `${LOCKED} ${SUM_OF_TWO} __global__ void other(int* y) { take(y); } ${kernel('add(y, t);')}`, 3],
  ['a kernel that calls it has a lock', `${LOCKED} ${SUM_OF_TWO} __global__ void other(int* y) { take(y); add(y, 0); }`, 0],
  [
    'a function with a lock calls it',
    `${SUM_OF_TWO} __device__ void hold(int* y) { atomicExch(y, 1); add(y, 0); } ${kernel('hold(y);')}`,
    0,
  ],
  ['a lambda has a lock', `${SUM_OF_TWO} ${kernel('auto f = [&] { atomicExch(y, 1); }; f();')}`, 0],
])('statements beside locks: %s', (_why, source, count) => {
  expect(lockstepEdits(tokenize(source).tokens)).toHaveLength(count);
});
