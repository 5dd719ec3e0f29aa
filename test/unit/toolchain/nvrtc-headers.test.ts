// The compilers of GPUs take the sources of test/cuda-texts: NVRTC with the headers of this package, in this process and without a GPU, and
// nvcc with its own, which shows that the files are CUDA C++.
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { HEADER_DIRECTORY } from '../../../src/toolchain/base/kernel-headers.js';
import { NvrtcCompiler } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { ADDRESS_SPACE_CASES } from '../../cuda-texts/address-space-cases.js';
import { CALLABLE_CASES } from '../../cuda-texts/callable-cases.js';
import { HEADER_CASES } from '../../cuda-texts/header-cases.js';
import { NAME_CASES, TEMPLATE_CASES } from '../../cuda-texts/name-cases.js';
import { PROGRAM_CASES, PROGRAM_TEMPLATE_CASES } from '../../cuda-texts/program-cases.js';
import { PUBLISHED_CASES } from '../../cuda-texts/published-cases.js';
import { type TextCase, textOf } from '../../cuda-texts/text-case.js';
import { TEXTURE_TEXTS, type TextureText } from '../../cuda-texts/texture-cases.js';
import { toolkitHeaders } from '../../../src/toolchain/compilers/toolkit-headers.js';
import { CompileError } from '../../../src/core/base/errors.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { type CudaParams, inout } from '../../../src/core/kernels/kernel.js';
import { textsIn } from '../../support/kept-output.js';
import { IS_LONG } from '../../support/long.js';
import { checkWithNvcc, hasNvcc } from '../../support/nvcc.js';
import { RTC, RTC_MISSING } from '../../support/rtc.js';

type Text = Omit<TextureText, 'params'> & { readonly params: object; readonly options?: readonly string[] };
const CASES: readonly (readonly [string, TextCase | TextureText])[] = [
  ...ADDRESS_SPACE_CASES,
  ...CALLABLE_CASES,
  ...HEADER_CASES,
  ...NAME_CASES,
  ...TEMPLATE_CASES,
  ...PROGRAM_CASES.filter(({ file }) => file !== 'launched-by-kernels'),
  ...PROGRAM_TEMPLATE_CASES,
  ...Object.values<TextureText>(TEXTURE_TEXTS),
  ...PUBLISHED_CASES,
].map((one) => [`${one.file}: ${one.kernel}`, one]);

const HEAD = path.join(HEADER_DIRECTORY, 'mr_nvcc.h');
/**
 * nvcc refuses functions of the device without __device__, types that the system's headers declare too, functions of the library that C++17 does not call constexpr, and headers of
 * libraries that not every toolkit has.
 */
const OWN: ReadonlySet<string> = new Set([
  'algorithms',
  'helpers-of-both',
  'launched-by-kernels',
  'host-types',
  'own-types',
  'std-values',
  'streams-and-graphs',
  'tuples-and-arrays',
  'unknown-host-types',
]);

function specOf({ file, kernel, params, options = [] }: Text): BuildSpec {
  return cudaKernel(kernel, params as CudaParams, textOf(file), { options }).build as BuildSpec;
}

describe.skipIf(RTC === undefined)(`NVRTC${RTC === undefined ? `, skipped: ${RTC_MISSING}` : ''}`, () => {
  test.each(CASES)('%s', { timeout: 60_000 }, async (_file, one) => {
    const image = await new NvrtcCompiler(RTC!, 'sm_90').compile(specOf(one));
    expect(Buffer.from(image).subarray(0, 4).toString('latin1')).toBe('\x7fELF');
  });
});

describe.skipIf(RTC === undefined)('NVRTC', () => {
  const build = (source: string, options: readonly string[] = []): Promise<Uint8Array> =>
    new NvrtcCompiler(RTC!, 'sm_90').compile(cudaKernel('k', { y: inout(f32) }, source, { options }).build as BuildSpec);

  test('messages have the lines of the source, behind its head and the code of the host', async () => {
    const source = `#include <algorithm>\nint main() { k<<<1, 1>>>(0); }\n__global__ void k(float* y) {\n  y[0] = std::max(y[0], undeclared);\n}`;
    const error = await build(source).catch((reason: unknown) => reason as CompileError);
    expect(error).toBeInstanceOf(CompileError);
    const { log, diagnostics } = error as CompileError;
    expect(log).toContain(`${diagnostics[0]!.file}(${diagnostics[0]!.line}): error: identifier "undeclared" is undefined`);
  });

  test('macros of the options apply to the source, and not to the headers', async () => {
    const source =
      '#include <type_traits>\n__global__ void k(T* y) { static_assert(std::is_same_v<T, float> && min_size == 3, ""); y[0] = value; }';
    await build(source, ['-DT=float', '-Dvalue=2', '--define-macro=min_size=3', '-D', 'type=1']);
    await build('#include <cassert>\n__global__ void k(float* y) { assert(no such words); y[0] = 1; }', ['-DNDEBUG']);
  });

  test.skipIf(toolkitHeaders(RTC?.path ?? '').length === 0)(
    "CUDA's own libraries come from the toolkit (skipped without one)",
    { timeout: 60_000 },
    async () => {
      await build(`#include <cooperative_groups.h>
#include <cub/cub.cuh>
#include <cuda/std/limits>
#include <cuda_fp16.h>
#include <mma.h>
#include <algorithm>
#include <cstdint>
#include <limits>
__global__ void k(float* y) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  const float sum = Reduce(storage).Sum(y[threadIdx.x]);
  const int64_t wide = std::numeric_limits<int64_t>::max();
  if (cooperative_groups::this_thread_block().thread_rank() == 0)
    y[0] = std::min(sum, cuda::std::numeric_limits<float>::max()) + __half2float(__float2half(1.5f)) + (wide > 0);
}`);
    },
  );
});

test.skipIf(!hasNvcc)('nvcc takes the files as they are (skipped without nvcc)', { timeout: 300_000 }, () => {
  const files = [...new Set(CASES.map(([, { file }]) => file))].filter((file, at) => !OWN.has(file) && (IS_LONG || at % 9 === 0));
  const options = ['-w', '-std=c++17', '--expt-relaxed-constexpr', '-include', HEAD];
  checkWithNvcc(files.map(textOf), options, textsIn(HEADER_DIRECTORY));
});
