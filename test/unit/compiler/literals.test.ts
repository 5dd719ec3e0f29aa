// Literals are untyped and take the type of the other operand.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, f64, i32, u32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { bodyOf, complaint, withoutPositions, withText } from './support.js';

withoutPositions();

const params = { x: inout(f32), d: inout(f64), n: inout(i32), u: inout(u32) } as const;
const open = { bounds: 'unchecked' } as const;

test('a literal takes the type of the other side', () => {
  expect(
    bodyOf(
      kernel(
        'k',
        params,
        ({ x, d, n, u }, { i }) => {
          x[i] = x[i]! * 2 + 0.1;
          d[i] = d[i]! * 0.1 + 1e300;
          n[i] = n[i]! + 1;
          u[i] = u[i]! + 4294967295;
          x[i] = n[i]! * 0.5;
        },
        open,
      ),
    ),
  ).toMatchInlineSnapshot(`
    "x_[mr_i] = (x_[mr_i] * 2.0f) + 0.1f;
    d_[mr_i] = (d_[mr_i] * 0.1) + 1e+300;
    n_[mr_i] = (int)((unsigned)n_[mr_i] + (unsigned)1);
    u_[mr_i] = u_[mr_i] + 4294967295u;
    x_[mr_i] = (float)n_[mr_i] * 0.5f;"
  `);
});

test('literals alone fold in double precision', () => {
  expect(
    bodyOf(
      kernel(
        'k',
        params,
        ({ x, d, n }, { i }) => {
          d[i] = 1 / 3;
          x[i] = 2 ** 0.5 + Math.max(1, 2);
          n[i] = (7 % 4) + (5 & 4) - -3;
        },
        open,
      ),
    ),
  ).toMatchInlineSnapshot(`
    "d_[mr_i] = 0.3333333333333333;
    x_[mr_i] = 3.4142137f;
    n_[mr_i] = 10;"
  `);
});

test('a const keeps a literal untyped', () => {
  expect(
    bodyOf(
      kernel(
        'k',
        params,
        ({ x, d, n }, { i }) => {
          const third = 1 / 3,
            two = 2;
          x[i] = third;
          d[i] = third;
          n[i] = two;
          x[i] = two;
        },
        open,
      ),
    ),
  ).toMatchInlineSnapshot(`
    "x_[mr_i] = 0.33333334f;
    d_[mr_i] = 0.3333333333333333;
    n_[mr_i] = 2;
    x_[mr_i] = 2.0f;"
  `);
});

test('a let takes the type of the first typed value assigned to it, anywhere in the source', () => {
  expect(
    bodyOf(
      kernel(
        'k',
        params,
        ({ x, d, n, u }, { i }) => {
          let s = 0,
            wide = 0,
            count = 0,
            bits = 0,
            half = 0,
            chained = 0,
            later;
          for (let k = 0; k < 4; k++) {
            s += x[k]!;
            count++;
          }
          wide = wide + d[i]!;
          bits = u[i]!;
          half += 0.5;
          chained = s;
          later = n[i]!;
          later++;
          x[i] = s + half + chained;
          d[i] = wide;
          n[i] = count + later;
          u[i] = bits;
        },
        open,
      ),
    ),
  ).toMatchInlineSnapshot(`
    "float s_ = 0.0f;
    double wide_ = 0.0;
    int count_ = 0;
    unsigned bits_ = 0u;
    float half_ = 0.0f;
    float chained_ = 0.0f;
    int later_ = 0;
    for (int k_ = 0; k_ < 4; k_ = k_ + 1) {
      s_ = s_ + x_[k_];
      count_ = (int)((unsigned)count_ + (unsigned)1);
    }
    wide_ = wide_ + d_[mr_i];
    bits_ = u_[mr_i];
    half_ = half_ + 0.5f;
    chained_ = s_;
    later_ = n_[mr_i];
    later_ = (int)((unsigned)later_ + (unsigned)1);
    x_[mr_i] = (s_ + half_) + chained_;
    d_[mr_i] = wide_;
    n_[mr_i] = (int)((unsigned)count_ + (unsigned)later_);
    u_[mr_i] = bits_;"
  `);
});

test('a counter beside a u32 is a u32', () => {
  expect(
    bodyOf(
      kernel(
        'k',
        { ...params, steps: u32 },
        ({ x, steps }, { i }) => {
          for (let t = 0; t < steps; t++) x[i]! += t;
        },
        open,
      ),
    ),
  ).toMatchInlineSnapshot(`
    "for (unsigned t_ = 0u; t_ < steps_; t_ = t_ + 1u) {
      x_[mr_i] = x_[mr_i] + (float)t_;
    }"
  `);
});

