// Objects with destructors in temporaries of expressions that wait on the CPU device: each is destroyed once, at its own address.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { ImageRunner, specOf } from './run-image.js';
import { useQuickCompiler } from '../../support/use-quick-compiler.js';

useQuickCompiler();

let runner: ImageRunner;
let compiler: CpuCompiler;
const scratch = mkdtempSync(join(tmpdir(), 'millrace-temporaries-'));
beforeAll(async () => {
  runner = new ImageRunner();
  compiler = await CpuCompiler.open();
});
afterAll(() => {
  runner.close();
  rmSync(scratch, { recursive: true, force: true });
});

const HEAD = `
__device__ int made, gone, moved;
struct Counted {
  Counted* self; int v;
  __device__ Counted(int v) : self(this), v(v) { atomicAdd(&made, 1); }
  __device__ Counted(const Counted& from) : self(this), v(from.v) { if (from.self != &from) atomicAdd(&moved, 1); atomicAdd(&made, 1); }
  __device__ ~Counted() { if (self != this) atomicAdd(&moved, 1); self = nullptr; atomicAdd(&gone, 1); }
};
struct Scale { Counted by; __device__ int operator()(int a) const { return by.v * a; } };
template <class T> struct Pair { T a; int b; };
__device__ int sum(int v) { for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d); return v; }
template <class F> __device__ int apply(F f, int v) { return sum(f(v)); }
template <class F> __device__ int apply_to(const F& f, int v) { return sum(f(v)); }
__device__ int take(const Pair<Counted>& p) { return sum(p.b) / 32 * p.a.v; }
__device__ Counted sum_of(int v) { return Counted(sum(v)); }
template <class... A> __device__ int packed(int t, A... a) { return apply([a...](int v) { return (a + ...) * v; }, t); }
struct Member { int m; __device__ int run(int t) { return (apply([=](int a) { return m * a; }, t) + apply([*this](int a) { return m * a; }, t)) / 2; } };
`;
const kernel = (body: string): string => `${HEAD}
extern "C" __global__ void k(int* y, int* counts) {
  const int t = threadIdx.x;
  { ${body} }
  __syncthreads();
  if (t == 0) { counts[0] = made; counts[1] = made - gone; counts[2] = moved; }
}`;

test.each([
  ['Counted c(2); y[t] = apply([=](int a) { return c.v * a; }, t);', 96],
  ['Counted c(2); y[t] = apply_to([c](int a) { return c.v * a; }, t);', 64],
  ['y[t] = apply([c = Counted(2), n = 0](int a) mutable { n += c.v * a; return n; }, t);', 64],
  ['Counted c(2); y[t] = [=](int a) { return sum(c.v * a); }(t);', 96],
  ['Counted c(2); if (t < 40 && apply([=](int a) { return c.v * a; }, t) == 992) y[t] = 992;', 96],
  ['Counted c(2); int u = 3; y[t] = t > 40 ? u : apply([=](int a) { return c.v * a; }, t);', 96],
  ['Counted c[2] = {1, 2}; y[t] = apply([=](int a) { return c[1].v * a; }, t);', 192],
  ['Counted c(2); y[t] = apply(Scale{c}, t);', 96],
  ['y[t] = apply_to(::Scale{2}, t);', 32],
  ['y[t] = take(Pair<Counted>{Counted(31), 32});', 32],
  ['y[t] = take(Pair<Counted>{{31}, 32});', 32],
  ['y[t] = sum_of(2 * t).v;', 96],
  ['int c[2] = {1, 2}; y[t] = apply([=](int a) { return c[1] * a; }, t);', 0],
  ['y[t] = packed(t, 1, 1);', 0],
  ['Member m{2}; y[t] = m.run(t);', 0],
])('%s', async (body, objects) => {
  const image = join(scratch, 'temporaries.so');
  writeFileSync(image, await compiler.compile(specOf(kernel(body), 'k'), ['k']));
  const y = new Int32Array(32);
  const counts = new Int32Array(3);
  runner.run(image, 'k', { grid: [1, 1, 1], block: [32, 1, 1] }, [y, counts]);
  expect([...new Set(y)]).toEqual([992]);
  expect([...counts]).toEqual([objects, 0, 0]);
});

test.each([
  [
    'Pair<Counted> p{Counted(2), sum(t)}; y[t] = p.b;',
    'waits in braces that initialise an object with a destructor: store what the wait returns',
  ],
  ['Scale s = {sum(t)}; y[t] = s(1);', 'waits in braces that initialise an object with a destructor: store what the wait returns'],
  ['y[t] = take({2, 496});', 'initialises an object with a destructor in braces, in an expression that waits: write the type before'],
  [
    'y[t] = take({Counted(2), 3});',
    'initialises an object with a destructor in braces, in an expression that waits: write the type before',
  ],
])('a K402 of %s', async (body, message) => {
  const source = kernel(body);
  const line = source.split('\n').findIndex((text) => text.includes(body)) + 1;
  const failed = compiler.compile(specOf(source, 'k'), ['k']);
  await expect(failed).rejects.toThrow(message);
  await expect(failed).rejects.toMatchObject({ diagnostics: [{ code: 'K402', line }] });
});

test('waits in braces of objects without destructors are no error', async () => {
  const body =
    'Pair<int> p{1, sum(t)}; int all[] = {sum(t), p.b}; for (int i = 0; i < 1; i++) { { Counted c(1); y[t] = sum(t) + all[0]; } }';
  await expect(compiler.compile(specOf(kernel(body), 'k'), ['k'])).resolves.toBeDefined();
});
