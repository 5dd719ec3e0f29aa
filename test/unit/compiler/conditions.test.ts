// Which branches of conditions count as not compiled when a source is judged.
import { expect, test } from 'vitest';
import { withoutUntakenBranches } from '../../../src/cuda-cpp/read/conditions.js';

/** The lines that are left, apart from directives. */
function left(source: string): string[] {
  const macros = new Map([
    ['ARCH', '700'],
    ['EMPTY', ''],
  ]);
  const made = withoutUntakenBranches(source, macros);
  expect(made).toHaveLength(source.length);
  return made.split('\n').filter((line) => line.trim() !== '' && !/^\s*#/.test(line));
}

test.each([
  ['0', false],
  ['1', true],
  ['defined(ARCH)', true],
  ['!defined ARCH', false],
  ['ARCH >= 800', false],
  ['(ARCH >= 600) && ARCH < 750', true],
  ['ARCH / 100 == 7 || UNKNOWN', true],
  ['UNKNOWN', false],
  ['UNKNOWN == 0', true],
  ['defined(ARCH) && ARCH >= 900', false],
  ['1 + 2 * 3 == 7', true],
  ['-1 < 0', true],
  ["700'0L == 7000", true],
])('#if %s', (condition, isTaken) => {
  expect(left(`#if ${condition}\nyes\n#else\nno\n#endif`)).toEqual([isTaken ? 'yes' : 'no']);
});

test.each(['CALL(3)', '__has_include(<x.h>)', 'ARCH & 1', '1 ? 2 : 3', 'EMPTY', '', 'ARCH @ 3', '(ARCH', '1 / 0'])(
  'of an expression that is not read (#if %s), all branches count',
  (condition) => {
    expect(left(`#if ${condition}\na\n#elif 1\nb\n#else\nc\n#endif`)).toEqual(['a', 'b', 'c']);
  },
);

test('the source defines macros, one branch of a chain is taken, and conditions nest', () => {
  expect(left('#define N 3\n#ifdef N\na\n#if N == 2\nb\n#elif N == 3\nc\n#elif 1\nd\n#else\ne\n#endif\n#endif\nf')).toEqual([
    'a',
    'c',
    'f',
  ]);
  expect(left('#if 0\n#define N 1\n#if 1\na\n#endif\n#endif\n#ifdef N\nb\n#endif')).toEqual([]);
  expect(left('#define N 1\n#undef N\n#ifndef N\na\n#endif')).toEqual(['a']);
  expect(left('#define N (2 + 1)\n#define M N\n#if M == 3\na\n#endif')).toEqual(['a']);
  expect(left('#define LOOP LOOP\n#if LOOP\na\n#endif')).toEqual(['a']);
});

test('comments are no directives, and a directive over two lines is read', () => {
  expect(left('/*\n#if 0\n*/\na')).toEqual(['/*', '*/', 'a']);
  expect(left('#if 0 || \\\n 1\na\n#else\nb\n#endif')).toEqual([' 1', 'a']);
  expect(left('#define N \\\n 2\n#if N == 2 && \\\n 0\na\n#else\nb\n#endif')).toEqual([' 2', ' 0', 'b']);
});
