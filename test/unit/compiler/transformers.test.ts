// Build tools rewrite a body before the compiler sees it. All forms of one kernel must compile to the same kernel.
import { describe, expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { inout, input } from '../../../src/core/kernels/kernel.js';
import { complaint, withoutPositions, withText } from './support.js';

withoutPositions();

const params = { gain: f32, values: input(f32), result: inout(f32), count: i32 } as const;

function compiled(text: string, ...free: string[]): string {
  return kernel('k', params, withText(text, ...free)).source;
}

const reference = compiled(`({ gain, values, result, count }, { i, clamp }) => {
  const h = (q) => q * 2;
  let sum = 0.0;
  for (let n = 0; n < count; n++) {
    sum += clamp(h(values[i]), 0, 1);
  }
  if (sum > 1.0) {
    result[i] = gain * sum;
  } else {
    result[i] = 0;
  }
}`);

describe('forms of one kernel', () => {
  const forms: Record<string, string> = {
    'types stripped, comments kept': `({ gain, values, result, count }, { i, clamp })=>{
 // a comment; "a string" in it
 const h = (q)=>q * 2; /* and another */
 let sum = 0.0;
 for(let n = 0; n < count; n++){ sum += clamp(h(values[i]), 0, 1); }
 if (sum > 1.0) { result[i] = gain * sum; } else { result[i] = 0; }
}`,
    'one line, names kept by a wrapper': `({gain,values,result,count},{i,clamp})=>{const h=__name(q=>q*2,"h");let sum=0;for(let n=0;n<count;n++)sum+=clamp(h(values[i]),0,1);sum>1?result[i]=gain*sum:result[i]=0}`,
    'imports called without a this': `({ gain, values, result, count }, { i }) => {
 const h = (q) => q * 2;
 let sum = 0;
 for (let n = 0; n < count; n++) sum += (0, __vite_ssr_import_0__.clamp)(h(values[i]), 0, 1);
 if (sum > 1) result[i] = gain * sum; else result[i] = 0;
}`,
    minified: `({gain:t,values:n,result:r,count:e},{i:o,clamp:a})=>{const s=t=>2*t;let c=0;for(let t=0;t<e;t++)c+=a(s(n[o]),0,1);c>1?r[o]=t*c:r[o]=0}`,
    'minified, with statements in the head of the loop': `({gain:t,values:n,result:r,count:e},{i:o,clamp:a})=>{let c=0,s=0;for(c=0,s=0;s<e;s++)c+=a(n[o]*2,0,1);if(!(c>1))return r[o]=0,void 0;r[o]=t*c}`,
    'coverage counters': `({ gain, values, result, count }, { i, clamp }) => {
 cov_1a2b().f[3]++;
 cov_1a2b().s[9]++;
 const h = (q) => { cov_1a2b().f[4]++; cov_1a2b().s[10]++; return q * 2; };
 let sum = (cov_1a2b().s[11]++, 0);
 cov_1a2b().s[12]++;
 for (let n = (cov_1a2b().s[13]++, 0); n < count; n++) {
  cov_1a2b().s[14]++;
  sum += (cov_1a2b().s[15]++, clamp(h(values[i]), 0, 1));
 }
 cov_1a2b().s[16]++;
 if (sum > 1) { cov_1a2b().b[2][0]++; cov_1a2b().s[17]++; result[i] = gain * sum; } else { cov_1a2b().b[2][1]++; result[i] = 0; }
}`,
    'a function expression': `function (_a, _b) {
  const gain = _a.gain, values = _a.values, result = _a.result, count = _a.count;
  const i = _b.i, clamp = _b.clamp;
  const h = function_ => function_ * 2;
  let sum = 0;
  for (let n = 0; n < count; n++) { sum += clamp(h(values[i]), 0, 1); }
  if (sum > 1) { result[i] = gain * sum; } else { result[i] = 0; }
}`,
  };
  /** Local names are the tool's; what is computed is not. */
  const shape = (source: string): string => source.replace(/\b(?!mr_|[a-z_]*_n\d)(?:sum|n|q|h|s|c|t|o|e|function_)_(?:\d+_)?\b/g, '#');

  test.each(Object.entries(forms).filter(([name]) => !name.startsWith('minified')))('%s', (_name, text) => {
    expect(shape(compiled(text, '__name', '__vite_ssr_import_0__', 'cov_1a2b'))).toBe(shape(reference));
  });

  test.each(Object.entries(forms).filter(([name]) => name.startsWith('minified')))('%s', (_name, text) => {
    const source = compiled(text);
    expect(source).toContain('mr_clamp_f32(');
    expect(source.split('\n').find((line) => line.startsWith('extern'))).toBe(
      reference.split('\n').find((line) => line.startsWith('extern')),
    );
    expect(source).toMatch(/result_\[mr_i\] = gain_ \* \w+_;/);
    expect(source).toMatch(/result_\[mr_i\] = 0\.0f;/);
  });
});

test('conditions and effects joined by operators', () => {
  const joined = compiled(
    '({ values: v, result: r, count: n }, { i }) => { n > 3 && (r[i] = v[i], r[0] = 1), n < 2 || (r[i] = !0 ? 2 : 3) }',
  );
  const apart = compiled(
    '({ values, result, count }, { i }) => { if (count > 3) { result[i] = values[i]; result[0] = 1; } if (count < 2) {} else { result[i] = 2; } }',
  );
  expect(joined).toBe(apart);
});

test('powers that a tool rewrote', () => {
  const taken = compiled('({ values, result }, { i }) => { result[i] = __pow(values[i], 2) + (+values[i]); }', '__pow');
  expect(taken).toBe(compiled('({ values, result }, { i }) => { result[i] = values[i] ** 2 + values[i]; }'));
});

test('an else with only coverage counters disappears', () => {
  const counted = compiled(
    '({ result }, { i }) => { if (i > 2) { cov_x().b[0][0]++; result[i] = 1; } else { cov_x().b[0][1]++; } }',
    'cov_x',
  );
  expect(counted).toBe(compiled('({ result }, { i }) => { if (i > 2) { result[i] = 1; } }'));
});

test('a free name in minified source is rejected', () => {
  const text = '({ values: t, result: n }, { i: e }) => { n[e] = clamp(t[e], 0, 1); }';
  expect(complaint(() => compiled(text, 'clamp'))).toMatchInlineSnapshot(`
    "K103: The function was built by esbuild or tsx, or minified, so the free name 'clamp' may stand for another name.
      Take it from the second parameter of the body: constants, functions and the thread are there."
  `);
});

test("a free name as short as a minifier's is rejected", () => {
  const short = (text: string, free: string): string =>
    complaint(() => kernel('k', { x: inout(f32) }, withText(text, free), { constants: { g: 3, go: 4, goo: 5 } }));
  const refusal =
    /^K103: The (?:function was built by esbuild or tsx, or minified, so the )?free name '(?:g|go|goo)' may stand for another name/;
  expect(short('(e,t)=>{e.x[t.i]=g}', 'g')).toMatch(refusal);
  expect(short('({ x }, { i }) => { x[i] = go; }', 'go')).toMatch(refusal);
  expect(short('({x:e},{i:t})=>{e[t]=goo}', 'goo')).toMatch(refusal);
  const taken = kernel('k', { x: inout(f32) }, withText('({x:e},{i:t,g:r})=>{e[t]=r}'), { constants: { g: 3 } });
  expect(taken.source).toContain('x_[mr_i] = 3.0f;');
});

test('long local names show that the source is not minified, so short free names are accepted', () => {
  const made = (text: string, ...free: string[]): string =>
    kernel('k', { x: inout(f32), rows: i32 }, withText(text, ...free), { constants: { N: 3, go: 4 } }).source;
  expect(made('({ x, rows }, { i, local }) => { const seen = local(u8, N); seen[0] = rows; x[i] = seen[0]; }', 'u8', 'N')).toContain(
    'unsigned char seen_[3];',
  );
  expect(made('({ x: values }, { i: t }) => { values[t] = go; }', 'go')).toContain('x_[mr_i] = 4.0f;');
  expect(made('({ x: v }, { i }) => { const total = clamp(v[i], 0, go); v[i] = total; }', 'clamp', 'go')).toContain('mr_clamp_f32(');
  expect(made('(p, t) => { for (let row = 0; row < N; row++) p.x[row] = go; }', 'N', 'go')).toContain('x_[row_] = 4.0f;');
});

test('free names of the kernel language are found, those of the launch indices are not', () => {
  expect(compiled('({ values, result }, { i }) => { result[i] = clamp(values[i], 0, 1); }', 'clamp')).toContain('mr_clamp_f32');
  expect(complaint(() => compiled('({ result }) => { result[0] = i; }', 'i'))).toMatch(/^K101: 'i' is not known/);
  expect(complaint(() => compiled('({ result }) => { result[0] = settings.i; }', 'settings'))).toMatch(/^K101: 'settings/);
});
