// The programs that the site shows for each code of a CompileError: one is refused with this code, the other one is accepted.
import path from 'node:path';
import * as library from 'millrace';
import { type Kernel, openDevice } from 'millrace';
import { expect, test } from 'vitest';
import { COMPILE_CODES } from '../../src/core/base/compile-codes.js';
import { useQuickCompiler } from '../support/use-quick-compiler.js';

useQuickCompiler();

type Programs = Readonly<Record<string, readonly [refused: string, accepted: string]>>;
interface Examples {
  readonly COMPILE_EXAMPLES: Programs;
  readonly ON_DEVICE: Programs;
  readonly IN_WORDS: Readonly<Record<string, string>>;
}
const file = path.join(import.meta.dirname, '../../site/compile-examples.mjs');
const { COMPILE_EXAMPLES, IN_WORDS, ON_DEVICE } = (await import(file)) as Examples;
const names = Object.entries<unknown>(library);
const run = (text: string, result = ''): unknown =>
  new Function(...names.map(([name]) => name), result + text)(...names.map(([, value]) => value));

test('every code has a program, or a reason in words', () => {
  expect([...Object.keys(COMPILE_EXAMPLES), ...Object.keys(ON_DEVICE), ...Object.keys(IN_WORDS)].toSorted()).toEqual(
    Object.keys(COMPILE_CODES),
  );
});

test.for(Object.entries(COMPILE_EXAMPLES))('%s', ([code, [refused, accepted]]) => {
  expect(() => run(refused)).toThrow(expect.objectContaining({ message: expect.stringMatching(new RegExp(`^${code}: `)) }));
  run(accepted);
});

test('those that only a compiler finds', async () => {
  await using device = await openDevice('cpu');
  for (const [code, [refused, accepted]] of Object.entries(ON_DEVICE)) {
    await expect(device.compile(run(refused, 'return ') as Kernel)).rejects.toThrow(new RegExp(`^${code}: `));
    await device.compile(run(accepted, 'return ') as Kernel);
  }
});
