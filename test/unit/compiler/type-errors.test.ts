// Every error code of the type rules (K2xx), with its message and hint.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { bool, f32, f64, i32, u32, u8 } from '../../../src/core/elements/dtype.js';
import { inout, input, output, type Params } from '../../../src/core/kernels/kernel.js';
import { complaint, withoutPositions, withText } from './support.js';

withoutPositions();

const params = { x: inout(f32), d: inout(f64), n: inout(i32), u: inout(u32), a: input(f32, 2), flag: bool } as const;
/** Compiles an invalid body that the TypeScript types would also reject, or that is easier to read loosely typed. */
function refused(body: (p: never, t: never) => void, own: Params = params): string {
  return complaint(() => kernel('k', own, body as never));
}

test('K201 booleans and numbers do not mix', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ x, flag }, { i }) => {
        x[i] = 1 + (flag as never as number);
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K201: '1 + flag' calculates with bool.
      Write i32(condition), or choose with ?: ."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x, flag }, { i }) => {
        x[i] = flag as never;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K201: 'flag' is bool where f32 is needed.
      Write f32(flag), or choose with ?: ."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        if (x[i] as never) x[i] = 1;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K201: 'x[i]' is f32 where a condition is needed.
      Compare it: x[i] !== 0."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        x[i] = x[i]! & 1;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K201: '&' needs integers, and 'x[i]' is f32.
      Write (x[i] | 0), which wraps as in JavaScript."
  `);
});

test('K204 i32 and u32 do not mix', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ n, u }, { i }) => {
        u[i] = n[i]! + u[i]!;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K204: 'n[i] + u[i]' mixes i32 and u32.
      Cast one side: i32(...) or u32(...)."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ n, u }, { i }) => {
        u[i] = n[i]!;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K204: 'n[i]' is i32 where u32 is needed.
      Write u32(n[i])."
  `);
});

test('K205 division of integers', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ n }, { i }) => {
        n[i] = n[i]! / 2;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K205: '/' on two integers is ambiguous: JavaScript gives a fraction, CUDA truncates.
      Write idiv(n[i], 2) to truncate or f32(n[i]) / 2 for a fraction."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ n }, { i }) => {
        n[i]! /= 2;
      }),
    ),
  ).toMatch(/^K205/);
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        let h = 0;
        h++;
        x[i] = h / 2;
      }),
    ),
  ).toMatch(/^K205/);
});

test('K206, K207 conversions that would lose a fraction or precision', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ x, n }, { i }) => {
        n[i] = x[i]!;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K206: 'x[i]' is f32 where i32 is needed, and would lose its fraction.
      Write i32(x[i]) to truncate."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        x[i * 0.5] = 1;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K206: 'i * .5' is f32 where i32 is needed, and would lose its fraction.
      Write i32(i * .5) to truncate."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x, d }, { i }) => {
        x[i] = d[i]!;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K207: 'd[i]' is f64 where f32 is needed, and would lose precision.
      Write f32(d[i])."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ n }, { i, idiv }) => {
        n[i] = idiv(n[i]!, 0.5);
      }),
    ),
  ).toMatchInlineSnapshot(`"K206: 'idiv' divides integers, and '.5' is a fraction."`);
});

test('K208 a variable that only some paths assign', () => {
  const made = (statements: string): unknown => {
    const body = `({ x, y }, { i }) => { let v; ${statements} y[i] = v; }`;
    return kernel('k', { x: input(f32), y: output(f32) }, new Function(`return (${body});`)() as never);
  };
  const missing = [
    'if (x[i] > 0) v = 1;',
    'if (x[i] > 0) { if (x[i] > 1) v = 1; } else v = 2;',
    'x[i] > 0 && (v = 1);',
    'for (let k = 0; k < 3; k++) v = k;',
    'while (x[i] > 0) { v = 1; break; }',
    'do { if (x[i] > 0) break; v = 1; } while (x[i] > 2);',
    'for (let k = 0; k < 3; k++) { if (k > 1) continue; v = k; } if (x[i] > 0) v = 1;',
  ];
  for (const text of missing) expect(() => made(text), text).toThrow(/^K208: 'v' is read[^]*let v = 0/);
  const given = [
    'v = 1;',
    'if (x[i] > 0) v = 1; else v = 2;',
    'if (x[i] > 0) v = 1; else return;',
    'if (x[i] > 0) { if (x[i] > 1) v = 1; else v = 3; } else v = 2;',
    'x[i] > 0 ? (v = 1) : (v = 2);',
    'for (let k = 0; k < 3; k++) v = k; v = 1;',
  ];
  for (const text of given) expect(() => made(text), text).not.toThrow();
});

test('K208 a variable that is read before it has a value', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        let v;
        x[i] = v!;
        v = x[i]!;
        v = 2;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K208: 'v' is read before a value was assigned to it.
      Initialize it where it is declared: let v = 0. A value that only some branches or loops assign may be missing."
  `);
});

test('K209 atomics on unsupported types', () => {
  expect(
    complaint(() =>
      kernel('k', { b: inout(u8) }, ({ b }, { i, atomicAdd }) => {
        atomicAdd(b as never, i, 1);
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K209: 'atomicAdd' does not work on u8.
      It works on i32, u32, u64, f32, f64."
  `);
});

test('K210 arrays used with the wrong number of dimensions', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ x, a }, { i }) => {
        x[i] = a[i] as never;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K210: 'a[i]' is an array of 1 dimension, not a number.
      Index every dimension."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        x[i] = (x as never as number[][])[i]![i]!;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K210: 'x[i]' is a number, not an array.
      'x' has 1 dimension."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x, a }, { i }) => {
        x[i] = a.length;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K210: 'length' of an array of 2 dimensions could mean its rows or all its elements.
      Write shape[0], or the product of all dimensions."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x, a }, { i }) => {
        // @ts-expect-error TypeScript knows the number of dimensions, too.
        x[i] = a.shape[2];
      }),
    ),
  ).toMatchInlineSnapshot(`"K210: 'a.shape[2]': a shape is indexed by a constant from 0 to 1."`);
  expect(
    complaint(() =>
      kernel('k', params, ({ x, a }, { i }) => {
        x[i] = a.at(i);
      }),
    ),
  ).toMatchInlineSnapshot(`"K212: 'a.at' takes 2 arguments, not 1."`);
});

test('K211 a kernel cannot write inputs', () => {
  expect(refused(withText('({ a }) => { a[0][0] = 1; }'))).toMatchInlineSnapshot(`
    "K211: 'a' is an input, which a kernel only reads.
      Declare it as output(...) or inout(...)."
  `);
  expect(refused(withText('({ v }, { atomicAdd }) => { atomicAdd(v, 0, 1); }'), { v: input(f32) })).toMatchInlineSnapshot(`
    "K211: 'v' is an input, which a kernel only reads.
      Declare it as inout(...)."
  `);
});
