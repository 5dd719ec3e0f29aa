// Every error code of the compiler, with its message and hint, and the position of the code frame.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { func } from '../../../src/compiler/definitions/func.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { bool, f32, f64, i32, u32 } from '../../../src/core/elements/dtype.js';
import { ArgumentError } from '../../../src/core/base/errors.js';
import { inout, input, output, type Params } from '../../../src/core/kernels/kernel.js';
import { compileError, complaint, withText } from './support.js';

const params = { x: inout(f32), d: inout(f64), n: inout(i32), u: inout(u32), a: input(f32, 2), flag: bool } as const;
/** Compiles an invalid body that the TypeScript types would also reject, or that is easier to read loosely typed. */
function refused(body: (p: never, t: never) => unknown, own: Params = params): string {
  return complaint(() => kernel('k', own, body as never));
}

test('the code frame marks the position', () => {
  const error = compileError(() =>
    kernel('blur', { x: inout(i32), width: i32 }, ({ x, width }, { i }) => {
      const half = width / 2;
      x[i] = half;
    }),
  );
  expect(error).toMatchObject({ name: 'CompileError', code: 'ERR_MILLRACE_COMPILE', log: error.message });
  const [diagnostic] = error.diagnostics;
  expect(diagnostic).toMatchObject({ code: 'K205', file: expect.stringMatching(/errors\.test\.ts$/), column: 20 });
  const { line, column } = diagnostic!;
  expect(error.message.replace(/at .*\/errors\.test\.ts:\d+/, 'at errors.test.ts:LN').replace(`${line} |`, 'LN |')).toMatchInlineSnapshot(`
    "K205: '/' on two integers is ambiguous: JavaScript gives a fraction, CUDA truncates.
      in kernel 'blur' at errors.test.ts:LN:20
      LN |       const half = width / 2;
         |                    ^^^^^^^^^
      Write idiv(width, 2) to truncate or f32(width) / 2 for a fraction."
  `);
  const written = readFileSync(new URL(import.meta.url), 'utf8').split('\n');
  expect(written[line - 1]!.slice(column - 1)).toBe('width / 2;');
});

test('without a known position, the code frame shows the source near the call', () => {
  const error = compileError(() => kernel('half', { x: inout(i32) }, withText('({ x }, { i }) => {\n  x[i] = x[i] / 2;\n}')));
  const at = error.diagnostics[0]!.line;
  expect(error.message.replace(/near .*\/errors\.test\.ts:/, 'near errors.test.ts:').replaceAll(String(at), 'LN')).toMatchInlineSnapshot(`
    "K205: '/' on two integers is ambiguous: JavaScript gives a fraction, CUDA truncates.
      in kernel 'half' near errors.test.ts:LN
      LN |   x[i] = x[i] / 2;
         |          ^^^^^^^^
      Write idiv(x[i], 2) to truncate or f32(x[i]) / 2 for a fraction."
  `);
});

test('the code frame of a one-line source is cut around the position', () => {
  const filler = Array.from({ length: 40 }, (_unused, at) => `const v${at} = i + ${at};`).join('');
  const body = new Function(`return ({ x }, { i }) => {${filler}x[i] = v1 / v2;}`)() as never;
  const framed = compileError(() => kernel('long', { x: inout(i32) }, body)).message.split('\n');
  const marks = framed.find((line) => line.includes('^'))!;
  expect(marks.length).toBeLessThan(120);
  expect(framed[framed.indexOf(marks) - 1]!.slice(marks.indexOf('^'), marks.lastIndexOf('^') + 1)).toBe('v1 / v2');
});

test('K001 no source', () => {
  expect(refused(Math.max as never)).toMatchInlineSnapshot(`
    "K001: The body has no source: it is a bound or a native function.
      Pass the function itself, not the result of bind()."
  `);
  expect(refused(Function.prototype.bind.call(() => {}, undefined))).toMatchInlineSnapshot(`
    "K001: The body has no source: it is a bound or a native function.
      Pass the function itself, not the result of bind()."
  `);
  expect(refused('x' as never)).toMatchInlineSnapshot(`"K001: The body must be a function (string was given)."`);
});