test('a counter in a bit operation, an index or a shift stays an i32', () => {
  const made = kernel(
    'k',
    params,
    ({ x, n, u }, { i, popcount }) => {
      for (let k = 0; k < n[i]!; k++) u[k] = k >>> 30;
      for (let k = 0; k < 9; k++) {
        u[k] = (n[0]! << k) >>> 0;
        n[i] = popcount(k) + k;
      }
      let left = 8;
      while (left) left >>>= 1;
      for (let k = 0; k < 9; k++) x[k] = 1;
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "for (int k_ = 0; k_ < n_[mr_i]; k_ = k_ + 1) {
      u_[k_] = (unsigned)k_ >> 30;
    }
    for (int k_2_ = 0; k_2_ < 9; k_2_ = k_2_ + 1) {
      u_[k_2_] = (unsigned)(int)((unsigned)n_[0] << (k_2_ & 31));
      n_[mr_i] = (int)((unsigned)__popc((unsigned)k_2_) + (unsigned)k_2_);
    }
    unsigned left_ = 8u;
    while (left_ != 0u) {
      left_ = left_ >> 1;
    }
    for (int k_3_ = 0; k_3_ < 9; k_3_ = k_3_ + 1) {
      x_[k_3_] = 1.0f;
    }"
  `);
});

test('a counter has the type that it is combined with first, and the error names that place', () => {
  const told = (text: string): string => complaint(() => kernel('k', { ...params, steps: u32, most: i32 }, withText(text), open));
  expect(told('({ u, most }) => { for (let k = 0; k < most; k++) u[k] = k; }')).toBe(
    "K204: 'k' is i32 where u32 is needed.\n  Write u32(k).",
  );
  expect(told('({ n, steps }) => { for (let k = 0; k < steps; k++) n[k] = k; }')).toBe(
    "K204: 'k' is u32 where i32 is needed.\n  Write i32(k).",
  );
  const put = kernel('k', params, withText('({ u }) => { for (let k = 0; k < 9; k++) { u[k + 1] = u[k] >> k; u[k] = k; } }'), open);
  expect(bodyOf(put)).toContain('for (unsigned k_ = 0u; k_ < 9u; k_ = k_ + 1u) {');
});

test('a choice between literals takes the type that its context needs', () => {
  expect(
    bodyOf(
      kernel(
        'k',
        params,
        ({ x, d, u }, { i }) => {
          x[i] = i > 2 ? 1 : 0;
          d[i] = i > 2 ? 0.1 : 0;
          u[i] = i > 2 ? 1 : 0;
        },
        open,
      ),
    ),
  ).toMatchInlineSnapshot(`
    "x_[mr_i] = (mr_i > 2) ? 1.0f : 0.0f;
    d_[mr_i] = (mr_i > 2) ? 0.1 : 0.0;
    u_[mr_i] = (mr_i > 2) ? 1u : 0u;"
  `);
});

test('a value computed from an untyped let stays untyped until that has a type', () => {
  expect(
    bodyOf(
      kernel(
        'k',
        params,
        ({ d, u }, { i, idiv }) => {
          let h = 0,
            s = 0,
            r = 0;
          for (let k = 0; k < 4; k++) {
            const before = h,
              twice = (v: number): number => v + v;
            u[k] = before + idiv(h, 3) + twice(h) + (h << 2) + (h & 1);
            r = Math.sqrt(s) + s ** 0.5 + (s > 2 ? s : 1);
            h = u[k + 1]!;
            s += d[k]!;
          }
          d[i] = r;
        },
        open,
      ),
    ),
  ).toMatchInlineSnapshot(`
    "unsigned h_ = 0u;
    double s_ = 0.0;
    double r_ = 0.0;
    for (int k_ = 0; k_ < 4; k_ = k_ + 1) {
      const unsigned before_ = h_;
      const unsigned v_ = h_;
      u_[k_] = (((before_ + (h_ / 3u)) + (v_ + v_)) + (h_ << 2)) + (h_ & 1u);
      r_ = (sqrt(s_) + pow(s_, 0.5)) + ((s_ > 2.0) ? s_ : 1.0);
      h_ = u_[k_ + 1];
      s_ = s_ + d_[k_];
    }
    d_[mr_i] = r_;"
  `);
});

test('for two typed values that do not convert, the error names both places', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ x, n }, { i }) => {
        let s = 0;
        s = n[i]!;
        s += x[i]!;
        x[i] = s;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K203: 's' is f32 here, but i32 in 's = n[i]' (line 3 of the function).
      Cast one of the two, or initialize 's' with the wanted type: let s = f32(0)."
  `);
});

test('literals out of range are rejected', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ n }, { i }) => {
        n[i] = 3000000000;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K206: 3000000000 does not fit i32.
      The largest i32 is 2147483647. Use u32(...) for larger numbers."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ u }, { i }) => {
        u[i] = -1;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K206: -1 does not fit u32.
      The smallest u32 is 0. Use i32(...) for negative numbers."
  `);
});

test('floats are emitted with the fewest digits, and special values without a header', () => {
  expect(
    bodyOf(
      kernel(
        'k',
        params,
        ({ x, d }, { i }) => {
          x[i] = 1e-3;
          x[i] = 16777216;
          x[i] = -0;
          x[i] = 3.4028234663852886e38;
          x[i] = Infinity;
          d[i] = -Infinity;
          x[i] = NaN;
          d[i] = 1e21;
        },
        open,
      ),
    ),
  ).toMatchInlineSnapshot(`
    "x_[mr_i] = 0.001f;
    x_[mr_i] = 16777216.0f;
    x_[mr_i] = -0.0f;
    x_[mr_i] = 3.4028234663852886e+38f;
    x_[mr_i] = mr_infinity();
    d_[mr_i] = -mr_infinity();
    x_[mr_i] = mr_nan();
    d_[mr_i] = 1e+21;"
  `);
});
