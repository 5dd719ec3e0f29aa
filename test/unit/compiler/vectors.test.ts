// Vectors: each component is computed once, in order.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, i32, u8 } from '../../../src/core/elements/dtype.js';
import { inout, input } from '../../../src/core/kernels/kernel.js';
import { irOf, irText } from './ir-text.js';
import { withText } from './support.js';

const params = { p: inout(f32, 2), n: inout(i32), image: input(u8, 2) } as const;

test('vectors are made of components, of one number, of a row, and of another vector', () => {
  const ir = irOf(params, ({ p, image, n }, { i, vec3f, vec2i, vec3u, vec4d, vec3i, popcount, f32: single }) => {
    const a = vec3f(i, p[i]![0]!, 2);
    const b = vec3f(p[n[i]!]!);
    const c = vec3i(image[i]!);
    const d = vec3f(c);
    const e = vec2i(n[0]! + 1);
    const f = vec4d(1);
    const g = vec3u(b);
    p.set(0, a);
    p[1]!.set(b);
    p.set(n[2]!, d);
    n[3] = e.x + e.y + popcount(g.z);
    p[4]![0] = single(f.w);
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "const a_x: f32 = f32(i)
    const a_y: f32 = p[i, 0]
    const at: i32 = n[i]
    const b_x: f32 = p[at, 0]
    const b_y: f32 = p[at, 1]
    const b_z: f32 = p[at, 2]
    const c_x: i32 = image[i, 0]
    const c_y: i32 = image[i, 1]
    const c_z: i32 = image[i, 2]
    const d_x: f32 = f32(c_x)
    const d_y: f32 = f32(c_y)
    const d_z: f32 = f32(c_z)
    const all: i32 = (n[0] + 1)
    const g_x: u32 = u32(b_x)
    const g_y: u32 = u32(b_y)
    const g_z: u32 = u32(b_z)
    p[0, 0] = a_x
    p[0, 1] = a_y
    p[0, 2] = 2:f32
    p[1, 0] = b_x
    p[1, 1] = b_y
    p[1, 2] = b_z
    const at: i32 = n[2]
    p[at, 0] = d_x
    p[at, 1] = d_y
    p[at, 2] = d_z
    n[3] = ((all + all) + popcount(g_z))
    p[4, 0] = f32(1:f64)"
  `);
});

test('mul, min, max, clamp and mix work on each component, and a number serves all of them', () => {
  const ir = irOf(params, ({ p, n }, { i, vec2f, vec2i, mul, min, max, clamp, mix }) => {
    const a = vec2f(p[i]!);
    p.set(0, clamp(max(a, min(a, vec2f(1, 2), 3)), 0, p[i]![1]!));
    p.set(1, mix(mul(a, a), vec2f(0), 0.25));
    n[0] = max(vec2i(i, 2), 7).x;
    n[1] = min(i, 3);
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "const a_x: f32 = p[i, 0]
    const a_y: f32 = p[i, 1]
    const all: f32 = p[i, 1]
    const part_x: f32 = clamp(max(a_x, min(min(a_x, 1:f32), 3:f32)), 0:f32, all)
    const part_y: f32 = clamp(max(a_y, min(min(a_y, 2:f32), 3:f32)), 0:f32, all)
    p[0, 0] = part_x
    p[0, 1] = part_y
    const part_x: f32 = mix((a_x * a_x), 0:f32, 0.25:f32)
    const part_y: f32 = mix((a_y * a_y), 0:f32, 0.25:f32)
    p[1, 0] = part_x
    p[1, 1] = part_y
    n[0] = max(i, 7)
    n[1] = min(i, 3)"
  `);
});

test('an assignment computes all components before it writes the first', () => {
  const ir = irOf(params, ({ p }, { vec3f, cross, vec2f }) => {
    let v = vec3f(p[0]!);
    const w = v;
    v = cross(v, w);
    let t = vec2f(1, 2);
    t = vec2f(t.y, t.x);
    p.set(1, v);
    p.set(2, t);
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "let v_x: f32 = p[0, 0]
    let v_y: f32 = p[0, 1]
    let v_z: f32 = p[0, 2]
    const w_x: f32 = v_x
    const w_y: f32 = v_y
    const w_z: f32 = v_z
    const next_y: f32 = ((v_z * w_x) - (v_x * w_z))
    const next_z: f32 = ((v_x * w_y) - (v_y * w_x))
    v_x = ((v_y * w_z) - (v_z * w_y))
    v_y = next_y
    v_z = next_z
    let t_x: f32 = 1:f32
    let t_y: f32 = 2:f32
    const next_y: f32 = t_x
    t_x = t_y
    t_y = next_y
    p[1, 0] = v_x
    p[1, 1] = v_y
    p[1, 2] = v_z
    p[2, 0] = t_x
    p[2, 1] = t_y"
  `);
});

test('a whole row is read before any of it is written', () => {
  const ir = irOf(params, ({ p }, { i, vec2f }) => {
    p.set(i, vec2f(p[i]![1]!, p[i]![0]!));
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "const part_x: f32 = p[i, 1]
    const part_y: f32 = p[i, 0]
    p[i, 0] = part_x
    p[i, 1] = part_y"
  `);
});

test('a choice evaluates one arm and its bindings', () => {
  const ir = irOf(params, ({ p }, { i, vec2f, normalize }) => {
    const a = vec2f(p[i]!);
    const b = p[i]![0]! > 1 ? normalize(a) : a;
    p.set(0, b);
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "const a_x: f32 = p[i, 0]
    const a_y: f32 = p[i, 1]
    const test: bool = (p[i, 0] > 1:f32)
    const b_x: f32 = (test ? {length = sqrt(((a_x * a_x) + (a_y * a_y))); {factor = ((length == 0:f32) ? 0:f32 : (1:f32 / length)); (a_x * factor)}} : a_x)
    const b_y: f32 = (test ? {length = sqrt(((a_x * a_x) + (a_y * a_y))); {factor = ((length == 0:f32) ? 0:f32 : (1:f32 / length)); (a_y * factor)}} : a_y)
    p[0, 0] = b_x
    p[0, 1] = b_y"
  `);
  const fixed = irOf(
    params,
    ({ p }, { vec2f, FLIP }) => {
      p.set(0, FLIP ? vec2f(1) : vec2f(2));
    },
    { FLIP: false },
  );
  expect(irText(fixed)).toBe('p[0, 0] = 2:f32\np[0, 1] = 2:f32');
});

test('the emitted source grows linearly with the number of choices', () => {
  const chain = Array.from({ length: 40 }, (_unused, n) => `i === ${n} ? normalize(vec3f(p[${n}])) : `).join('');
  const made = kernel('k', params, withText(`({ p }, { i, vec3f, normalize }) => { p.set(i, ${chain}vec3f(1)); }`));
  expect(made.source.length).toBeLessThan(400_000);
});

test('in conditions and local arrows vectors stay expressions', () => {
  const ir = irOf(params, ({ p }, { i, vec2f, vec3f, length, add, scale, normalize }) => {
    const along = (o: ReturnType<typeof vec3f>, d: ReturnType<typeof vec3f>, t: number) => add(o, scale(d, t));
    let v = vec2f(p[i]!);
    while (length(add(v, vec2f(p[0]!))) > 2) v = scale(v, 0.5);
    const q = along(vec3f(p[1]!), normalize(vec3f(p[2]!)), v.x);
    p.set(3, q);
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "let v_x: f32 = p[i, 0]
    let v_y: f32 = p[i, 1]
    loop before ({v_x = (v_x + p[0, 0]); {v_y = (v_y + p[0, 1]); sqrt(((v_x * v_x) + (v_y * v_y)))}} > 2:f32)
      v_x = (v_x * 0.5:f32)
      v_y = (v_y * 0.5:f32)
    const o_x: f32 = p[1, 0]
    const o_y: f32 = p[1, 1]
    const o_z: f32 = p[1, 2]
    const v_x: f32 = p[2, 0]
    const v_y: f32 = p[2, 1]
    const v_z: f32 = p[2, 2]
    const length: f32 = sqrt((((v_x * v_x) + (v_y * v_y)) + (v_z * v_z)))
    const factor: f32 = ((length == 0:f32) ? 0:f32 : (1:f32 / length))
    const d_x: f32 = (v_x * factor)
    const d_y: f32 = (v_y * factor)
    const d_z: f32 = (v_z * factor)
    const t: f32 = v_x
    const q_x: f32 = (o_x + (d_x * t))
    const q_y: f32 = (o_y + (d_y * t))
    const q_z: f32 = (o_z + (d_z * t))
    p[3, 0] = q_x
    p[3, 1] = q_y
    p[3, 2] = q_z"
  `);
});

test('an atomic among the components runs once, even where its component is not used', () => {
  const ir = irOf(params, ({ n, p }, { vec2i, add, atomicAdd }) => {
    const v = vec2i(atomicAdd(n, 0, 1), 2);
    n[1] = add(v, v).y;
    n[2] = vec2i(atomicAdd(n, 0, 1), n[3]!).y;
    p[0]![0] = n[0]!;
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "const v_x: i32 = atomic add n[0](1)
    n[1] = (2 + 2)
    n[2] = {v_x = atomic add n[0](1); {v_y = n[3]; v_y}}
    p[0, 0] = f32(n[0])"
  `);
});

test('loads stay before the atomics and random draws that follow them', () => {
  const ir = irOf(params, ({ n, p }, { i, vec2i, vec2f, add, scale, max, atomicAdd, rng, print }) => {
    const r = rng(1, i);
    const a = vec2i(n[0]!, atomicAdd(n, 0, 1));
    n.set(add(vec2i(n[1]!, 2), vec2i(atomicAdd(n, 1, 1), 3)));
    p.set(0, scale(vec2f(p[0]!), r.uniform()));
    n.set(max(vec2i(n[2]!, 0), atomicAdd(n, 2, 1)));
    print(n[5]!, r.u32(), vec2f(r.normal(), 1), a);
    print(n[6]!, atomicAdd(n, 6, 1));
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "local r #3: u32[7]
    r.seed(u32(1), u32(i))
    const v_x: i32 = n[0]
    const v_y: i32 = atomic add n[0](1)
    const v_x: i32 = n[1]
    const v_x: i32 = atomic add n[1](1)
    const part_x: i32 = (v_x + v_x)
    const part_y: i32 = (2 + 3)
    n[0] = part_x
    n[1] = part_y
    const v_x: f32 = p[0, 0]
    const v_y: f32 = p[0, 1]
    const factor: f32 = r.uniform()
    const part_x: f32 = (v_x * factor)
    const part_y: f32 = (v_y * factor)
    p[0, 0] = part_x
    p[0, 1] = part_y
    const v_x: i32 = n[2]
    const all: i32 = atomic add n[2](1)
    const part_x: i32 = max(v_x, all)
    const part_y: i32 = max(0, all)
    n[0] = part_x
    n[1] = part_y
    const part: i32 = n[5]
    const part: u32 = r.u32()
    const v_x: f32 = r.normal()
    print part " " part " (" v_x ", " 1:f32 ") (" v_x ", " v_y ")"
    const part: i32 = n[6]
    const part: i32 = atomic add n[6](1)
    print part " " part"
  `);
});

test('print writes the components', () => {
  const ir = irOf(params, ({ p }, { vec2f, print }) => {
    print('at', vec2f(p[0]!), vec2f(1, 0.5));
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "const part_x: f32 = p[0, 0]
    const part_y: f32 = p[0, 1]
    print "at (" part_x ", " part_y ") (" 1:f32 ", " 0.5:f32 ")""
  `);
});
