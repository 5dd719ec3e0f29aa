// Errors of vectors and bit functions.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, i32, u32, u8 } from '../../../src/core/elements/dtype.js';
import { inout, input } from '../../../src/core/kernels/kernel.js';
import { irOf, irText } from './ir-text.js';
import { complaint, withoutPositions, withText } from './support.js';

withoutPositions();

const params = { p: inout(f32, 2), n: inout(i32), u: inout(u32), image: input(u8, 2) } as const;
function refused(text: string): string {
  return complaint(() => kernel('k', params, withText(text)));
}

test('K213 vectors and numbers', () => {
  const vectors = '({ p, n, u, image }, { i, vec2f, vec3f, vec3i, add, dot, cross, length, normalize, mix, atomicAdd }) => {';
  const complaints: Record<string, string> = {};
  for (const [name, line] of Object.entries({
    number: 'const v = vec3f(1, 2, 3); p[0][0] = v;',
    operator: 'const v = vec3f(1, 2, 3); p[0][0] = (v + 1);',
    update: 'let v = vec3f(1); v += 1;',
    notVector: 'p.set(0, add(vec3f(1), p[0][0]));',
    array: 'p.set(0, add(p[0], p[1]));',
    kinds: 'p.set(0, add(vec3f(1), vec3i(1)));',
    lengths: 'p.set(0, add(vec3f(1), vec2f(1)));',
    assigned: 'let v = vec3f(1); v = vec2f(1);',
    assignedNumber: 'let v = vec3f(1); v = 1;',
    crossed: 'p.set(0, cross(vec2f(1), vec2f(2)));',
    whole: 'p[0][0] = length(vec3i(1));',
    longer: 'p.set(0, vec3f(vec2f(1)));',
    arms: 'p.set(0, i > 1 ? vec2f(1) : 2);',
    atomicArm: 'p.set(0, i > 1 ? vec2f(atomicAdd(n, 0, 1)) : vec2f(1));',
    member: 'const v = vec2f(1); p[0][0] = v.z;',
    size: 'const v = vec2f(1); p[0][0] = v.length;',
    constant: 'const v = vec2f(1); v = vec2f(2);',
    part: 'let v = vec2f(1); v.x = 2;',
    fewer: 'const v = vec3f(1, 2);',
    fraction: 'const v = vec3i(1, 2.5, p[0][0]);',
    stored: 'n.set(vec2f(1));',
    input: 'image.set(0, vec3i(1));',
    indices: 'p.set(vec2f(1));',
  }))
    complaints[name] = refused(`${vectors} ${line} }`);
  expect(
    Object.entries(complaints)
      .map(([name, said]) => `${name}: ${said}`)
      .join('\n'),
  ).toMatchInlineSnapshot(`
    "number: K213: 'v' is a vec3f where a number is needed.
      Take a member of it, or calculate with add, sub, mul, scale and dot.
    operator: K213: 'v' is a vec3f where a number is needed.
      Take a member of it, or calculate with add, sub, mul, scale and dot.
    update: K213: 'v += 1': vectors have no operators.
      Write v = add(v, w).
    notVector: K213: 'p[0][0]' is a number where a vector is needed.
      Make one: vec3f(x, y, z), or vec3f(row) of an array.
    array: K213: 'p[0]' is an array where a vector is needed.
      Make one: vec3f(x, y, z), or vec3f(row) of an array.
    kinds: K213: 'add(vec3f(1), vec3i(1))' mixes vec3f and vec3i.
      Convert one: vec3f(...).
    lengths: K213: 'add(vec3f(1), vec2f(1))' mixes vec3f and vec2f.
    assigned: K213: 'v = vec2f(1)' mixes vec3f and vec2f.
    assignedNumber: K213: '1' is a number where a vector is needed.
      Make one: vec3f(x, y, z), or vec3f(row) of an array.
    crossed: K213: 'cross(vec2f(1), vec2f(2))' has operands of type vec2f, but a cross product takes three components.
    whole: K213: 'length' takes vectors of f32 or f64, and 'vec3i(1)' is a vec3i.
      Convert it: vec3f(...).
    longer: K213: 'vec2f(1)' is a vec2f, and vec3f has 3 components.
    arms: K213: '2' is a number where a vector is needed.
      Make one: vec3f(x, y, z), or vec3f(row) of an array.
    atomicArm: K301: 'i > 1 ? vec2f(atomicAdd(n, 0, 1)) : v...' chooses between vectors, and one of them contains an atomic or a random number.
      Write an if, or assign the number to a variable first.
    member: K101: 'v.z' does not exist in a vec2f.
      The members are x, y.
    size: K101: 'v.length' does not exist in a vec2f.
      Write length(v). The members are x, y.
    constant: K104: 'v' cannot be assigned to: it is a constant or a parameter.
      Copy it into a let first.
    part: K104: 'v.x' cannot be assigned to: a vector is a value.
      Assign a new vector: v = vec2f(2, v.y).
    fewer: K212: 'vec3f' takes 3 arguments or one, not 2.
    fraction: K206: '2.5' is a fraction where i32 is needed, and would lose its fraction.
      Write i32(2.5) to truncate.
    stored: K213: 'vec2f(1)' is a vec2f, and 'n' holds i32.
      Convert it: vec3i(...).
    input: K211: 'image' is an input, which a kernel only reads.
      Declare it as output(...) or inout(...).
    indices: K212: 'p.set' takes 2 arguments, not 1."
  `);
});

test('bits of numbers, and functions that round once', () => {
  const ir = irOf({ x: inout(f32), u: inout(u32), n: inout(i32) }, ({ x, u, n }, { i, rsqrt, fma, popcount, floatBits, bitsFloat }) => {
    x[i] = rsqrt(x[i]!) + fma(x[i]!, 2, n[i]!) + bitsFloat(u[i]!) + rsqrt(4);
    u[i] = floatBits(x[i]!);
    n[i] = popcount(u[i]!) + popcount(n[i]!) + popcount(-1);
    x[i] = Math.expm1(x[i]!) + Math.log1p(x[i]!) + Math.asinh(x[i]!) + Math.acosh(x[i]!) + Math.atanh(x[i]!);
  });
  expect(irText(ir)).toMatchInlineSnapshot(`
    "x[i] = (((rsqrt(x[i]) + fma(x[i], 2:f32, f32(n[i]))) + bitsFloat(u[i])) + 0.5:f32)
    u[i] = floatBits(x[i])
    n[i] = ((popcount(u[i]) + popcount(u32(n[i]))) + popcount(u32(-1)))
    x[i] = ((((expm1(x[i]) + log1p(x[i])) + asinh(x[i])) + acosh(x[i])) + atanh(x[i]))"
  `);
  expect(refused('({ p, n }, { popcount }) => { n[0] = popcount(p[0][0]); }')).toMatchInlineSnapshot(
    `"K206: 'popcount' takes integers, and 'p[0][0]' is f32."`,
  );
  expect(refused('({ p, n }, t) => { p[0][0] = Math.rsqrt(p[0][0]); }')).toBe("K101: 'Math.rsqrt' is not part of the kernel language.");
});