test('K002 source that is not a function expression', () => {
  expect(refused(withText('class {}'))).toMatchInlineSnapshot(
    `"K002: The source of the body cannot be parsed: it is not a function expression."`,
  );
});

test('K003 async and generators', () => {
  expect(refused(async () => {})).toMatchInlineSnapshot(`"K003: A body must be a plain function, not async and not a generator."`);
  expect(refused(function* () {} as never)).toMatchInlineSnapshot(
    `"K003: A body must be a plain function, not async and not a generator."`,
  );
});

test('K004 patterns', () => {
  expect(refused(withText('({ x = 1 }) => {}'))).toMatchInlineSnapshot(`
    "K004: The parameter 'x' has a default value.
      Write the name alone: the values come from the launch."
  `);
  expect(refused(withText('({ x: [first] }) => {}'))).toMatchInlineSnapshot(`
    "K004: The parameter 'x' is destructured further.
      Write the name alone: the values come from the launch."
  `);
  expect(refused(withText('({ ...rest }) => {}'))).toMatchInlineSnapshot(
    `"K004: A parameter of a body must be a flat destructuring pattern, without rest and computed keys."`,
  );
  expect(refused(withText('([x]) => {}'))).toMatchInlineSnapshot(
    `"K004: A parameter of a body must be a name or a flat destructuring pattern."`,
  );
});

test('what cannot be destructured', () => {
  const taken = (statement: string) => refused(withText(`({ a }, t) => { ${statement} }`));
  expect(taken('const [first, second, third] = a.shape;')).toMatchInlineSnapshot(
    `"K210: '[first, second, third]': the shape has 2 numbers."`,
  );
  expect(taken('const [[first]] = a.shape;')).toMatchInlineSnapshot(`"K301: '[first]': only plain names can be declared."`);
  expect(taken('const [...all] = a.shape;')).toMatchInlineSnapshot(`"K301: '...all': only plain names can be declared."`);
  expect(taken('const { x = 1 } = t.threadIdx;')).toMatchInlineSnapshot(`"K301: 'x = 1': only plain names can be declared."`);
  expect(taken('const { w } = t.threadIdx;')).toMatchInlineSnapshot(`
    "K101: 'w' does not exist.
      The members are x, y and z."
  `);
  expect(taken('const { ...all } = t.threadIdx;')).toMatchInlineSnapshot(
    `"K301: '...all': a thread index is destructured into x, y and z."`,
  );
  expect(taken('const { x, y } = t.vec2f(1, 2);')).toMatchInlineSnapshot(
    `"K301: '{ x, y } = t.vec2f(1, 2)': only the parameters of the body, shapes and thread indices can be destructured."`,
  );
  expect(taken('const [x] = t.threadIdx;')).toMatchInlineSnapshot(
    `"K301: '[x] = t.threadIdx': only the parameters of the body, shapes and thread indices can be destructured."`,
  );
  expect(taken('let [rows] = a.shape; rows = 1;')).toMatchInlineSnapshot(`
    "K104: 'rows' cannot be assigned to: it is a constant or a parameter.
      Copy it into a let first."
  `);
});

