// Checks the files that CUDA C++ source includes by name, and rejects those that are not regular files: a device or a pipe has no end, so a
// compiler would read it until its time limit, and NVRTC in this process until memory runs out. Names in macros and includes of headers are
// not checked.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { withoutComments } from '../../compiler/cuda/source-scan.js';
import type { BuildSpec } from '../../core/channel/build.js';
import { compileError, titleOf } from '../base/diagnostics.js';

const INCLUDE = /^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]/gm;

/** Throws a CompileError K702 for an include that exists and is not a file. */
export function refuseEndlessIncludes(spec: BuildSpec): void {
  const folders = [process.cwd(), ...includeFolders(spec.options)];
  for (const { 1: name = '', 0: text, index } of spec.source.matchAll(INCLUDE)) {
    if (!folders.some((folder) => isEndless(resolve(folder, name)))) continue;
    const before = spec.source.slice(0, index).split('\n');
    const message = `${titleOf(spec)} includes '${name}', which is not a file.`;
    throw compileError(spec, message, [{ code: 'K702', line: before.length, column: text.indexOf(name) + 1, message }]);
  }
}

/** Headers of C, C++ and CUDA by name: they change only with their compiler. */
const SYSTEM_HEADER =
  /^(?:c?(?:assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|threads|time|uchar|wchar|wctype)(?:\.h)?|algorithm|any|array|atomic|barrier|bit|bitset|charconv|chrono|compare|concepts|condition_variable|coroutine|deque|exception|execution|filesystem|format|forward_list|fstream|functional|future|initializer_list|iomanip|ios|iosfwd|iostream|istream|iterator|latch|limits|list|locale|map|memory|memory_resource|mutex|new|numbers|numeric|optional|ostream|queue|random|ranges|ratio|regex|scoped_allocator|semaphore|set|shared_mutex|source_location|span|sstream|stack|stdexcept|stop_token|streambuf|string|string_view|syncstream|system_error|thread|tuple|type_traits|typeindex|typeinfo|unordered_map|unordered_set|utility|valarray|variant|vector|version|(?:cooperative_groups|cub|cuda|curand|nv|thrust)(?:\/[\w./]+|[\w.]*)|(?:builtin_types|channel_descriptor|crt\/\w+|device_\w+|driver_\w+|host_\w+|library_types|math_constants|math_functions|mma|sm_\w+|surface_\w+|texture_\w+|vector_functions|vector_types)\.(?:h|hpp))$/;
const READS_FILES = /\b(?:include|include_next|import|embed|__has_include|__has_include_next|__has_embed)\b/g;
const SYSTEM_INCLUDE = /^[ \t]*#[ \t]*include[ \t]*<([^>\n]*)>/gm;

/**
 * Whether source, options and compiler determine the compiled image. Headers of the user's may change although the source does not.
 * `hasFolders`: the compiler's own command line names header folders.
 */
export function isSelfContained({ source, options }: BuildSpec, hasFolders: boolean): boolean {
  if (options.some((option) => /^(?:-I|--include-path|-include|--pre-include)/.test(option))) return false;
  const spliced = source.replace(/(?:\\|\?\?\/)[ \t]*\r?\n/g, '');
  if (spliced.search(READS_FILES) < 0) return true;
  if (hasFolders) return false;
  const text = withoutComments(spliced);
  const system = [...text.matchAll(SYSTEM_INCLUDE)].filter(([, name = '']) => SYSTEM_HEADER.test(name.trim())).length;
  return (text.match(READS_FILES) ?? []).length === system;
}

function includeFolders(options: readonly string[]): string[] {
  return options.flatMap((option, at) => {
    const match = /^(?:-I|--include-path)(?:=|\s*)(.*)$/s.exec(option);
    return match ? [match[1] || (options[at + 1] ?? '')] : [];
  });
}

function isEndless(path: string): boolean {
  try {
    const facts = statSync(path);
    return !facts.isFile() && !facts.isDirectory();
  } catch {
    return false;
  }
}
