// Hostile input: every source, name and value results in a kernel or a typed error, within a time limit.
import { expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { func } from '../../../src/compiler/definitions/func.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { ArgumentError, CompileError } from '../../../src/core/base/errors.js';
import { f32, f64, i32 } from '../../../src/core/elements/dtype.js';
import { inout, type Kernel, type Params } from '../../../src/core/kernels/kernel.js';
import { IS_LONG } from '../../support/long.js';
import { noInspector, withText } from './support.js';

/** Far more than any of these needs, and far less than quadratic algorithms took. */
const PROMPT_MS = 5000;
const params = { x: inout(f32) } as const;

/** 'ok', or the error code. */
function outcome(run: () => unknown): string {
  const before = process.cpuUsage();
  try {
    run();
    return 'ok';
  } catch (error) {
    if (error instanceof CompileError) return error.message.slice(0, 4);
    if (error instanceof ArgumentError) return `${error.argument}: ${error.message}`;
    throw error;
  } finally {
    expect(process.cpuUsage(before).user / 1e3).toBeLessThan(PROMPT_MS);
  }
}
function bodyOutcome(text: string, own: Params = params, options: object = {}): string {
  return outcome(() => kernel('k', own, withText(text), options));
}
function lines(count: number, line: (at: number) => string): string {
  return Array.from({ length: count }, (_unused, at) => line(at)).join('');
}

test('CUDA C++ that is too long, or whose brackets are nested too deeply', () => {
  const of = (text: string): string => outcome(() => cudaKernel('k', params, `__global__ void k(float* x) {}${text}`));
  const size = 1 << 24;
  const found = {
    comment: of(`/*${'x '.repeat(size / 2)}*/`),
    line: of(`//${'x'.repeat(size)}`),
    blank: of('\n'.repeat(size)),
    string: of(`const char* s = "${'x'.repeat(size)}";`),
    parentheses: of(`int a = ${'('.repeat(50_000)}1${')'.repeat(50_000)};`),
    braces: of(`void f() {${'{'.repeat(50_000)}${'}'.repeat(50_000)}}`),
    large: of(`//${'x'.repeat(1 << 21)}`),
    quoted: of(`const char* s = "${'('.repeat(5000)}";`),
  };
  const tooMuch = Object.fromEntries(Object.keys(found).map((key) => [key, 'K006']));
  expect(found).toEqual({ ...tooMuch, large: 'ok', quoted: 'ok' });
});

test('sources that are too long, too deep, or that grow when inlined', () => {
  const body = (inside: string): string => bodyOutcome(`({ x }, { i }) => { ${inside} }`);
  const found = {
    megabyte: body('x[i] = x[i] + 1;'.repeat(70_000)),
    comment: body(`/*${'a'.repeat(1 << 20)}*/`),
    long: body('x[i] = x[i] + 1;'.repeat(7000)),
    sum: body(`x[i] = 1${'+x[i]'.repeat(20_000)};`),
    parentheses: body(`x[i] = ${'('.repeat(400)}1${')'.repeat(400)};`),
    minus: body(`x[i] = ${'- '.repeat(5000)}x[i];`),
    blocks: body(`${'{'.repeat(4000)}x[i] = 1;${'}'.repeat(4000)}`),
    ifs: body(`${'if (i > 0) '.repeat(3000)}x[i] = 1;`),
    locals: body(`${lines(6000, (at) => `let a${at} = 0;`)}x[i] = 1;`),
    chain: body(`${lines(2001, (at) => `let a${at} = 0;`)}${lines(2000, (at) => `a${at} = a${at + 1};`)}a2000 = x[i]; x[i] = a0;`),
    arrows: body(`const f0 = (v) => v + v;${lines(25, (at) => `const f${at + 1} = (v) => f${at}(v) + f${at}(v);`)}x[i] = f25(x[i]);`),
    choices: body(`const a0 = 1;${lines(60, (at) => `const a${at + 1} = i > ${at} ? a${at} + 1 : a${at} + 2;`)}x[i] = a60;`),
    powers: body(`x[i] = ${'('.repeat(12)}x[i]${' ** 4)'.repeat(12)};`),
  };
  expect(found).toEqual({
    megabyte: 'K006',
    comment: 'K006',
    long: 'ok',
    sum: expect.stringMatching(/^(?:ok|K006)$/),
    parentheses: 'ok',
    minus: expect.stringMatching(/^(?:ok|K006)$/),
    blocks: expect.stringMatching(/^(?:ok|K006)$/),
    ifs: expect.stringMatching(/^(?:ok|K006)$/),
    locals: 'ok',
    chain: 'K006',
    arrows: 'K006',
    choices: 'ok',
    powers: 'ok',
  });
  // V8 itself does not read ten thousand parentheses: no such function can be given.
  expect(() => withText(`() => ${'('.repeat(10_000)}1${')'.repeat(10_000)}`)).toThrow(SyntaxError);
});

test('helpers have the same limits', () => {
  expect(outcome(() => func([f32], f32, withText(`(v) => ${'v + '.repeat(40_000)}v`)))).toBe('K006');
  expect(outcome(() => func(null as never, f32, () => 1))).toBe('params: params (null) must be an array of types.');
  expect(outcome(() => func([{}] as never, f32, withText('() => 1')))).toMatch(/^params\[0\]: .* must be a type such as f32\.$/);
  expect(outcome(() => func([f32], undefined as never, (() => 1) as never))).toMatch(/^result: .* must be a type such as f32\.$/);
});

const INHERITED = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'valueOf', '__defineGetter__', 'prototype'];