test('K101 unknown names', () => {
  const outer = 3;
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        x[i] = outer;
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K101: 'outer' is not known inside the kernel.
      Give a number as an option, { constants: { outer } }, a helper as { functions: { outer } }, and take outer from the second parameter of the body."
  `);
  expect(refused(withText('({ x }, { lane }) => { x[lane] = 1; }'))).toMatchInlineSnapshot(`
    "K101: 'lane' is not known inside the kernel.
      Declare it in { constants } or { functions }."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        x[i] = x[i]! * Math.random();
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K101: 'Math.random' is not part of the kernel language.
      Declare const r = rng(seed, sequence), and draw r.uniform()."
  `);
  expect(refused(withText('({ x }, { i }) => { x[i] = x.indexOf; }'))).toMatchInlineSnapshot(`
    "K101: 'x' has no member 'indexOf'.
      Arrays have at, set, length and shape."
  `);
});

test('K102 parameters that the kernel does not have', () => {
  expect(refused(withText('({ z }) => { z[0] = 1; }'))).toMatchInlineSnapshot(`
    "K102: The kernel has no parameter 'z'.
      It has x, d, n, u, a, flag."
  `);
  expect(refused(withText('(p) => { p.z[0] = 1; }'))).toMatchInlineSnapshot(`
    "K102: The kernel has no parameter 'z'.
      It has x, d, n, u, a, flag."
  `);
});

test('K104 assignments to constants', () => {
  expect(refused(withText('({ flag }) => { flag = true; }'))).toMatchInlineSnapshot(`
    "K104: 'flag' cannot be assigned to: it is a constant or a parameter.
      Copy it into a let first."
  `);
  expect(refused(withText('({ x }, { i }) => { const at = i + 1; at++; x[at] = 1; }'))).toMatchInlineSnapshot(`
    "K104: 'at' cannot be assigned to: it is a constant or a parameter.
      Copy it into a let first."
  `);
});

test('K301 syntax outside the language', () => {
  const bodies: Record<string, (p: { x: number[] }, t: { i: number }) => void> = {
    var: withText('({ x }, { i }) => { var v = 1; x[i] = v; }'),
    forOf: ({ x }) => {
      for (const v of x) x[0] = v;
    },
    switch: ({ x }, { i }) => {
      switch (i) {
        default:
          x[i] = 1;
      }
    },
    try: ({ x }, { i }) => {
      try {
        x[i] = 1;
      } finally {
        x[i] = 2;
      }
    },
    throw: () => {
      throw new Error('no');
    },
    label: () => {
      outer: for (;;) break outer;
    },
    string: ({ x }, { i }) => {
      x[i] = 'a' as never;
    },
    bigint: ({ x }, { i }) => {
      x[i] = null as never;
    },
    object: ({ x }, { i }) => {
      x[i] = {} as never;
    },
    new: ({ x }, { i }) => {
      x[i] = new Date() as never;
    },
    value: ({ x }, { i }) => {
      let v = 0;
      x[i] = (v = 2) + v;
    },
    increment: ({ x }, { i }) => {
      let v = 0;
      x[i] = v++;
    },
    nullish: ({ x }, { i }) => {
      x[i] = x[i] ?? 1;
    },
    optional: withText('({ x }, { i }) => { x[i] = x?.[i]; }'),
    spread: ({ x }, { i }) => {
      x[i] = Math.max(...x);
    },
    nothing: withText('({ x }, { i }) => { x[i] > 1; }'),
  };
  const found = Object.entries(bodies).map(([name, body]) => `${name}: ${refused(body as never)}`);
  expect(found.join('\n')).toMatchInlineSnapshot(`
    "var: K301: 'var' is not part of the kernel language.
      Write const or let.
    forOf: K301: A for of statement is not part of the kernel language.
      Write for (let k = 0; k < a.length; k++).
    switch: K301: A switch statement is not part of the kernel language.
      Write if and else.
    try: K301: A try statement is not part of the kernel language.
    throw: K301: A throw statement is not part of the kernel language.
      Return, and write an error code into an output array.
    label: K301: A labeled statement is not part of the kernel language.
    string: K301: '"a"' is not a number or a boolean.
      Kernels have no strings, null or regular expressions.
    bigint: K301: 'null' is not a number or a boolean.
      Kernels have no strings, null or regular expressions.
    object: K301: '{}' (object expression) is not part of the kernel language.
      Declare a variable for each value.
    new: K301: 'new Date()' (new expression) is not part of the kernel language.
    value: K301: 'v = 2' is used as a value.
      Write it as a statement of its own.
    increment: K301: 'v++' is used as a value.
      Write it as a statement of its own.
    nullish: K301: '??' is not part of the kernel language: no value of a kernel is null.
    optional: K301: '?.' is not part of the kernel language: no value of a kernel is undefined.
    spread: K212: 'Math.max' takes at least 2 arguments, not 1.
    nothing: K301: 'x[i] > 1' does nothing.
      Assign it, or remove it."
  `);
});

test('K302 functions inside a kernel are one expression, and do not recurse', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        const f = (v: number): number => {
          const w = v;
          return w;
        };
        x[i] = f(1);
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K302: '(v) => { const w = v; return w; }': a function inside a kernel must be one expression.
      Make it a helper with func(...), or write it in place."
  `);
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i }) => {
        const f = (v: number): number => f(v);
        x[i] = f(x[i]!);
      }),
    ),
  ).toMatchInlineSnapshot(`
    "K302: 'f' calls itself: kernels have no recursion.
      Write a loop."
  `);
});

