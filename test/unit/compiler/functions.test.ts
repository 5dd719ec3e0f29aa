// Functions that a body can call (helpers, local arrows, Math, casts), and constants.
import { expect, test } from 'vitest';
import { func } from '../../../src/compiler/definitions/func.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, f64, i32, u32 } from '../../../src/core/elements/dtype.js';
import { inout, input, output } from '../../../src/core/kernels/kernel.js';
import { bodyOf } from './support.js';

const open = { bounds: 'unchecked' } as const;

test('helpers made by func are emitted as functions; uncalled ones are omitted', () => {
  const square = func([f32], f32, (v) => v * v);
  const countdown = func([i32, u32], i32, (n, m) => {
    let s = 0;
    for (let k = 0; k < n; k++) s += k;
    if (m > 3) return s;
    return -s;
  });
  const made = kernel(
    'calls',
    { x: inout(f32), o: output(i32), m: u32 },
    ({ x, o, m }, { i, sq, steps }) => {
      x[i] = sq(x[i]! + 1);
      o[i] = steps(i, m);
    },
    { functions: { sq: square, steps: countdown, unused: square }, bounds: 'unchecked' },
  );
  expect(made.source).toMatchInlineSnapshot(`
    "static __device__ __forceinline__ float mr_fn_sq(float v_) {
      return v_ * v_;
    }
    static __device__ __forceinline__ int mr_fn_steps(int n_, unsigned m_) {
      int s_ = 0;
      for (int k_ = 0; k_ < n_; k_ = k_ + 1) {
        s_ = (int)((unsigned)s_ + (unsigned)k_);
      }
      if (m_ > 3u) {
        return s_;
      }
      return (int)((unsigned)0u - (unsigned)s_);
    }
    extern "C" __global__ void calls_kernel(float* x_, int x_n0, int* o_, int o_n0, unsigned m_, int mr_n0, int mr_n1, int mr_n2) {
      const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
      if (mr_i >= mr_n0) return;
      x_[mr_i] = mr_fn_sq(x_[mr_i] + 1.0f);
      o_[mr_i] = mr_fn_steps(mr_i, m_);
    }
    "
  `);
  expect(made.build.isBounded).toBe(false);
});

test('a local arrow is inlined at its call', () => {
  const made = kernel(
    'arrow',
    { x: inout(f32) },
    ({ x }, { i }) => {
      const lerp = (a: number, b: number) => a + (b - a) * 0.5;
      const at = (k: number) => x[k]!;
      x[i] = lerp(at(i), at(i + 1));
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "const int k_ = mr_i;
    const float a_ = x_[k_];
    const int k_2_ = (int)((unsigned)mr_i + (unsigned)1);
    const float b_ = x_[k_2_];
    x_[mr_i] = a_ + ((b_ - a_) * 0.5f);"
  `);
});

test('constants are literals in the source, and specialize makes another kernel', () => {
  const made = kernel(
    'constant',
    { x: inout(f32) },
    ({ x }, { i, SCALE, FLIP }) => {
      x[i] = FLIP ? -x[i]! : x[i]! * SCALE;
    },
    {
      constants: { SCALE: 0.1, FLIP: false },
      bounds: 'unchecked',
    },
  );
  const other = made.specialize({ SCALE: 3 });
  expect([bodyOf(made), bodyOf(other), bodyOf(other.specialize({ FLIP: true }))]).toMatchInlineSnapshot(`
    [
      "x_[mr_i] = x_[mr_i] * 0.1f;",
      "x_[mr_i] = x_[mr_i] * 3.0f;",
      "x_[mr_i] = -x_[mr_i];",
    ]
  `);
  expect(() => made.specialize({ TILE: 3 } as never)).toThrow("Kernel 'constant' has no constant 'TILE' (it has SCALE, FLIP).");
});

test('options reach the build: fmad, bounds, maxThreadsPerBlock', () => {
  const made = kernel(
    'options',
    { x: inout(f32) },
    ({ x }, { i }) => {
      x[i] = 1;
    },
    { fmad: false, maxThreadsPerBlock: 128 },
  );
  expect(made.source).toContain('extern "C" __global__ void __launch_bounds__(128) options_kernel(');
  expect(made).toMatchObject({ maxThreadsPerBlock: 128, build: { fmad: false, isChecked: true } });
});

test('integer division says how it rounds, and never traps', () => {
  const made = kernel(
    'division',
    { n: inout(i32), u: inout(u32) },
    ({ n, u }, { i, idiv }) => {
      n[i] = idiv(n[i]!, i) + Math.trunc(n[i]! / 3) + ((n[i]! / i) | 0) + Math.floor(n[i]! / i) + (n[i]! % i) + (n[i]! % 8);
      u[i] = Math.floor(u[i]! / u[0]!) + (u[i]! % u[0]!);
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "n_[mr_i] = (int)((((((unsigned)mr_div_i32(n_[mr_i], mr_i) + (unsigned)(n_[mr_i] / 3)) + (unsigned)mr_div_i32(n_[mr_i], mr_i)) + (unsigned)mr_floordiv_i32(n_[mr_i], mr_i)) + (unsigned)mr_rem_i32(n_[mr_i], mr_i)) + (unsigned)(n_[mr_i] % 8));
    u_[mr_i] = mr_div_u32(u_[mr_i], u_[0]) + mr_rem_u32(u_[mr_i], u_[0]);"
  `);
  expect(made.source).toContain('return b == 0 ? 0 : b == -1 ? (int)(0u - (unsigned)a) : a / b;');
});

test('casts saturate, and convert NaN to 0', () => {
  const made = kernel(
    'casts',
    { x: input(f32), d: input(f64), n: output(i32), u: output(u32), f: output(f32) },
    ({ x, d, n, u, f }, { i, i32: toI32, u32: toU32, f32: toF32, f64: toF64 }) => {
      n[i] = toI32(x[i]!) + (d[i]! | 0) + toI32(u[i]!) + toI32(x[i]! > 0) + toI32(2.7) + toI32(true);
      u[i] = toU32(x[i]!) + (n[i]! >>> 0) + toU32(-1);
      f[i] = toF32(d[i]!) + toF32(toF64(n[i]!) / 3);
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "n_[mr_i] = (int)((((((unsigned)mr_f32_to_i32(x_[mr_i]) + (unsigned)mr_wrap_f64(d_[mr_i])) + (unsigned)(int)u_[mr_i]) + (unsigned)(int)(x_[mr_i] > 0.0f)) + (unsigned)2) + (unsigned)1);
    u_[mr_i] = (mr_f32_to_u32(x_[mr_i]) + (unsigned)n_[mr_i]) + 4294967295u;
    f_[mr_i] = (float)d_[mr_i] + (float)((double)n_[mr_i] / 3.0);"
  `);
  expect(made.source).toContain('return x != x ? 0 : x <= -2147483648.0f ? (-2147483647 - 1) : x >= 2147483648.0f ? 2147483647 : (int)x;');
});
