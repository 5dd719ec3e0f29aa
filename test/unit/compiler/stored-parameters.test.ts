// Which statements of CUDA C++ kernels store through a pointer parameter, and the refusal of `input` for it.
import { expect, test } from 'vitest';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { optional } from '../../../src/core/kernels/params.js';
import { input, output } from '../../../src/core/kernels/kernel.js';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { storesOf } from '../../../src/cuda-cpp/read/stored-parameters.js';

/** The line, from 1, of the first store through `y`; 0 for none. */
function lineOf(body: string, more = '', template: readonly string[] = []): number {
  const text = `${more}\n__global__ void k(float* __restrict__ y, const float* x, float* z, int n) {\n${body}\n}\n__global__ void other(float* y) { y[0] = 1; }`;
  const at = storesOf(text, text.indexOf('(', text.indexOf(' k(')) + 1, template)('y');
  return at < 0 ? 0 : text.slice(0, at).split('\n').length - 2 - (more.split('\n').length - 1);
}

test.each([
  'y[n] = 1;',
  'y[n * 2 + (int)x[0]] += x[1];',
  'if (n) y[n] -= 1; else z[0] = 1;',
  'y[n] <<= 1;',
  'y[n] |= 1;',
  'y[n]++;',
  '--y[n];',
  'z[0] = y[n]++ + 1;',
  '*y = 1;',
  'if (n) *y = 1;',
  '*y++ = 1;',
  '*(y + n) = 1;',
  '*(y + n) *= 2;',
  '(*y)++;',
  '(*(y + n)).x = 1;',
  '(y + n)[1] = 2;',
  '(y[n]) = 2;',
  'y->f = 1;',
  'y->f.g += 1;',
  'y[n].f = 1;',
  'z[0] = (y[n] = 3);',
  'for (int i = 0; i < n; y[i] = 0, i++);',
  '{ float y = 1; z[0] = y; } y[n] = 1;',
  'atomicAdd(&y[n], 1.f);',
  'atomicAdd(y + n, 1.f);',
  'atomicMax_block(y, n);',
  'int old = atomicCAS(&y->lock, 0, 1);',
  'float* p = y + n; p[0] = 1;',
  'float* const __restrict__ p = y; p[0] = 1;',
  'float *q = z, *p = &y[n]; *p = 1;',
  'auto p = y; p += n; *p = 1;',
  'auto* p = y + n; auto q = p + 1; q[2] = 1;',
  'float& r = y[n]; r += 1;',
  'auto& r = *y; r = 1;',
  'float4* p = (float4*)y; p[n] = make_float4(0, 0, 0, 0);',
  'float4* p = reinterpret_cast<float4*>(y + n); p->x = 1;',
  '((float4*)y)[n].x = 1;',
  '*(float4*)(y + n) = make_float4(0, 0, 0, 0);',
  'reinterpret_cast<float4*>(y)[n] = make_float4(0, 0, 0, 0);',
  'auto f = [&](int i) { y[i] = 1; }; f(n);',
  'y += n; y[0] = 1;',
])('a store: %s', (body) => {
  expect(lineOf(`int i;\n${body}`)).toBe(2);
});

test.each([
  'z[n] = y[n];',
  'z[n] = y[n] == 1;',
  'z[0] = y[n] <= 1 ? y[n] + +1 : y[n] >= 2;',
  'z[n] = *y + y->f * 2;',
  'z[n] = x[0] * *y;',
  'float v = y[n]; v = 2; v++;',
  'const float* p = y + n; z[0] = p[0]; p++;',
  'float* p = z; p[0] = y[0];',
  'float* p = y; p = z; p[0] = 1;',
  'float* p = n ? y : z; p[0] = 1;',
  'y = z; y[0] = 1;',
  'float* p = z + (int)y[0]; p[0] = 1;',
  'int d = y - z; z[d] = 1;',
  '{ float y[4]; y[0] = 1; z[0] = y[0]; }',
  '{ float a = 0, y[4]; y[0] = a; }',
  'for (float* y = z; y < z + n; y++) *y = 1;',
  'for (float* y : list) y[0] = 1;',
  'if (float* y = z) y[0] = 1;',
  'auto f = [=](float* y) { y[0] = 1; }; f(z);',
  'auto [y, w] = pair; y[0] = 1;',
  'struct S { float* y; __device__ void f() { y[0] = 1; } }; S s{z}; s.f();',
  's.y[0] = 1; p->y[0] = 1; N::y[0] = 1;',
  'y[n].p[3] = 1;',
  'y[n]->f = 1;',
  'read(y); read(y + n); z[0] = load(&y[n]);',
  'z[0] = atomicAdd(&y[n], 0); z[1] = atomicOr(y, 0u); z[2] = atomicCAS(&y[n], 0, 0);',
  'atomicAdd(&z[(int)y[0]], 1.f);',
  'atomicAdd(z + (int)y[0], y[1]);',
  'z[(int)y[0]] = 1; z[(int)*y] += 1;',
  'float* p = y; std::swap(p, z); p[0] = 1;',
  'sizeof(y[0] = 1); decltype(y[0] = 1) a;',
  'if constexpr (WRITES) { y[0] = 1; }',
  'if (T) y[0] = 1; else if (!T) { *y = 1; }',
  'if (DEBUG) y[0] = 1;',
  'MAYBE(y[0] = 1);',
  '#if DEBUG\ny[0] = 1;\n#else\n#if 1\n#endif\n*y = 1;\n#endif',
])('no store: %s', (body) => {
  expect(lineOf(body, '#define DEBUG 0\n#define MAYBE(x)', ['T'])).toBe(0);
});

test('input for a pointer that the kernel stores through is refused', () => {
  const source = `
    extern "C" __global__ void add(float* x, float* y, int n) {
      float* p = y + n;
      p[0] += x[0];
    }`;
  expect(() => cudaKernel('add', { x: input(f32), y: output(f32), n: i32 }, source)).not.toThrow();
  expect(() => cudaKernel('add', { x: input(f32), y: input(f32), n: i32 }, source)).toThrow(
    expect.objectContaining({
      name: 'ArgumentError',
      message: expect.stringMatching(
        /The parameter 'y' \(input\) is 'float\* y' in the source, and 'add' stores through it on line 4 of the source: p\[0\] \+= x\[0\]; Declare it with inout or output\.$/,
      ),
    }),
  );
  expect(() => cudaKernel('add', { x: input(f32), y: optional(input(f32)), n: i32 }, source)).toThrow(/optional\(inout\(\.\.\.\)\)/);
});
