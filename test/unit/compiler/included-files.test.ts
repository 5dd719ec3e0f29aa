// Which includes of a CUDA C++ source are replaced with the files, and where the lines then come from.
import path from 'node:path';
import { expect, test } from 'vitest';
import { type FileAccess, inlineIncludes } from '../../../src/cuda-cpp/read/included-files.js';

function access(files: Readonly<Record<string, string>>): FileAccess {
  return { read: (name) => files[name], resolve: path.posix.resolve, folderOf: path.posix.dirname };
}

/** The lines, each with its file and line. */
function inlined(source: string, files: Readonly<Record<string, string>>, folders: readonly string[] = []): string[] | undefined {
  const made = inlineIncludes(source, '/p', folders, access(files));
  return made?.source
    .split('\n')
    .map((line, at) => `${made.of[at] === 0 ? 'source' : made.files[made.of[at]! - 1]}:${made.lines[at]} ${line}`);
}

test('a header takes the place of its include, and may include others beside itself', () => {
  expect(inlined('a\n#include "in/x.h"\nb', { '/p/in/x.h': 'x1\n#include "y.h"\nx3', '/p/in/y.h': 'y' })).toEqual([
    'source:1 a',
    '/p/in/x.h:1 x1',
    '/p/in/y.h:1 y',
    '/p/in/x.h:3 x3',
    'source:3 b',
  ]);
});

test('the headers of C, C++ and CUDA stay, others take the place of their includes whatever their names begin with', () => {
  const own = ['cuda_utils.h', 'cuda_common.h', 'thrust_functions.h', 'nvector.h', 'cub_helper.cuh', 'curandom.h'];
  for (const name of own) expect(inlined(`#include "${name}"`, { [`/p/${name}`]: 'x' })).toEqual([`/p/${name}:1 x`]);
  const theirs = [
    'cuda.h',
    'cuda_runtime.h',
    'cuda_runtime_api.h',
    'cuda_fp16.h',
    'cuda_fp16.hpp',
    'cuda_pipeline_primitives.h',
    'cudaGL.h',
  ];
  const more = ['curand_kernel.h', 'cub/cub.cuh', 'thrust/sort.h', 'cuda/atomic', 'nv/target', 'cooperative_groups.h', 'nvrtc.h'];
  for (const name of [...theirs, ...more]) expect(inlined(`#include "${name}"`, { [`/p/${name}`]: 'x' })).toBeUndefined();
});

test('folders of options follow the folder of the file', () => {
  const files = { '/p/x.h': 'beside', '/q/x.h': 'far', '/q/y.h': 'found' };
  expect(inlined('#include "x.h"\n#include "y.h"', files, ['/q'])).toEqual(['/p/x.h:1 beside', '/q/y.h:1 found']);
});

test.each([
  ['#pragma once', '#pragma once\nx', ['            ', 'x']],
  ['a guard', '#ifndef X\n#define X\nx\n#endif', ['#ifndef X', '#define X', 'x', '#endif']],
  ['a guard by defined()', '#if !defined(X)\n#define X\nx\n#endif', ['#if !defined(X)', '#define X', 'x', '#endif']],
])('a file with %s is put once', (_what, text, lines) => {
  const made = inlined('#include "x.h"\n#include "x.h"\n#include "../p/x.h"\nend', { '/p/x.h': text });
  expect(made?.map((line) => line.replace(/^\S+ /, ''))).toEqual([...lines, '', '', 'end']);
});

test('a file without a guard is put as often as it is included', () => {
  expect(inlined('#include "x.h"\n#include "x.h"', { '/p/x.h': 'x' })).toEqual(['/p/x.h:1 x', '/p/x.h:1 x']);
});

test('the preprocessor decides about a file that is included under a condition', () => {
  const source = '#if A\n#include "x.h"\n#endif\n#include "x.h"';
  const once = inlined(source, { '/p/x.h': '#pragma once\nx' })?.map((line) => line.replace(/^\S+ /, ''));
  const mark = once?.[1]?.replace('#ifndef ', '');
  expect(once).toEqual([
    '#if A',
    `#ifndef ${mark}`,
    `#define ${mark}`,
    '            ',
    'x',
    '#endif',
    '#endif',
    `#ifndef ${mark}`,
    `#define ${mark}`,
    '            ',
    'x',
    '#endif',
  ]);
});

