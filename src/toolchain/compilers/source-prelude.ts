// The prelude of a user's source: directives before it that declare the names which nvcc provides without an include. It is the same on both
// devices. It declares no name that the source declares itself, because sources for NVRTC often contain such declarations.
import { declaredTypes } from '../../cuda-cpp/read/declared-types.js';
import { withoutUntakenBranches } from '../../cuda-cpp/read/conditions.js';
import { includesOf } from '../../cuda-cpp/read/directives.js';
import { withoutComments } from '../../cuda-cpp/read/tokens.js';
import { CUDA_MACROS } from '../base/cuda-macros.js';
import { kernelHeaderNames } from '../base/kernel-headers.js';

const FIXED = /^(?:u?int(?:8|16|32|64|ptr|max)_t)$/;
const SHORT: readonly string[] = ['uint', 'ushort', 'ulong', 'uchar', 'ssize_t', 'FILE'];
/** Of programmatic dependent launches. CUDA declares them in a header that nvcc includes. */
const DEPENDENT = /\b(?:cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion)\b/;
/** Lists in braces whose type is `std::initializer_list`: `for (int d : {1, 2})`, `auto list = {1, 2}`. */
const LIST = /\bfor\s*\([^;(){}]*:\s*\{|\bauto\s+\w+\s*=\s*\{/;

export interface SourcePrelude {
  /** Definitions that the headers of `native/kernel_headers` test. */
  readonly directives: string;
  /** The include of the C++ library; empty for a source that does not need it. */
  readonly library: string;
  /** Whether it includes headers that the library does not have. */
  readonly hasOtherHeaders: boolean;
}

/** Reads the source; `options` may define types as macros. */
export function preludeOf(source: string, options: readonly string[] = []): SourcePrelude {
  const text = withoutComments(source);
  const has = (name: string): boolean => new RegExp(`\\b${name}\\b`).test(text);
  // Comments and strings are spaces in `text`, also the names of headers in quotes.
  const includes = includesOf(source, text).map(({ name }) => name);
  // cub/cub.cuh only includes headers of the toolkit, and cuBLAS's headers include those of half.
  const hasOtherHeaders = includes.some((name) => !kernelHeaderNames().has(name) || /^(?:cub\/|cublas)/.test(name));
  // What a source declares only for Windows is not there.
  const types = declaredTypes(/_MSC_VER|_WIN(?:32|64)/.test(text) ? withoutComments(withoutUntakenBranches(source, CUDA_MACROS)) : text);
  const isOwn = (name: string): boolean => types.has(name) || options.some((option) => option.includes(name));
  const own = [...types.keys()].filter((name) => FIXED.test(name)).map((name) => `#define MR_OWN_${name} 1\n`);
  const short = SHORT.filter((name) => has(name) && !isOwn(name)).map((name) => `#define MR_WITH_${name} 1\n`);
  // NVRTC has neither: nvcc accepts C++17's `register`, which has no effect, and takes the system's macros from the compiler of the host.
  const dialect = [has('register') ? '#define register\n' : '', has('__linux__') ? '#ifndef __linux__\n#define __linux__ 1\n#endif\n' : ''];
  // A source with a namespace std of its own declares what it needs.
  const hasLibrary = (has('std') || hasOtherHeaders || LIST.test(text)) && !/\bnamespace\s+std\s*\{/.test(text);
  return {
    directives: [
      ...own,
      ...short,
      ...dialect,
      ...(DEPENDENT.test(text) ? ['#define MR_WITH_DEPENDENT_LAUNCHES 1\n'] : []),
      ...(hasOtherHeaders ? ['#define MR_WITH_LIBRARIES 1\n'] : []),
    ].join(''),
    library: hasLibrary ? libraryWithout(ownNames(text)) : '',
    hasOtherHeaders,
  };
}

/** Names of the host's library that the header mr_std_host.h declares, whatever the source includes, and that a source may give to its own. */
const OF_HOST: readonly string[] =
  'stack queue priority_queue map multimap set function thread mutex exception atomic hex dec fixed scientific flush cin clog'.split(' ');
/** Headers with the names of the library: with its own include, a name of the source is ambiguous in every compiler. */
const isIncluded = (text: string, name: string): boolean => new RegExp(`^[ \\t]*#[ \\t]*include[ \\t]*<${name}>`, 'm').test(text);

/** Those that the source declares itself beside `using namespace std`. */
function ownNames(text: string): readonly string[] {
  if (!/\busing\s+namespace\s+std\b/.test(text)) return [];
  return OF_HOST.filter((name) => {
    if (!text.includes(name) || isIncluded(text, name) || new RegExp(`\\bstd\\s*::\\s*${name}\\b`).test(text)) return false;
    return new RegExp(`(?:\\b(?!(?:return|else|case|new|using|namespace)\\b)\\w+[\\s*&]+|[>*&]\\s*)${name}\\s*[[=;(,){:]`).test(text);
  });
}

/** Under these names, the library declares nothing. */
function libraryWithout(names: readonly string[]): string {
  const include = '#include "mr_std.h"\n';
  return `${names.map((name) => `#define ${name} mr_std_${name}\n`).join('')}${include}${names.map((name) => `#undef ${name}\n`).join('')}`;
}
