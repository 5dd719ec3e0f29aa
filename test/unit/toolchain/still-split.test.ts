// Ordinary kernels that loop fission must split, since a stack for each thread would be slower.
import { expect, test } from 'vitest';
import { formsOf } from '../../../src/cuda-cpp/lower/kernel-forms.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';

const END = '__syncthreads(); out[t] = s[255 - t]';
const BODIES: Readonly<Record<string, readonly [body: string, outside?: string]>> = {
  inferred_and_copied: [`auto t = threadIdx.x; const int lane = t; s[t] = x[t]; ${END} + lane;`],
  inferred_as_an_argument: [`const auto t = threadIdx.x; s[t] = x[min(t, 5u)]; ${END} + sqrtf(t);`],
  inferred_values: [
    `int t = threadIdx.x; auto a = x[t]; s[t] = a; __syncthreads(); auto b = s[255 - t]; float c = b; out[t] = fmaxf(b, c);`,
  ],
  two_results: [`int t = threadIdx.x; float a, b; sincosf(x[t], &a, &b); s[t] = a; ${END} + b;`],
  copied_bytes: [`int t = threadIdx.x; float v[4]; memcpy(v, x + t * 4, 16); s[t] = v[1]; ${END};`],
  cleared_bytes: [`int t = threadIdx.x; float v[4]; memset(v, 0, sizeof v); s[t] = v[1]; ${END};`],
  a_constant_of_its_own: [
    `constexpr int N = 16; int t = threadIdx.x; for (int k = 0; k < N; k++) { s[t] = x[k]; __syncthreads(); } out[t] = s[N];`,
  ],
  a_constant_in_parentheses: [
    `int t = threadIdx.x; s[t] = x[t]; __syncthreads(); out[t] = (MASK) & (int)s[255 - t];`,
    'const int MASK = 255;',
  ],
  constants_of_constants: [
    `int t = threadIdx.x; for (int k = 0; k < AREA; k += SIDE) { s[t] = x[k]; __syncthreads(); } out[t] = s[0];`,
    'const int SIDE = 16; const int AREA = SIDE * SIDE; __device__ int table[SIDE], other[AREA];',
  ],
  a_cast_with_a_name: [`int t = static_cast<int>(threadIdx.x), u = t; s[t] = x[u]; ${END} * static_cast<float>(n);`],
  a_cast_of_a_pointer: [
    `int t = threadIdx.x; const float4* p = reinterpret_cast<const float4*>(x); float4 v = p[t]; s[t] = v.x; ${END} + v.y;`,
  ],
  a_class_with_operators: [
    `int t = threadIdx.x; s[t] = x[t]; __syncthreads(); Complex c = Complex(x[t], s[255 - t]); Complex d = c * c; out[t] = d.re + d.im;`,
    'struct Complex { float re, im; __device__ Complex(float a, float b) : re(a), im(b) {} __device__ Complex operator*(const Complex& o) const { return Complex(re * o.re - im * o.im, re * o.im + im * o.re); } };',
  ],
  a_member_of_a_template: [
    `int t = threadIdx.x; s[t] = x[t] + Limits<float>::zero(); ${END} * Limits<float>::one;`,
    'template <class X> struct Limits { static __device__ X zero() { return X(0); } static constexpr float one = 1; };',
  ],
  any_reference: [`int t = threadIdx.x; auto&& mine = s[t]; mine = x[t]; ${END};`],
};

test.each(Object.entries(BODIES))('%s', (name, [body, outside = '']) => {
  const source = `${outside}
extern "C" __global__ void ${name}(const float* x, float* out, int n) { __shared__ float s[256]; ${body} }`;
  expect(formsOf(source, tokenize(source).tokens, true).split).toEqual([name]);
});
