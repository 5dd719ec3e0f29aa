// The kernel language's replacements for JavaScript functions: every hint is source that compiles.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, i32, i64, u32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { complaint, withoutPositions, withText } from './support.js';

withoutPositions();

const params = { x: inout(f32), n: inout(i32), u: inout(u32), big: inout(i64) } as const;
const make = (body: string): unknown => kernel('k', params, withText(`({ x, n, u, big }, { i, i32, u32, i64, f32 }) => { ${body} }`));
const told = (body: string): string => complaint(() => make(body));

test('functions of JavaScript', () => {
  expect(told('n[i] = isNaN(x[i]) ? 1 : 0;')).toBe("K101: 'isNaN' is not known inside the kernel.\n  Write v !== v.");
  expect(told('n[i] = Number.isFinite(x[i]) ? 1 : 0;')).toContain('Write Math.abs(v) < Infinity.');
  make('n[i] = x[i] !== x[i] ? 1 : Math.abs(x[i]) < Infinity ? 2 : 3;');
  expect(told('x[i] = Math.random();')).toContain('rng(seed, sequence)');
  expect(told('x[i] = Math.EPSILON;')).toBe("K101: 'Math.EPSILON' is not part of the kernel language.");
  expect(told('console.log(x[i]);')).toContain('Write print(...).');
  expect(told('n[i] = undefined;')).toContain('Every value of a kernel is a number or a boolean.');
  expect(told('n[i] = Math.constructor;')).toBe("K101: 'Math.constructor' is not part of the kernel language.");
  expect(told('n[i] = constructor;')).toContain('{ constants: { constructor } }');
});

test('numbers as conditions, and names from outside', () => {
  expect(told('if (!x[i]) x[i] = 1;')).toContain('Compare it: x[i] === 0.');
  expect(told('if (!!x[i]) x[i] = 1;')).toContain('Compare it: x[i] === 0.');
  expect(told('while (x[i]) x[i] = 1;')).toContain('Compare it: x[i] !== 0.');
  const remedy = 'Give a number as an option, { constants: { factor } }, a helper as { functions: { factor } }, and take factor from the';
  expect(told('x[i] = factor;')).toContain(`${remedy} second parameter of the body.`);
  expect(told('x[i] = own.factor;')).toContain('{ constants: { factor: own.factor } }');
  expect(told('x[i] = table[0];')).toBe("K101: 'table' is not known inside the kernel.\n  Pass an array as a parameter of the kernel.");
});

test('syntax of JavaScript', () => {
  expect(told('const a = [1, 2];')).toContain('Declare local(type, size), and assign the elements.');
  expect(told('const f = function (v) { return v; };')).toContain('func(...)');
  expect(told('x[i] = x?.[i];')).toBe("K301: '?.' is not part of the kernel language: no value of a kernel is undefined.");
});

test('the message says that an integer is too large', () => {
  expect(told('n[i] = 5000000000;')).toBe(
    'K206: 5000000000 does not fit i32.\n  i32 has 32 bits. Write a larger number as f64(...), or as i64 with the suffix n.',
  );
  expect(told('u[i] = -5000000000;')).toContain('-5000000000 does not fit u32.');
  make('big[i] = 5000000000n;');
});

test('the hint for a compound assignment casts the result', () => {
  expect(told('n[i] >>>= 3;')).toContain('Write n[i] = i32(n[i] >>> 3).');
  expect(told('n[i] *= 1.5;')).toContain('Write n[i] = i32(n[i] * 1.5) to truncate.');
  make('n[i] = i32(n[i] >>> 3); n[i] = i32(n[i] * 1.5);');
});
