// Kernels whose variables change, or names change their meaning, in ways that tokens hardly show: as loops and thread by thread.
import { expect, test } from 'vitest';
import { type KernelForm } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { formsOf } from '../../../src/cuda-cpp/lower/kernel-forms.js';
import { rewriteForCpu } from '../../../src/cuda-cpp/lower/rewrite.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { EXPOSED, EXPOSED_BY_OPERATORS, EXPOSED_ROWS, HELPERS, ODD_TEXTS, OPERATORS, ROW_HELPERS } from './hidden-changes.js';
import { OVERLOOKED } from './overlooked-changes.js';
import { i32, specOf } from './run-image.js';
import { imagesOfFile } from './images.js';

const THREADS = 32;
const BLOCKS = 3;

/** Bodies of kernels `(int* out, int n)` with an array `s` in shared memory, one element per thread. */
const WITH_BARRIERS: Readonly<Record<string, string>> = {
  a_pointer_moved: 's[T] = T; __syncthreads(); out += blockIdx.x * 32; out[T] = s[31 - T];',
  a_pointer_moved_in_a_loop:
    's[T] = n; out += blockIdx.x * 32; for (int k = 0; k < 3; k++) { __syncthreads(); out[k] = s[31 - T]; ++out; __syncthreads(); }',
  a_parameter_changed: 'n += T; s[T] = n; __syncthreads(); out[G] = s[31 - T] + n;',
  a_parameter_given_to_a_function: 'change(n); s[T] = n; __syncthreads(); out[G] = s[31 - T] + n;',
  a_parameter_read_by_a_function: 's[T] = twice(n); __syncthreads(); out[G] = s[31 - T] + twice(n);',
  a_reference: 'int x = blockIdx.x; int& r = x; r += T; s[T] = x; __syncthreads(); out[G] = s[31 - T] + x;',
  a_reference_in_braces: 'int x = blockIdx.x; auto& r{x}; r += T; s[T] = x; __syncthreads(); out[G] = s[31 - T] + x;',
  a_counter_referred_to:
    's[T] = 0; for (int j = 0; j < 4; j++) { __syncthreads(); int& q = j; s[T] += q; } __syncthreads(); out[G] = s[31 - T];',
  a_function_template: 'int x = blockIdx.x; if (T > 3) bump<2>(x); s[T] = x; __syncthreads(); out[G] = s[31 - T] + x;',
  in_parentheses: 'int x = blockIdx.x; if (T > 3) { (x)++; } s[T] = x; __syncthreads(); out[G] = s[31 - T] + x;',
  in_a_do_loop: 'int x = blockIdx.x; do x = T * 2; while (x > 1000); s[T] = x; __syncthreads(); out[G] = s[31 - T] + x;',
  a_size_of_its_own:
    'const int SIZE = 64; __shared__ int g[SIZE]; s[T] = T; g[T + 32] = 5; __syncthreads(); out[G] = s[31 - T] + g[T + 32] + (int)sizeof(g);',
  a_place_in_braces: '{ unsigned n = T; s[n] = n; } __syncthreads(); out[G] = s[n];',
  shared_memory_in_braces:
    's[T] = 0; { __shared__ int out[4]; if (T < 4) out[T] = T; s[T] = out[T & 3]; } atomicAdd(&out[T], s[T]); __syncthreads();',
  an_object_that_begins_anew:
    'int sum = 0; for (int k = 0; k < 3; k++) { Sum a; a.add(T + k); s[T] = a.value; __syncthreads(); sum += a.value + s[31 - T]; __syncthreads(); } out[G] = sum;',
  objects_that_begin_anew:
    'int sum = 0; for (int k = 0; k < 3; k++) { Sum a[2]; a[k & 1].add(T + k); s[T] = a[1].value; __syncthreads(); sum += a[0].value + s[31 - T]; __syncthreads(); } out[G] = sum;',
  an_object_behind_an_alias:
    'int sum = 0; for (int k = 0; k < 3; k++) { Alias a; a.add(T + k); s[T] = a.value; __syncthreads(); sum += a.value + s[31 - T]; __syncthreads(); } out[G] = sum;',
  two_counters:
    's[T] = 0; for (int i = 0, j = 5; i < j; i++, j--) { __syncthreads(); s[T] += i * j; } __syncthreads(); out[G] = s[31 - T];',
  a_loop_backwards_over_carried:
    's[T] = T; __syncthreads(); int acc = 0; for (int k = 20; k > 0; k--) { acc = acc * 3 + s[(T + k) & 31]; } __syncthreads(); s[T] = acc; __syncthreads(); out[G] = s[31 - T];',
  a_turned_loop_with_carried_memory:
    's[T] = T; __syncthreads(); for (int k = 1; k < 20; k++) { out[G] = out[G] * 2 + k; s[T] ^= out[G]; } __syncthreads(); out[G] += s[31 - T];',
  a_comma_assigned: 'int x = blockIdx.x; if (T > 4) x++, s[T] = 1; s[T] = x; __syncthreads(); out[G] = s[31 - T] + x;',
  an_array_reference: 'int x[2]; x[0] = T; x[1] = 2; int* p = x; p[T & 1] += 3; s[T] = x[0]; __syncthreads(); out[G] = s[31 - T] + x[1];',
  a_pointer_to_pointer: 'int* q = out; int** pp = &q; *pp += blockIdx.x * 32; s[T] = T; __syncthreads(); q[T] = s[31 - T];',
  a_swap: 'int x = T, y = blockIdx.x; swap2(x, y); s[T] = x + 2 * y; __syncthreads(); out[G] = s[31 - T] + x;',
  a_method: 'Sum a; a.add(T); Sum b = a; s[T] = b.value; __syncthreads(); out[G] = s[31 - T] + a.value;',
  a_cast_reference: 'int x = blockIdx.x; (int&)x = T; s[T] = x; __syncthreads(); out[G] = s[31 - T] + x;',
  another_before_it: 's[T] = early; __syncthreads(); const int early = T * 2; __syncthreads(); out[G] = s[early & 31] + early;',
};
const WITHOUT: Readonly<Record<string, string>> = {
  a_place_of_the_grid_in_braces: 'int i = G; out[i] = 1; { unsigned n = G; out[n] = n; } out[n] = 77;',
};
/** Kernels for which loop fission is proven; with a stack for each thread they would be slower. */
const CUT = ['a_pointer_moved', 'a_pointer_moved_in_a_loop', 'a_parameter_changed', 'a_parameter_read_by_a_function'];

