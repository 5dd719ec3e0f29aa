// Functions that wait on the CPU device and are called by another name than their own: as arguments of templates, and as objects. Instances of
// templates that wait.
import { expect, test } from 'vitest';
import { specOf } from './run-image.js';
import { imagesOfFile } from './images.js';

const images = imagesOfFile();

const SUM = `
__device__ int sum(int v) { for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d); return v; }
__device__ int twice(int v) { return 2 * v; }`;

/** What each body of a kernel makes the lanes of one warp write, all of them the same. */
type Cases = readonly (readonly [body: string, expected: number])[];

/** All kernels in one source. */
async function expectResults(declared: string, cases: Cases): Promise<void> {
  const names = cases.map((_one, n) => `k${n}`);
  const kernels = cases.map(([body], n) => `extern "C" __global__ void k${n}(int* y) { const int t = threadIdx.x; ${body} }`);
  const image = await images.built(specOf(`${SUM} ${declared} ${kernels.join('\n')}`, 'k0'), names);
  for (const [n, [body, expected]] of cases.entries()) {
    const y = new Int32Array(32);
    images.run(image, `k${n}`, { grid: [1, 1, 1], block: [32, 1, 1] }, [y]);
    expect([...new Set(y)], body).toEqual([expected]);
  }
}

/** Templates that take a function, each with a name of its own. */
const TEMPLATES = `
using F = int (*)(int); template <F f> __device__ int named(int v) { return f(v) + 1; }
template <int (*f)(int)> __device__ int plain(int v) { return f(v); }
template <int N, int (*f)(int) = twice> __device__ int usual(int v) { return N * f(v); }
template <auto f, class T = int> __device__ T inferred(T v) { return f(v); }
template <int (*f)(int), int N = 1> struct Of { static __device__ int run(int v) { return N * f(v); } };`;

test('a function as an argument of a template', () =>
  expectResults(TEMPLATES, [
    ['y[t] = named<sum>(t);', 497],
    ['y[t] = plain<&sum>(t);', 496],
    ['y[t] = usual<2, sum>(t) + 0 * usual<3>(t);', 992],
    ['y[t] = inferred<sum>(t) - inferred<sum, int>(0);', 496],
    ['y[t] = Of<sum, 2>::run(t);', 992],
  ]));

const OBJECT = `
struct Sum { int by; __device__ Sum(int b) : by(b) {} __device__ int operator()(int v) const { return by * sum(v); } };
struct Plus { int by; __device__ int operator()(int v) const { return v + by; } };
template <class F> __device__ int apply(const F& f, int v) { return f(v); }
struct Both { Sum first; Plus second; __device__ int run(int v) { return second(first(v)); } };`;

test('an object whose call waits', () =>
  expectResults(OBJECT, [
    ['Sum s(2); y[t] = s(t);', 992],
    ['const Sum s = Sum(3); const Plus p{4}; y[t] = p(s(t));', 1492],
    ['y[t] = apply(Sum(1), t) + apply(Plus{0}, 4);', 500],
    ['y[t] = Sum(2)(t);', 992],
    ['Both b{Sum(1), Plus{2}}; int v = b.run(t); v += b.first(1); y[t] = v;', 530],
    ['int v = 0; Sum all[] = {Sum(1), Sum(2)}; for (const Sum& s : all) v += s(t); y[t] = v;', 1488],
  ]));

const FOLD = `
template <class F> __device__ int fold(int v, F f) { for (int d = 16; d > 0; d /= 2) v = f(v, __shfl_xor_sync(~0u, v, d)); return v; }
template <class F> __device__ int from_next(F f) { return __shfl_xor_sync(~0u, f(threadIdx.x), 1) - f(threadIdx.x ^ 1); }`;

test('lambdas that do not wait, in an expression with several waits', () =>
  expectResults(FOLD, [
    ['y[t] = fold(t, [](int a, int b) { return a + b; }) + fold(t, [](int a, int b) { return max(a, b); });', 527],
    [
      'int n = 3; y[t] = fold(t, [&](int a, int b) { return max(a, b + n - 3); }) * 100 + fold(n, [=](int a, int b) { return a + b - n; });',
      3103,
    ],
    ['y[t] = from_next([=](int i) { return i * t - i * (i ^ t); }) * 0 + from_next([&y](int i) { return 7 * i; }) + sum(t);', 496],
    ['if (fold(t, [](int a, int b) { return a + b; }) > sum(fold(1, [](int a, int b) { return a * b; }))) y[t] = 1;', 1],
  ]));

const MEMBERS = `
namespace ns { template <int N> struct Of {
  struct In { int by; __device__ int sum_of(int v) const { return 2 * by * sum(v); } };
  __device__ Of<2> of() const { return {}; }
  __device__ int sum_of(int v) const { return N * sum(v); } }; } using namespace ns;`;

test('a member function that waits, of an object without a name', () =>
  expectResults(MEMBERS, [
    ['y[t] = 1 + Of<2>{}.sum_of(t);', 993],
    ['y[t] = 1 + ns::Of<2>().sum_of(t);', 993],
    ['y[t] = 1 + (ns::Of<2>{}).sum_of(t);', 993],
    ['y[t] = 1 + ns::Of<1>{}.of().sum_of(t);', 993],
    ['y[t] = 1 + Of<2>::In{1}.sum_of(t);', 993],
  ]));

test('instances of a template that are written out', () =>
  expectResults(
    'template <int N> __device__ int add(int v) { return sum(v) + N; } template __device__ int add<3>(int); extern template __device__ int add<4>(int);',
    [['y[t] = add<3>(t);', 499]],
  ));
