// 64-bit integers, which are bigint in TypeScript, and f16, which exists in memory only.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f16, f32, f64, i32, i64, u32, u64 } from '../../../src/core/elements/dtype.js';
import { inout, input, output } from '../../../src/core/kernels/kernel.js';
import { bodyOf, complaint, withoutPositions, withText } from './support.js';

withoutPositions();

const open = { bounds: 'unchecked' } as const;
const params = { a: inout(i64), b: inout(u64), n: inout(i32), u: inout(u32), x: inout(f32), d: inout(f64), s: i64 } as const;
function refused(text: string): string {
  return complaint(() => kernel('k', params, withText(text)));
}

test('a bigint literal takes the type of the other operand', () => {
  const made = kernel(
    'literals',
    params,
    ({ a, b }, { i, min, clamp }) => {
      const K = 5n;
      let sum = 0n;
      let alone = 1n << 40n;
      const twice = (v: bigint): bigint => v + K;
      for (let k = 0; k < 4; k++) sum += b[k]!;
      alone += K;
      b[i] = twice(3n) + sum;
      b[i + 1] = min(b[i]!, K, 9n) + clamp(sum, K, 1000n);
      a[i] = i > 3 ? alone : 2n;
      b[i + 2] = 18446744073709551615n;
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "unsigned long long sum_ = 0ull;
    long long alone_ = (long long)((unsigned long long)1ll << 40);
    for (int k_ = 0; k_ < 4; k_ = k_ + 1) {
      sum_ = sum_ + b_[k_];
    }
    alone_ = (long long)((unsigned long long)alone_ + (unsigned long long)5ll);
    b_[mr_i] = (3ull + 5ull) + sum_;
    b_[mr_i + 1] = mr_min_u64(mr_min_u64(b_[mr_i], 5ull), 9ull) + mr_clamp_u64(sum_, 5ull, 1000ull);
    a_[mr_i] = (mr_i > 3) ? alone_ : 2ll;
    b_[mr_i + 2] = 18446744073709551615ull;"
  `);
});

test('casts', () => {
  const made = kernel(
    'casts',
    params,
    ({ a, b, n, u, x, d }, t) => {
      const { i } = t;
      a[i] = t.i64(n[i]!) + t.i64(x[i]!) + t.i64(b[i]!) + t.i64(i > 3) + t.i64(-1) + t.i64(2.5) + t.i64(1e18) + t.i64(1e30);
      b[i] = t.u64(d[i]!) + t.u64(u[i]!) + t.u64(-1n) + t.u64(a[i]!);
      n[i] = t.i32(a[i]!);
      u[i] = t.u32(b[i]! >> 32n);
      x[i] = t.f32(a[i]!);
      d[i] = t.f64(b[i]!) + t.f64(3n);
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "a_[mr_i] = (long long)((((((((unsigned long long)(long long)n_[mr_i] + (unsigned long long)mr_f32_to_i64(x_[mr_i])) + (unsigned long long)(long long)b_[mr_i]) + (unsigned long long)(long long)(mr_i > 3)) + (unsigned long long)(-1ll)) + (unsigned long long)2ll) + (unsigned long long)1000000000000000000ll) + (unsigned long long)9223372036854775807ll);
    b_[mr_i] = ((mr_f64_to_u64(d_[mr_i]) + (unsigned long long)u_[mr_i]) + 18446744073709551615ull) + (unsigned long long)a_[mr_i];
    n_[mr_i] = (int)a_[mr_i];
    u_[mr_i] = (unsigned)(b_[mr_i] >> 32);
    x_[mr_i] = (float)a_[mr_i];
    d_[mr_i] = (double)b_[mr_i] + (double)3ll;"
  `);
  for (const helper of ['mr_f32_to_i64(float', 'mr_f64_to_u64(double']) expect(made.source).toContain(helper);
});

test('f16 loads as f32, and a store rounds', () => {
  const made = kernel(
    'halves',
    { h: inout(f16), from: input(f16, 2), x: output(f32), factor: f16 },
    ({ h, from, x, factor }, { i, local, f16: half }) => {
      const kept = local(half, 4);
      kept[i & 3] = from[i]![0]! * factor;
      h[i]! += kept[i & 3]!;
      x[i] = h[i]! + 1;
    },
    open,
  );
  expect(made.source).toContain(
    '(unsigned short* h_, int h_n0, const unsigned short* from_, int from_n0, int from_n1, float* x_, int x_n0, unsigned short factor_',
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "unsigned short kept_[4];
    kept_[mr_i & 3] = mr_to_f16(mr_from_f16(from_[(long long)mr_i * from_n1 + 0]) * mr_from_f16(factor_));
    h_[mr_i] = mr_to_f16(mr_from_f16(h_[mr_i]) + mr_from_f16(kept_[mr_i & 3]));
    x_[mr_i] = mr_from_f16(h_[mr_i]) + 1.0f;"
  `);
  expect(complaint(() => kernel('k', { h: inout(f16), d: f64 }, withText('({ h, d }) => { h[0] = d; }')))).toMatch(/^K207/);
});

test('64-bit integers combine only with each other', () => {
  const complaints: Record<string, string> = {};
  for (const [name, line] of Object.entries({
    mixed: 'a[0] = a[0] + b[0];',
    number: 'a[0] = a[0] + n[0];',
    text: 'a[0] = a[0] + 1;',
    stored: 'x[0] = a[0];',
    narrowed: 'n[0] = a[0];',
    index: 'x[a[0]] = 1;',
    power: 'a[0] = a[0] ** 2n;',
    unsignedShift: 'a[0] = a[0] >>> 2n;',
    sqrt: 'x[0] = Math.sqrt(a[0]);',
    abs: 'a[0] = Math.abs(a[0]);',
    popcount: 'n[0] = t.popcount(b[0]);',
    least: 'b[0] = -1n;',
    most: 'a[0] = 9223372036854775808n;',
    far: 'b[0] = 18446744073709551616n;',
    float: 'a[0] = 2.5;',
    atomic: 't.atomicAdd(a, 0, 1n);',
    size: 'const m = t.shared(t.f32, 4n);',
    vector: 'const v = t.vec2f(a[0], 1);',
    halves: "const m = t.shared('f16', 4); t.atomicAdd(m, 0, 1);",
  }))
    complaints[name] = refused(`({ a, b, n, x }, t) => { ${line} }`);
  expect(
    Object.entries(complaints)
      .map(([name, said]) => `${name}: ${said}`)
      .join('\n'),
  ).toMatchInlineSnapshot(`
    "mixed: K204: 'a[0] + b[0]' mixes i64 and u64.
      Cast one side: i64(...).
    number: K204: 'a[0] + n[0]' mixes i64 and i32.
      Cast one side: i64(...).
    text: K204: 'a[0] + 1' mixes i64 and a whole number.
      Write the number with the suffix n: 1n.
    stored: K204: 'a[0]' is i64 where f32 is needed.
      Write f32(a[0]).
    narrowed: K204: 'a[0]' is i64 where i32 is needed.
      Write i32(a[0]).
    index: K204: 'a[0]' is i64 where i32 is needed.
      Write i32(a[0]).
    power: K301: '**' does not work on 64-bit integers ('a[0] ** 2n').
      Multiply.
    unsignedShift: K301: '>>>' does not work on 64-bit integers ('a[0] >>> 2n').
      '>>' of a u64 shifts in zeros.
    sqrt: K201: 'Math.sqrt' does not work on 64-bit integers.
      Cast to f64(...), or to i32(...).
    abs: K201: 'Math.abs' does not work on 64-bit integers.
      Cast to f64(...), or to i32(...).
    popcount: K206: 'popcount' takes integers, and 'b[0]' is u64.
    least: K206: -1 does not fit u64.
      u64 ranges from 0 to 18446744073709551615.
    most: K206: 9223372036854775808 does not fit i64.
      i64 ranges from -9223372036854775808 to 9223372036854775807.
    far: K206: 18446744073709551616 does not fit u64.
      u64 ranges from 0 to 18446744073709551615.
    float: K204: '2.5' is a fraction where i64 is needed.
      Write i64(2.5).
    atomic: K209: 'atomicAdd' does not work on i64.
      It works on i32, u32, u64, f32, f64.
    size: K403: The size of 'm' (4n) must be known when the kernel is made.
      Use numbers and { constants }. Shared memory whose size the launch gives is sharedDynamic(type).
    vector: K204: 'a[0]' is i64 where f32 is needed.
      Write f32(a[0]).
    halves: K209: 'atomicAdd' does not work on f16.
      It works on i32, u32, u64, f32, f64."
  `);
});