const HEAD = `const int SIZE = 8;
__device__ const int early = 3;
__device__ void change(int& x) { x += 7; }
__device__ int twice(int x) { return 2 * x; }
struct Sum { int value = 0; __device__ void add(int x) { value += x; } };
typedef Sum Alias;
template <class X> __device__ void swap2(X& a, X& b) { X c = a; a = b; b = c; }
template <int N> __device__ void bump(int& x) { x += N; }
`;
const written = (body: string): string =>
  body.replaceAll(/\bT\b/g, 'threadIdx.x').replaceAll(/\bG\b/g, 'blockIdx.x * blockDim.x + threadIdx.x');
const kernel = (name: string, body: string): string => `extern "C" __global__ void ${name}(int* out, int n) { ${written(body)} }\n`;
const withShared = (name: string, body: string): string => kernel(name, `__shared__ int s[32]; ${body}`);
const BARRIERS =
  HEAD +
  Object.entries(WITH_BARRIERS)
    .map(([name, body]) => kernel(name, `__shared__ int s[32]; ${body}`))
    .join('');
const ROWS = Object.entries(WITHOUT)
  .map(([name, body]) => kernel(name, body))
  .join('');
const GROUPS = `#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void of_groups(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * 90) return;
  out[i] = cg::this_thread_block().thread_rank() + 100 * cg::this_grid().thread_rank();
}`;

const images = imagesOfFile();

async function compare(source: string, names: readonly string[], forms: readonly [KernelForm, KernelForm]): Promise<void> {
  const built = (form: KernelForm): Promise<string> => images.built(specOf(source, names[0]!), names, form);
  const [fast, plain] = [await built(forms[0]), await built(forms[1])];
  for (const name of names) {
    const run = (image: string): number[] => {
      // Threads of different blocks may write the same element: one block after the other.
      const out = new Int32Array(THREADS * (BLOCKS + 1));
      images.run(image, name, { grid: [BLOCKS, 1, 1], block: [THREADS, 1, 1], threads: 1 }, [out, i32(1)]);
      return [...out];
    };
    expect.soft(run(fast), name).toEqual(run(plain));
  }
}

test('kernels after loop fission give the results of threads with stacks', async () => {
  await compare(BARRIERS, Object.keys(WITH_BARRIERS), ['fission', 'stacks']);
  expect(formsOf(BARRIERS, tokenize(BARRIERS).tokens, true).split).toEqual(expect.arrayContaining(CUT));
});

test('an atomic stays atomic if its name refers to memory of all blocks', () => {
  expect(rewriteForCpu(kernel('k', WITH_BARRIERS['shared_memory_in_braces']!)).text).not.toContain('_block');
});

test('loops over rows give the results of single threads', async () => {
  await compare(ROWS, Object.keys(WITHOUT), ['rows', 'threads']);
});

test('cooperative groups use an index that loops over rows do not set', async () => {
  await compare(GROUPS, ['of_groups'], ['either', 'threads']);
});

const textOf = (outside: string, bodies: Readonly<Record<string, string>>, names = Object.keys(bodies)): string =>
  HEAD + written(outside) + names.map((name) => withShared(name, bodies[name]!)).join('');
const cutIn = (source: string): readonly string[] => formsOf(source, tokenize(source).tokens, true).split;

/** A variable of reference type cannot be stored from part to part: the build fails, and each thread gets a stack. */
const REFUSED = ['a_parameter_by_alias', 'a_counter_by_alias', 'an_alias', 'an_old_alias'];

/** Kernels that stay unchanged need no comparison. */
test("every way to take a variable's address is detected, or the kernel is not split", async () => {
  const names = cutIn(textOf(HELPERS, EXPOSED)).filter((name) => !REFUSED.includes(name));
  expect(names.length).toBeGreaterThan(40);
  await compare(textOf(HELPERS, EXPOSED, [...names]), names, ['fission', 'stacks']);
}, 120_000);

test('source with operators that take any variable is not split', () => {
  expect(cutIn(textOf(HELPERS + OPERATORS, { ...EXPOSED, ...EXPOSED_BY_OPERATORS }))).toEqual([]);
});

test.each(Object.entries(OVERLOOKED))('overlooked: %s', async (name, [outside, body]) => {
  const source = `${written(outside)}\n${withShared(name, body)}`;
  if (cutIn(source).length > 0) await compare(source, [name], ['either', 'stacks']);
});

test.each(Object.entries(ODD_TEXTS))('%s', async (name, [outside, body]) => {
  const isOpen = outside.split('{').length > outside.split('}').length;
  await compare(`${outside}\n${withShared(name, body)}${isOpen ? '}' : ''}`, [name], ['either', 'stacks']);
});

test('a subscript is an index only while its variable is', async () => {
  const source =
    ROW_HELPERS +
    Object.entries(EXPOSED_ROWS)
      .map(([name, body]) => kernel(name, body))
      .join('');
  await compare(source, Object.keys(EXPOSED_ROWS), ['rows', 'threads']);
});