test.each(INHERITED)('%s is a name like any other', (name) => {
  const own = <T>(value: T): Record<string, T> => Object.defineProperty({}, name, { value, enumerable: true }) as Record<string, T>;
  const withParameter = { ...params, ...own(f32) };
  // As a parameter, a constant, a helper and a local it is what was declared.
  const x = (made: Kernel): string => made.source.split('\n').findLast((line) => line.includes('x_[mr_i] ='))!;
  expect(x(kernel('k', withParameter, withText(`(p, t) => { p.x[t.i] = p.${name}; }`)))).toContain(` = ${name}_;`);
  expect(x(kernel('k', withParameter, withText(`({ x, ${name}: v }, { i }) => { x[i] = v; }`)))).toContain(` = ${name}_;`);
  expect(x(kernel('k', params, withText(`(p, t) => { p.x[t.i] = t.${name}; }`), { constants: own(3) }))).toContain(' = 3.0f;');
  const helper = func([f32], f32, (v) => v * v);
  expect(x(kernel('k', params, withText(`(p, t) => { p.x[t.i] = t.${name}(2); }`), { functions: own(helper) }))).toContain(
    `mr_fn_${name}(2.0f)`,
  );
  expect(x(kernel('k', params, withText(`({ x }, { i }) => { let ${name} = x[i]; ${name}++; x[i] = ${name}; }`)))).toContain(
    ` = ${name}_;`,
  );
  // Where it was not declared it is nothing.
  const uses = ['p.NAME', 't.NAME', 't.NAME(1)', 'Math.NAME', 'Math.NAME(1)', 'p.x.NAME', 'p.x.shape.NAME', 't.threadIdx.NAME', 'NAME'];
  const inspector = noInspector();
  try {
    for (const use of uses) expect(bodyOutcome(`(p, t) => { p.x[t.i] = ${use.replace('NAME', name)}; }`)).toMatch(/^K(?:10[12]|201|210)$/);
  } finally {
    inspector.mockRestore();
  }
});

