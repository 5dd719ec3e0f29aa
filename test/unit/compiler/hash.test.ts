// Changes that make a different kernel, and changes that do not.
import { expect, test } from 'vitest';
import { canonical, irHash } from '../../../src/compiler/ir/hash.js';
import type { ArrayRef, KernelIr, Stmt, Variable } from '../../../src/compiler/ir/ir.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { lowerKernel } from '../../../src/compiler/lowering/lower.js';
import { parseFunction } from '../../../src/compiler/source/parse.js';
import { f32, i32, u64 } from '../../../src/core/elements/dtype.js';
import { inout, input, type Params } from '../../../src/core/kernels/kernel.js';
import { withText } from './support.js';

const params = { x: inout(f32), n: i32 } as const;
function irOf(text: string, own: Params = params): KernelIr {
  return lowerKernel('k', parseFunction(withText(text)), own, {}, new Map());
}
function identityOf(text: string, own: Params = params, options: object = {}): string {
  return kernel('k', own, withText(text), options).build.identity!;
}

const reference = '({ x, n }, { i }) => { let sum = 0.5; for (let d = 0; d < n; d++) sum += x[d]; x[i] = sum; }';

test('local names, layout and coverage counters do not change the hash', () => {
  const others = [
    '({x:e,n:t},{i:r})=>{let o=.5;for(let n=0;n<t;n++)o+=e[n];e[r]=o}',
    '({ x, n }, { i }) => { let d = 0.5; for (let sum = 0; sum < n; sum++) { d += x[sum]; } x[i] = d; }',
    '({ x, n }, { i }) => { cov_1().f[0]++; let v1 = (cov_1().s[0]++, 0.5); for (let v2 = 0; v2 < n; v2++) { cov_1().s[1]++; v1 += x[v2]; } x[i] = v1; }',
  ];
  for (const text of others) {
    expect(irHash(irOf(text))).toBe(irHash(irOf(reference)));
    expect(identityOf(text)).toBe(identityOf(reference));
    expect(kernel('k', params, withText(text)).source).not.toBe(kernel('k', params, withText(reference)).source);
  }
});

test('a different computation changes the hash', () => {
  const texts = [
    reference,
    reference.replace('0.5', '0.25'),
    reference.replace('0.5', 'NaN'),
    reference.replace('0.5', '-0.0'),
    reference.replace('0.5', '0.0'),
    reference.replace('0.5', 'Infinity'),
    reference.replace('0.5', '-Infinity'),
    reference.replace('+=', '-='),
    reference.replace('x[i] = sum', 'x[0] = sum'),
    reference.replace('d < n', 'd <= n'),
    // Which of two locals is meant.
    '({ x, n }, { i }) => { let a = n; let b = n + 1; a++; b++; x[i] = a; }',
    '({ x, n }, { i }) => { let a = n; let b = n + 1; a++; b++; x[i] = b; }',
  ];
  expect(new Set(texts.map((text) => irHash(irOf(text)))).size).toBe(texts.length);
  expect(new Set(texts.map((text) => identityOf(text))).size).toBe(texts.length);
});

test('different options of the kernel change the hash', () => {
  const own = { x: inout(f32), y: input(f32), n: i32 } as const;
  const swapped = { y: input(f32), x: inout(f32), n: i32 } as const;
  const identities = [
    identityOf(reference),
    identityOf(reference, own),
    identityOf(reference, swapped),
    identityOf(reference, params, { bounds: 'unchecked' }),
    identityOf(reference, params, { maxThreadsPerBlock: 64 }),
  ];
  expect(new Set(identities).size).toBe(identities.length);
});

test('the hash identifies declared arrays by order and parameters by name; a variable stays one object', () => {
  const array = (name: string, space: ArrayRef['space']): ArrayRef => ({
    name,
    space,
    number: 1,
    dtype: 'f32',
    rank: 1,
    extents: [4],
    isReadOnly: false,
  });
  const variable: Variable = { name: 'sum', type: 'f32', isConst: false };
  const zero = { kind: 'const', type: 'f32', value: 0 } as const;
  const made = (shared: ArrayRef, parameter: ArrayRef, at: number): KernelIr => {
    const body: Stmt[] = [
      { kind: 'declare', at, variable, value: zero },
      { kind: 'store', at, array: shared, indices: [{ ...zero, type: 'i32' }], value: { kind: 'variable', type: 'f32', variable } },
      { kind: 'store', at, array: parameter, indices: [{ ...zero, type: 'i32' }], value: zero },
      { kind: 'assert', at, test: { kind: 'const', type: 'bool', value: 1 }, text: at === 0 ? 'a<b' : 'a < b' },
    ];
    return { name: 'k', body, arrays: [shared], funcs: [], indexRank: 0 };
  };
  const ir = made(array('tile', 'shared'), array('x', 'parameter'), 0);
  expect(irHash(made(array('t', 'shared'), array('x', 'parameter'), 7))).toBe(irHash(ir));
  expect(irHash(made(array('tile', 'shared'), array('y', 'parameter'), 0))).not.toBe(irHash(ir));
  expect(irHash(made(array('tile', 'local'), array('x', 'parameter'), 0))).not.toBe(irHash(ir));
  const { body, arrays } = canonical(ir);
  const [declared, stored] = body as [Extract<Stmt, { kind: 'declare' }>, Extract<Stmt, { kind: 'store' }>];
  expect(stored.value).toMatchObject({ kind: 'variable' });
  expect(stored.value.kind === 'variable' && stored.value.variable).toBe(declared.variable);
  expect(stored.array).toBe(arrays[0]);
});

test('vectors, bigints and generators are the same kernel under const and let, whatever their names', () => {
  const all = { p: inout(f32, 2), b: inout(u64) } as const;
  const text = (keyword: string, [r, v, w, k]: readonly string[]): string =>
    `({ p, b }, { i, rng, vec3f, normalize, add }) => { ${keyword} ${r} = rng(7, i); ${keyword} ${v} = vec3f(p[i]); let ${w} = normalize(${v}); ` +
    `${w} = add(${w}, vec3f(${r}.uniform())); ${keyword} ${k} = 0x9e3779b97f4a7c15n; b[i] = b[i] * ${k}; p.set(i, ${w}); }`;
  const hashOf = (source: string): string => irHash(irOf(source, all));
  expect(hashOf(text('let', ['a', 'c', 'd', 'e']))).toBe(hashOf(text('const', ['r', 'v', 'w', 'k'])));
  expect(hashOf(text('const', ['r', 'v', 'w', 'k']).replace('c15n', 'c16n'))).not.toBe(hashOf(text('const', ['r', 'v', 'w', 'k'])));
});