test('K303 returns', () => {
  expect(
    complaint(() =>
      kernel('k', params, (() => {
        return 3;
      }) as never),
    ),
  ).toMatchInlineSnapshot(`
    "K303: A kernel returns no value.
      Write the result into an output array."
  `);
  expect(complaint(() => func([i32], i32, withText('(n) => { if (n > 0) return 1; }')))).toMatchInlineSnapshot(
    `"K303: The helper does not return a value on every path."`,
  );
});

test('K212 the number of arguments', () => {
  expect(
    complaint(() =>
      kernel('k', params, ({ x }, { i, clamp }) => {
        x[i] = (clamp as unknown as (v: number) => number)(1);
      }),
    ),
  ).toMatchInlineSnapshot(`"K212: 'clamp' takes 3 arguments, not 1."`);
});

test('a helper is checked when it is made', () => {
  expect(complaint(() => func([i32], i32, (n) => n / 2))).toMatch(/^K205/);
  expect(complaint(() => func([i32], i32, (() => 1) as never))).toMatch(/^K004: The helper has 0 parameters, but 1 type\./);
});

test('arguments that are not strings', () => {
  const ok = (): void => {};
  const thrown = (run: () => unknown): string => {
    try {
      run();
    } catch (error) {
      if (error instanceof ArgumentError) return `${error.argument}: ${error.message}`;
      throw error;
    }
    throw new Error('It is accepted.');
  };
  expect(thrown(() => kernel('', {}, ok))).toMatchInlineSnapshot(`"name: The name () must be a non-empty string."`);
  expect(thrown(() => kernel('k', { '0': f32 }, ok))).toMatchInlineSnapshot(`"params.0: The parameter name '0' must be an identifier."`);
  expect(thrown(() => kernel('k', { x: 'f32' as never }, ok))).toMatchInlineSnapshot(
    `"params.x: The parameter 'x' must be a type such as f32, or input(f32), output(f32) or inout(f32): pass f32, which millrace exports, without quotes."`,
  );
  expect(thrown(() => kernel('k', undefined as never, ok))).toMatchInlineSnapshot(
    `"params: params (undefined) must be an object of types."`,
  );
  expect(thrown(() => kernel('k', {}, ok, { bounds: 'maybe' as never }))).toMatchInlineSnapshot(
    `"bounds: bounds (maybe) must be 'checked' or 'unchecked'."`,
  );
  expect(thrown(() => kernel('k', {}, ok, { maxThreadsPerBlock: 2048 }))).toMatchInlineSnapshot(
    `"maxThreadsPerBlock: maxThreadsPerBlock (2048) must be an integer from 1 to 1024."`,
  );
  expect(thrown(() => kernel('k', {}, ok, { constants: { T: 'x' as never } }))).toMatchInlineSnapshot(
    `"constants: The constant 'T' (x) must be a number or a boolean."`,
  );
  expect(thrown(() => kernel('k', { o: output(f32) }, ok, { functions: { f: {} as never } }))).toMatchInlineSnapshot(
    `"functions.f: functions.f ([object Object]) must be made by func(...)."`,
  );
});
