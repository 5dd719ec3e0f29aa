// The programs that the site shows for each code of a CompileError: one is refused with this code, the other one is accepted and launched.
import path from 'node:path';
import * as library from 'millrace';
import { type Kernel, type Operation, openDevice } from 'millrace';
import { expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { COMPILE_CODES } from '../../src/core/base/compile-codes.js';

type Programs = Readonly<Record<string, readonly [refused: string, accepted: string, shape?: string]>>;
interface Examples {
  readonly COMPILE_EXAMPLES: Programs;
  readonly ON_DEVICE: Programs;
  readonly launched: (program: Programs[string]) => string;
  readonly IN_WORDS: Readonly<Record<string, string>>;
}
const file = path.join(import.meta.dirname, '../../site/compile-examples.mjs');
const { COMPILE_EXAMPLES, IN_WORDS, launched, ON_DEVICE } = (await import(file)) as Examples;
const run = (text: string, names: Readonly<Record<string, unknown>> = {}): unknown => {
  const known = { ...library, ...names };
  return new Function(...Object.keys(known), text)(...Object.values<unknown>(known));
};

test('every code has a program, or a reason in words', () => {
  expect([...Object.keys(COMPILE_EXAMPLES), ...Object.keys(ON_DEVICE), ...Object.keys(IN_WORDS)].toSorted()).toEqual(
    Object.keys(COMPILE_CODES),
  );
});

test.for(Object.entries(COMPILE_EXAMPLES))('%s', ([code, [refused]]) => {
  expect(() => run(refused)).toThrow(expect.objectContaining({ message: expect.stringMatching(new RegExp(`^${code}: `)) }));
});

test('those that only a compiler finds', async () => {
  await using device = await openDevice('cpu');
  for (const [code, [refused]] of Object.entries(ON_DEVICE))
    await expect(device.compile(run(`return ${refused}`) as Kernel)).rejects.toThrow(new RegExp(`^${code}: `));
});

test('what is accepted runs by the launch that its page shows, for arrays of a length that fills no block', async () => {
  await using device = await openDevice('cpu');
  const { stream } = device;
  const arrays = {
    ...Object.fromEntries(['x', 'y', 'values', 'result'].map((name) => [name, stream.full(100, 2)])),
    n: stream.zeros(100, 'i32'),
    u: stream.zeros(100, 'u32'),
    d: stream.zeros(100, 'f64'),
    a: stream.ones([100, 2]),
    p: stream.ones([100, 3]),
  };
  const all = Object.values({ ...COMPILE_EXAMPLES, ...ON_DEVICE });
  // The compiler of the kernel language takes all, g++ a third in the short form.
  for (const [, accepted] of all) expect(() => run(accepted)).not.toThrow();
  const shown = all.filter((_, at) => IS_LONG || at % 3 === 0).map(launched);
  const launches = shown.map(
    (text) => run(text.replace(/(?=device\.stream\.launch\(.*\);$)/, 'return '), { device, ...arrays }) as Operation,
  );
  await Promise.all(launches.map(({ done }) => done));
});
