// Random numbers: generators are local memory, and every draw is a separate step.
import { expect, test } from 'vitest';
import { func } from '../../../src/compiler/definitions/func.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, i32, u32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { irOf, irText } from './ir-text.js';
import { bodyOf, complaint, helpersOf, withoutPositions, withText } from './support.js';

withoutPositions();

const params = { x: inout(f32), u: inout(u32), seed: i32 } as const;
function refused(text: string): string {
  return complaint(() => kernel('k', params, withText(text)));
}

test('a generator is declared, and draws in source order', () => {
  const made = kernel(
    'draws',
    params,
    ({ x, u, seed }, { i, rng, vec2f }) => {
      const r = rng(seed, i);
      x[i] = r.uniform() - r.uniform() * x[i]!;
      u[i] = r.u32();
      r.normal();
      const v = vec2f(r.normal(), r.uniform());
      if (v.x > 0 && r.uniform() < 0.5) x[i] = v.y;
      while (r.uniform() < 0.25) u[i] = u[i]! + 1;
    },
    { bounds: 'unchecked' },
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "unsigned r_[7];
    mr_random_seed(r_, (unsigned)seed_, (unsigned)mr_i);
    const float mr_t1 = mr_random_uniform(r_);
    const float mr_t2 = mr_random_uniform(r_);
    const float mr_t3 = x_[mr_i];
    x_[mr_i] = mr_t1 - (mr_t2 * mr_t3);
    const unsigned mr_t4 = mr_random_u32(r_);
    u_[mr_i] = mr_t4;
    mr_random_normal(r_);
    const float mr_t5 = mr_random_normal(r_);
    const float v_x_ = mr_t5;
    const float mr_t6 = mr_random_uniform(r_);
    const float v_y_ = mr_t6;
    bool mr_t8 = v_x_ > 0.0f;
    if (mr_t8) {
      const float mr_t7 = mr_random_uniform(r_);
      mr_t8 = mr_t7 < 0.5f;
    }
    if (mr_t8) {
      x_[mr_i] = v_y_;
    }
    while (true) {
      const float mr_t9 = mr_random_uniform(r_);
      if (!(mr_t9 < 0.25f)) break;
      u_[mr_i] = u_[mr_i] + 1u;
    }"
  `);
  expect(helpersOf(made)).toEqual(['mr_random_seed', 'mr_random_u32', 'mr_random_uniform', 'mr_random_normal']);
});

test('a generator in a loop restarts in each iteration; two generators are independent', () => {
  const ir = irOf(params, ({ x }, { i, rng }) => {
    for (let n = 0; n < 4; n++) {
      const a = rng(7, n);
      const b = rng(0xffff_ffff, i);
      const twice = (v: number): number => v + v;
      x[n] = twice(a.uniform()) + Math.floor(b.normal());
    }
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "local a #3: u32[7]
    local b #4: u32[7]
    loop before (n < 4)
      init let n: i32 = 0
      a.seed(u32(7), u32(n))
      b.seed(4294967295:u32, u32(i))
      x[n] = ({v = a.uniform(); (v + v)} + floor(b.normal()))
      then n = (n + 1)"
  `);
});

test('a variable that counts down stays signed after a cast', () => {
  const ir = irOf(params, ({ x, u }, { rng, u32: whole }) => {
    for (let n = 3; n >= 0; n--) {
      const r = rng(1, n);
      u[n] = whole(n) + whole(Math.clz32(n));
      x[n] = r.uniform();
    }
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "local r #3: u32[7]
    loop before (n >= 0)
      init let n: i32 = 3
      r.seed(u32(1), u32(n))
      u[n] = (u32(n) + u32(clz32(u32(n))))
      x[n] = r.uniform()
      then n = (n - 1)"
  `);
});

test('a generator is not a value', () => {
  expect(refused('({ x }, { rng }) => { x[0] = rng(1, 2).uniform(); }')).toMatchInlineSnapshot(`
    "K402: 'rng' is used outside of a declaration.
      Declare a name for it: const random = rng(seed, i);"
  `);
  expect(refused('({ x }, { rng }) => { const r = rng(1, 2); x[0] = r.random(); }')).toMatchInlineSnapshot(`
    "K101: 'r.random' does not exist.
      A generator has uniform, normal, u32."
  `);
  expect(refused('({ x }, { rng }) => { const r = rng(1, 2); x[0] = r; }')).toMatchInlineSnapshot(`"K201: 'r' is not a value."`);
  expect(refused('({ x }, { rng }) => { const r = rng(x[0], 2); }')).toMatchInlineSnapshot(
    `"K206: 'rng' takes whole numbers, and 'x[0]' is f32."`,
  );
  expect(refused('({ x }, { rng }) => { const r = rng(1); }')).toBe("K212: 'rng' takes 2 arguments, not 1.");
  expect(refused('({ x }, { rng }) => { const r = rng(1, 2); x[0] = r.uniform(3); }')).toBe("K212: 'r.uniform' takes 0 arguments, not 1.");
  expect(refused('({ x }, { rng }) => { let r = rng(1, 2); r = rng(1, 3); }')).toMatch(/^K104: 'r' cannot be assigned to/);
  expect(complaint(() => func([f32], f32, withText('(v) => { const r = rng(1, 2); return r.uniform(); }')))).toMatchInlineSnapshot(`
    "K302: 'rng' is used in a helper.
      Draw the numbers in the kernel and pass them to the helper."
  `);
});