test('functions without readable source', () => {
  // oxlint-disable-next-line typescript/no-extraneous-class -- only a class has private methods
  class Holder {
    static #hidden(): void {}
    static take(): unknown {
      return Holder.#hidden;
    }
  }
  const accessor = Object.getOwnPropertyDescriptors({
    get a() {
      return 1;
    },
    set a(_value) {},
  }).a;
  const bodies: Record<string, unknown> = {
    K001: [
      Math.max,
      Function.prototype.bind.call(() => {}, undefined),
      Map,
      new Proxy(() => {}, {}),
      null,
      undefined,
      {},
      5,
      'x',
      Symbol('s'),
    ],
    K002: [withText('class {}'), accessor.get, accessor.set, Holder.take()],
    K003: [async () => {}, function* () {}, async function* () {}, { async a() {} }.a, { *a() {} }.a],
    ok: [
      { get() {} }.get,
      { 'a b'() {} }['a b'],
      { 12() {} }[12],
      { async() {} }.async,
      Object.assign(() => {}, { toString: () => 'evil(' }),
    ],
  };
  for (const [code, given] of Object.entries(bodies)) {
    for (const body of given as unknown[]) expect(outcome(() => kernel('k', params, body as never))).toBe(code);
  }
});

test('parameters that change between reads', () => {
  const trap = new RangeError('The trap of a proxy.');
  const throwing = new Proxy(
    {},
    {
      ownKeys() {
        throw trap;
      },
    },
  );
  expect(() => kernel('k', throwing, () => {})).toThrow(trap);
  let reads = 0;
  const changing = new Proxy(params, { get: () => (reads++ % 2 === 0 ? inout(f32) : 'f32') });
  expect(outcome(() => kernel('k', changing as never, withText('({ x }, { i }) => { x[i] = 1; }')))).toBe('ok');
  expect(reads).toBe(1);
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_unused, at) => [`p${at}`, i32]));
  expect(bodyOutcome('(p, t) => { p.x[t.i] = p.p77; }', { ...many, ...params })).toBe('ok');
  expect(outcome(() => kernel('k', [f32] as never, () => {}))).toMatch(/^params\.0: /);
});

test('numbers at the limits', () => {
  const stored = (text: string): string[] => {
    const made = kernel('k', { x: inout(f32), d: inout(f64) }, withText(`({ x, d }, { i }) => { x[i] = ${text}; d[i] = ${text}; }`), {
      bounds: 'unchecked',
    });
    return [...made.source.matchAll(/\[mr_i\] = (.*);/g)].map((match) => match[1]!);
  };
  expect(
    Object.fromEntries(
      ['1e400', '-1e400', 'NaN', '-0', '5e-324', '1e39', '4294967296', '-2147483649', '1e308'].map((text) => [text, stored(text)]),
    ),
  ).toMatchInlineSnapshot(`
    {
      "-0": [
        "-0.0f",
        "-0.0",
      ],
      "-1e400": [
        "-mr_infinity()",
        "-mr_infinity()",
      ],
      "-2147483649": [
        "-2147483648.0f",
        "-2147483649.0",
      ],
      "1e308": [
        "mr_infinity()",
        "1e+308",
      ],
      "1e39": [
        "mr_infinity()",
        "1e+39",
      ],
      "1e400": [
        "mr_infinity()",
        "mr_infinity()",
      ],
      "4294967296": [
        "4294967296.0f",
        "4294967296.0",
      ],
      "5e-324": [
        "0.0f",
        "5e-324",
      ],
      "NaN": [
        "mr_nan()",
        "mr_nan()",
      ],
    }
  `);
  for (const value of [Number.NaN, Infinity, -Infinity, -0, 2 ** 53, 2 ** 32, -(2 ** 31) - 1]) {
    expect(bodyOutcome('({ x }, { i, C }) => { x[i] = C; }', params, { constants: { C: value } })).toBe('ok');
  }
  for (const value of ['1', 1n, null, undefined, {}, Symbol('q'), 'x'.repeat(1 << 20)]) {
    expect(bodyOutcome('({ x }, { i, C }) => { x[i] = C; }', params, { constants: { C: value } })).toMatch(
      /^constants: The constant 'C' .{1,90} must be a number or a boolean\.$/,
    );
  }
});