test('files that include each other end', () => {
  const files = { '/p/a.h': '#pragma once\n#include "b.h"\na', '/p/b.h': '#pragma once\n#include "a.h"\nb' };
  expect(inlined('#include "a.h"', files)?.map((line) => line.replace(/^\S+ /, ''))).toEqual([
    '            ',
    '            ',
    '',
    'b',
    'a',
  ]);
  expect(inlined('#include "x.h"', { '/p/x.h': '#include "x.h"' })).toBeUndefined();
});

test('folders of options give files in angle brackets, unless a library is too large', () => {
  const files = { '/p/x.h': 'beside', '/q/x.h': 'far', '/q/math.h': 'own', '/q/large.h': 'x\n'.repeat(600_000), '/p/y.h': 'y' };
  expect(inlined('#include <x.h>\n#include <math.h>', files, ['/q'])).toEqual(['/q/x.h:1 far', 'source:2 #include <math.h>']);
  expect(inlined('#include <large.h>\n#include "y.h"', files, ['/q'])).toEqual(['source:1 #include <large.h>', '/p/y.h:1 y']);
});

test.each([
  ['in angle brackets, without folders,', '#include <x.h>'],
  ['of a toolkit', '#include "cuda_runtime.h"\n#include "cub/cub.cuh"\n#include "helper_cuda.h"'],
  ['in comments', '// #include "x.h"\n/*\n#include "x.h"\n*/'],
  ['by a macro', '#include NAME'],
  ['of a file that is nowhere', '#include "nowhere.h"'],
])('an include %s stays', (_what, source) => {
  const files = { '/p/x.h': 'x', '/p/cuda_runtime.h': 'x', '/p/cub/cub.cuh': 'x', '/p/helper_cuda.h': 'x' };
  expect(inlined(source, files)).toBeUndefined();
});

const LIKE_CUDAS = ['cuda_common.h', 'cuda_utils.cuh', 'cudautil.h', 'cub_helpers.cuh', 'curand_wrap.h', 'nvmath.h', 'cuda.cuh'];
const LIKE_ITS_PARTS = [
  'cudaImage.h',
  'cudaSort.hpp',
  'curandStates.h',
  'device_utils.h',
  'driver_api.h',
  'host_code.h',
  'texture_cache.h',
  'sm_common.h',
];
test.each([...LIKE_CUDAS, ...LIKE_ITS_PARTS])("a user's header whose name begins as CUDA's do: %s", (name) => {
  expect(inlined(`#include "${name}"`, { [`/p/${name}`]: 'x' })).toEqual([`/p/${name}:1 x`]);
});

test.each([
  'cuda.h',
  'cuda_runtime.h',
  'cuda_fp16.h',
  'cuda_bf16.hpp',
  'cudaD3D11.h',
  'cudaProfiler.h',
  'cudaTypedefs.h',
  'device_launch_parameters.h',
  'device_atomic_functions.h',
  'host_defines.h',
  'sm_60_atomic_functions.h',
  'texture_fetch_functions.h',
  'cuda_pipeline_primitives.h',
  'cub/cub.cuh',
  'curand_kernel.h',
  'cooperative_groups.h',
])("CUDA's own header stays: %s", (name) => {
  expect(inlined(`#include "${name}"`, { [`/p/${name}`]: 'x' })).toBeUndefined();
});

test('a large library stays as a whole', () => {
  const large = { '/p/x.h': 'x\n'.repeat(600_000), '/p/y.h': 'y' };
  expect(inlined('#include "y.h"\n#include "x.h"', large)).toBeUndefined();
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`/p/${n}.h`, `#include "${n + 1}.h"\n`]));
  expect(inlined('#include "0.h"', many)).toBeUndefined();
});
