// Sources of real kernels with mistakes, and the steps before a compiler receives a source.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { compose, exportsOf } from '../../../src/toolchain/compilers/composed-source.js';
import { hasMatchingBrackets, tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { ArgumentError, CompileError } from '../../../src/core/base/errors.js';
import { i32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';

const here = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
const LAUNCHING = `__global__ void leaf(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += n; }
template <class T, int BY> __global__ void scale(T* x) { x[threadIdx.x] *= BY; }
extern "C" __global__ void parent(int* x, int n) {
  dim3 grid((n + 63) / 64);
  leaf<<<grid, 64>>>(x, n);
  scale<int, 3><<<1, dim3(64), 0, cudaStreamTailLaunch>>>(x);
}`;

/** Pieces of a file around its kernels, because whole prefixes would be long. */
function pieces(text: string): string[] {
  const at = [...text.matchAll(/^(?:template[^\n]*\n)?(?:extern "C" )?__global__/gm)].map(({ index }) => index);
  return at.map((from, n) => text.slice(from, at[n + 1] ?? text.length));
}

export const TEXTS: readonly string[] = [...pieces(here('waiting.cu')), ...pieces(here('parts.cu')), LAUNCHING];

const EXTRA = [
  '(',
  ')',
  '{',
  '}',
  '[',
  ']',
  '<',
  '>',
  '<<<',
  '>>>',
  ';',
  ',',
  '::',
  '"',
  '?',
  ':',
  '&&',
  '||',
  'template',
  'return',
  'operator',
  '__syncthreads(',
  '__shared__',
  '[&]',
  '->',
  '__global__',
  'namespace',
  'struct',
  '#if 1',
  '/*',
  '//',
];

/** A source with mutated tokens: each removed, doubled, swapped with another, or with a token inserted before it. */
export const soups: fc.Arbitrary<string> = fc
  .tuple(
    fc.nat(TEXTS.length - 1),
    fc.array(fc.tuple(fc.constantFrom('out', 'twice', 'swap', 'put'), fc.nat(), fc.nat()), { minLength: 1, maxLength: 4 }),
  )
  .map(([which, mistakes]) => {
    const text = TEXTS[which]!;
    const { tokens } = tokenize(text);
    const words = tokens.map((token, i) => text.slice(tokens[i - 1]?.end ?? 0, token.end));
    for (const [how, one, other] of mistakes) {
      const [i, j] = [one % words.length, other % words.length];
      if (how === 'out') words[i] = ' ';
      if (how === 'twice') words[i] += ` ${words[i]}`;
      if (how === 'swap') [words[i], words[j]] = [words[j]!, words[i]!];
      if (how === 'put') words[i] = `\n${EXTRA[other % EXTRA.length]!}\n${words[i]}`;
    }
    return words.join('');
  });

/** The steps on the main thread and in the builder before compilation. Throws errors other than those about the source. */
export function read(source: string): void {
  const name = /__global__[^(]*?(\w+)\s*\(/.exec(source)?.[1] ?? 'k';
  const typed = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof CompileError || error instanceof ArgumentError)) throw error;
    }
  };
  typed(() => cudaKernel(name, { x: inout(i32), n: i32 }, source));
  const { tokens } = tokenize(source);
  // Those the compiler has as they are.
  if (!hasMatchingBrackets(tokens)) return;
  const base = {
    entry: name,
    name,
    source,
    options: [],
    fmad: true,
    isBounded: false,
    isChecked: false,
    mapping: { file: 'kernel.cu', lines: [] },
  };
  const isLaunching = source.includes('<<<');
  for (const mayLoop of [true, false]) {
    typed(() =>
      compose({ spec: { ...base, isLaunching }, exports: { kernels: [name] }, checked: [] }, { source, tokens, directives: '' }, mayLoop),
    );
  }
  typed(() => exportsOf(source));
}
