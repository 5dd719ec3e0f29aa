// What only the CPU device's forms of cuda_fp16.h and cuda_bf16.h need; their results are tested in test/conformance/texts/half-numbers.test.ts.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CompileError } from '../../../src/core/base/errors.js';
import { fused, HALF, narrowed, widened } from '../../support/half-numbers.js';
import type { ImageLaunch } from './run-image.js';
import { TextRunner } from './text-runner.js';

let texts: TextRunner;
let directory: string;
beforeAll(() => {
  texts = new TextRunner();
  directory = mkdtempSync(join(tmpdir(), 'millrace-half-'));
});
afterAll(() => {
  texts.close();
  rmSync(directory, { recursive: true, force: true });
});

const ONE: ImageLaunch = { grid: [1, 1, 1], block: [1, 1, 1] };
/** Rounded once, x * y + z is 0x1cf9; rounded twice, it is 0x1d00. */
const [X, Y, Z] = [0x30e3, 0x3a4d, 0xaf63];
const ONCE = fused(HALF, X, Y, Z);
const TWICE = narrowed(HALF, widened(HALF, narrowed(HALF, widened(HALF, X) * widened(HALF, Y))) + widened(HALF, Z));

async function refusalOf(source: string): Promise<CompileError> {
  const error: unknown = await resultsOf(source, 1).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CompileError)) throw new Error('The source compiled.', { cause: error });
  return error;
}

async function resultsOf(source: string, count: number, more: Parameters<TextRunner['run']>[4] = {}): Promise<number[]> {
  const y = new Uint16Array(count);
  await texts.run(source, 'k', ONE, [Uint16Array.of(X, Y, Z), y], more);
  return [...y];
}

const HEAD = '#include <cuda_fp16.h>\n';
const kernelOf = (body: string): string =>
  `extern "C" __global__ void k(const half* x, half* y) { const int at = threadIdx.x; half a = x[at], b = x[1], c = x[2]; ${body} }`;

test('products are fused like those of floats: not without fmad, and not as variables', async () => {
  expect(ONCE).not.toBe(TWICE);
  const body =
    'y[0] = a * b + c; half p = a * b; y[1] = p + c; y[2] = __hadd(__hmul(a, b), c); y[3] = __hadd_rn(__hmul(a, b), c); auto q = a * b; q += c; y[4] = q;';
  expect(await resultsOf(HEAD + kernelOf(body), 5)).toEqual([ONCE, TWICE, ONCE, TWICE, TWICE]);
  const unfused = [TWICE, TWICE, TWICE, TWICE, TWICE];
  expect(await resultsOf(HEAD + kernelOf(body), 5, { fmad: false })).toEqual(unfused);
  expect(await resultsOf(HEAD + kernelOf(body), 5, { options: ['--fmad=false'] })).toEqual(unfused);
});

test('a source that needs the type of a product compiles', async () => {
  const most = 'template <class T> __device__ T most(T p, T q) { return p < q ? q : p; }\n';
  expect(await resultsOf(HEAD + most + kernelOf('y[0] = most(a * b, c); y[1] = true ? a * b : c;'), 2)).toHaveLength(2);
  const trait = `template <class T> struct Is { static const bool half = false; };
    template <> struct Is<half> { static const bool half = true; };\n`;
  expect(await resultsOf(HEAD + trait + kernelOf('y[0] = Is<decltype(a * b)>::half ? a * b : c;'), 1)).toEqual([
    narrowed(HALF, widened(HALF, X) * widened(HALF, Y)),
  ]);
});

test.each([
  ['std::is_same<T, half>::value', '#include <type_traits>\n'],
  ['sizeof(T) == 2', ''],
])('in a template, %s holds for a product', async (says, include) => {
  const kind = `template <class T> __device__ bool is_half(T v) { return ${says}; }\n`;
  expect(await resultsOf(HEAD + include + kind + kernelOf('y[0] = is_half(a * b) ? CUDART_ONE_FP16 : CUDART_ZERO_FP16;'), 1)).toEqual([
    0x3c00,
  ]);
});

test('a source may bring operators of its own', async () => {
  const own = '__device__ half operator+(half p, half q) { return __hsub(p, q); }\n';
  const difference = narrowed(HALF, widened(HALF, X) - widened(HALF, Y));
  const define = '#define __CUDA_NO_HALF_OPERATORS__\n';
  expect(await resultsOf(define + HEAD + own + kernelOf('y[0] = a + b;'), 1)).toEqual([difference]);
  // Behind the preprocessor, because a macro hides the barrier.
  const waits = `#define WAIT { __syncthreads(); }\n`;
  expect(await resultsOf(define + HEAD + waits + own + kernelOf('y[0] = a + b; WAIT y[1] = CUDART_ONE_FP16;'), 2)).toEqual([
    difference,
    0x3c00,
  ]);
  expect(await resultsOf(HEAD + own + kernelOf('y[0] = a + b;'), 1, { options: ['-D__CUDA_NO_HALF_OPERATORS__'] })).toEqual([difference]);
});

test('the header may come from a header of the user, and macros may surround it', async () => {
  writeFileSync(join(directory, 'mine.h'), '#pragma once\n#define N 3\n#define T float\n#include "cuda_fp16.h"\n#include <cuda_bf16.h>\n');
  const source = '#include "mine.h"\n#define x_of(i) x[i]\n' + kernelOf('T v = __half2float(x_of(0)); y[N - 3] = v;');
  expect(await resultsOf(source, 1, { options: [`-I${directory}`] })).toEqual([X]);
});

test('types in branches that are not compiled are not judged', async () => {
  const source = `#if defined(USE_BF16)\n#include <cuda_bf16.h>\n__nv_bfloat16 kept;\n#endif\n${HEAD}${kernelOf('y[0] = a;')}`;
  expect(await resultsOf(source, 1)).toEqual([X]);
  const error = await refusalOf(`${HEAD}#include <mma.h>\n${kernelOf('nvcuda::wmma::fragment<int> f; y[0] = a;')}`);
  expect(error.diagnostics).toMatchObject([{ code: 'K703', line: 2 }]);
});

test('an error in a source with the header has its line and column', async () => {
  const error = await refusalOf(`${HEAD}${kernelOf('y[0] = missing;')}`);
  expect(error.diagnostics).toMatchObject([{ code: 'K702', line: 2, column: expect.any(Number) }]);
  expect(error.message).toContain('missing');
});