test('names of kernels become plain C names, or are rejected', () => {
  const body = withText('({ x }, { i }) => { x[i] = 1; }');
  for (const name of [
    'a"b',
    "a'b",
    'a;rm -rf /',
    '$(touch x)',
    '`id`',
    'a\\',
    '  ',
    'größe',
    '𝒳',
    'a*/b',
    '//',
    '../../x',
    '%s%n',
    '__proto__',
    '12',
    'int',
    'n'.repeat(1024),
  ]) {
    const { build, source } = kernel(name, params, body);
    expect(build.entry).toMatch(/^[A-Za-z_]\w*$/);
    expect(source).toContain(`void ${build.entry}(`);
  }
  for (const name of [
    'a\nb',
    'a\0b',
    'a\u2028b',
    '\u007f',
    'a\r\n#include "/etc/passwd"',
    'n'.repeat(10_240),
    '',
    5,
    null,
    {},
    Symbol('z'),
  ]) {
    expect(outcome(() => kernel(name as string, params, body))).toMatch(/^name: The name .{1,200}\.$/);
  }
});

test('invalid options', () => {
  const body = withText('({ x }, { i }) => { x[i] = 1; }');
  for (const opts of [null, 5, 'fast']) {
    expect(outcome(() => kernel('k', params, body, opts as never))).toBe(`opts: The options (${opts}) must be an object.`);
    expect(outcome(() => cudaKernel('k', { y: inout(f32) }, CUDA, opts as never))).toBe(`opts: The options (${opts}) must be an object.`);
    expect(outcome(() => kernel('k', params, body).specialize(opts as never))).toBe(`opts: The options (${opts}) must be an object.`);
  }
});

const CUDA = 'extern "C" __global__ void k(float* y) { y[0] = 1; }';

const KIBS = IS_LONG ? 128 : 64;
test(`CUDA C++ source: ${KIBS} KiB of arbitrary input are scanned in linear time`, () => {
  // On average each takes 0.4 ms a KiB. A quadratic scan that took two minutes for half a megabyte would exceed this.
  const MOST_MS = KIBS * 20;
  const much = (unit: string, rest = CUDA): string => unit.repeat((KIBS << 10) / unit.length) + rest;
  const units = [
    ' ',
    'a ',
    '*',
    '"',
    "'",
    '\\"',
    "1'",
    '/*',
    '//',
    'R"(',
    'R"x(',
    '__global__ ',
    '__global__ f(',
    'extern ',
    'extern "C" {',
    'extern "C" {}',
    '\n',
    '#if 0\n',
    '\\\n',
    '(',
    ')',
    '{',
    '}',
    '<',
    ',',
    ';',
    '\0',
    '\u{1f4a5}',
  ];
  for (const unit of units) {
    for (const text of [much(unit), `"${much(unit, '')}`, `extern "C" __global__ void k(${much(unit, 'float* y) {}')}`]) {
      const { user } = process.cpuUsage();
      expect(outcome(() => cudaKernel('k', { y: inout(f32) }, text))).toMatch(/^(?:ok|K00[56]|params: .{1,300}|params\.y: .{1,300})$/);
      expect((process.cpuUsage().user - user) / 1000, text.slice(0, 40)).toBeLessThan(MOST_MS);
    }
  }
}, 120_000);

test('CUDA C++ source: brackets, names, directives', () => {
  const given = (text: unknown, name = 'k'): string => outcome(() => cudaKernel(name, { y: inout(f32) }, text as string));
  // The compiler of the device says what is wrong with these, and where.
  for (const text of [
    'extern "C" __global__ void k(float* y',
    'extern "C" __global__ void k(float* y) {{{',
    `}}}}${CUDA}`,
    CUDA.replace('y[0]', 'y[\0]'),
    `${CUDA}// \ud800`,
    `#line 77 "/etc/passwd"\n${CUDA}`,
    `#include "/dev/zero"\n${CUDA}`,
  ]) {
    expect(given(text)).toBe('ok');
  }
  expect(given('')).toBe('K005');
  expect(given({ toString: () => CUDA })).toBe(
    "source: The source (object) must be a string, or the URL of a file: new URL('./kernels.cu', import.meta.url).",
  );
  expect(given(CUDA, 'k+')).toMatch(/^name: /);
  expect(given(CUDA, 'k'.repeat(10_240))).toMatch(/^name: The name .* has 10240 characters \(at most 1024\)\.$/);
  expect(given('extern "C" __global__ void __proto__(float* y) {}', '__proto__')).toBe('ok');
});
