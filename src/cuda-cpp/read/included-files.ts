// Replaces includes of the user's own headers, `#include "stencil.h"`, with the text of the files. The parts of the library that read the
// source then see the kernels and types of these files, and remove their host code. NVRTC, which searches no folder by default, needs no file.
//
// A file in angle brackets is searched in the folders of -I, too. Includes of the headers of C, C++ and CUDA toolkits stay. If a source
// includes more than MAX_FILES files or MAX_CHARS characters, its includes in angle brackets stay. If those in quotes alone exceed a limit,
// all stay. The compiler then reads the files from their folders.
import { directivesOf, type Include, includesOf } from './directives.js';
import { withoutComments, wordsOf } from './tokens.js';

export interface InlinedSource {
  readonly source: string;
  /** For each line of the source, its 1-based line in its file. */
  readonly lines: readonly number[];
  /** For each line of the source: 0 for a line of the source as given, otherwise the 1-based index of its file in `files`. */
  readonly of: readonly number[];
  readonly files: readonly string[];
}

/** How files are found. */
export interface FileAccess {
  /** The text of a file; undefined if there is none. */
  readonly read: (path: string) => string | undefined;
  /** A path relative to a folder. */
  readonly resolve: (folder: string, name: string) => string;
  readonly folderOf: (path: string) => string;
}

const MAX_FILES = 200;
const MAX_CHARS = 1 << 20;
/** A source that exceeds this has files that include each other without a guard. */
const MAX_DEPTH = 50;

/** Headers of C, C++ and CUDA by name: they change only with their compiler. */
export const SYSTEM_HEADER: RegExp =
  /^(?:c?(?:assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|threads|time|uchar|wchar|wctype)(?:\.h)?|algorithm|any|array|atomic|barrier|bit|bitset|charconv|chrono|compare|concepts|condition_variable|coroutine|deque|exception|execution|filesystem|format|forward_list|fstream|functional|future|initializer_list|iomanip|ios|iosfwd|iostream|istream|iterator|latch|limits|list|locale|map|memory(?:\.h)?|memory_resource|mutex|new|numbers|numeric|optional|ostream|queue|random|ranges|ratio|regex|scoped_allocator|semaphore|set|shared_mutex|source_location|span|sstream|stack|stdexcept|stop_token|streambuf|string|string_view|syncstream|system_error|thread|tuple|type_traits|typeindex|typeinfo|unordered_map|unordered_set|utility|valarray|variant|vector|version|(?:cooperative_groups|cub|cuda|curand|nv|thrust)\/[\w./]+|cub|cub\.cuh|cooperative_groups\.h|cuda(?:(?:D3D(?:9|1[01])|EGL|GL|Profiler|VDPAU)?(?:Typedefs)?|_(?:awbarrier|bf16|device_runtime_api|egl_interop|fp\d+|gl_interop|occupancy|pipeline|profiler_api|runtime|stdint|surface_types|texture_types|vdpau_interop)(?:_(?:api|helpers|primitives))?)?\.(?:h|hpp)|curand(?:_(?:discrete2?|globals|kernel|lognormal|mrg32k3a|mtgp32\w*|normal(?:_static)?|philox4x32_x|poisson|precalc|uniform))?\.(?:h|hpp)|nv(?:functional|(?:blas|Fatbin|JitLink|ml|PTXCompiler|rtc)\.h)|(?:builtin_types|channel_descriptor|crt\/\w+|device_(?:(?:atomic_|double_)?functions|launch_parameters|types)|driver_(?:functions|types)|host_(?:config|defines)|library_types|math_constants|math_functions|mma|sm_\d\d_\w+|surface_(?:(?:indirect_)?functions|types)|texture_(?:(?:fetch|indirect)_functions|types)|vector_functions|vector_types)\.(?:h|hpp))$/;
/** Headers of CUDA's samples and libraries of the host, which native/kernel_headers has. */
const HOST_HEADER =
  /^(?:helper_(?:cuda|functions|string|timer)|cu(?:blas|blas_v2|fft|dnn|rand|sparse|solverDn|Complex)|nccl|mpi|omp|nvml|nvToolsExt)\.h$/;
const ONCE = /^[ \t]*#[ \t]*pragma[ \t]+once\b/m;

/** The folders that options of NVRTC name: `-I`, `--include-path`. */
export function includeFolders(options: readonly string[]): string[] {
  return options.flatMap((option, at) => {
    const match = /^(?:-I|--include-path)(?:=|\s*)(.*)$/s.exec(option);
    return match ? [match[1] || (options[at + 1] ?? '')] : [];
  });
}

/** The source with its headers; undefined if it includes none, or too much. `folder`: where the source is. */
export function inlineIncludes(source: string, folder: string, folders: readonly string[], access: FileAccess): InlinedSource | undefined {
  if (!/^[ \t]*#[ \t]*include[ \t]*["<]/m.test(source)) return undefined;
  for (const hasAngles of folders.length === 0 ? [false] : [true, false]) {
    const inliner = new Inliner(folders, access, hasAngles);
    inliner.put(source, 0, folder, 0);
    if (!inliner.isTooLarge) return inliner.result();
  }
  return undefined;
}

class Inliner {
  readonly #folders: readonly string[];
  readonly #access: FileAccess;
  /** Whether files in angle brackets are put in, too. */
  readonly #hasAngles: boolean;
  readonly #text: string[] = [];
  readonly #lines: number[] = [];
  readonly #of: number[] = [];
  readonly #files: string[] = [];
  /** Files that take effect once, and were included under no condition. */
  readonly #done: Set<string> = new Set();
  /** Files with `#pragma once` that were included under a condition. */
  readonly #marked: Set<string> = new Set();
  readonly #open: string[] = [];
  /** The number of conditions around the present line, without the include guards of files. */
  #conditions = 0;
  #chars = 0;
  #isTooLarge = false;

  constructor(folders: readonly string[], access: FileAccess, hasAngles: boolean) {
    this.#folders = folders;
    this.#access = access;
    this.#hasAngles = hasAngles;
  }

  get isTooLarge(): boolean {
    return this.#isTooLarge;
  }

  result(): InlinedSource | undefined {
    if (this.#files.length === 0) return undefined;
    return { source: this.#text.join('\n'), lines: this.#lines, of: this.#of, files: this.#files };
  }

  /** `guards`: the conditions that only guard the file. */
  put(text: string, file: number, folder: string, guards: number): void {
    const outside = this.#conditions;
    this.#conditions -= guards;
    const plain = withoutComments(text);
    const directives = new Map(directivesOf(plain).map(({ name, start }) => [start, name]));
    const includes = new Map(includesOf(text, plain).map((one) => [one.start, one]));
    let start = 0;
    for (const [at, line] of text.split('\n').entries()) {
      const [directive = '', include] = [directives.get(start), includes.get(start)];
      start += line.length + 1;
      if (include && this.#include(include, file, at + 1, folder)) continue;
      if (directive === 'endif') this.#conditions--;
      else if (directive.startsWith('if')) this.#conditions++;
      this.#add(line, file, at + 1);
      if (this.#isTooLarge) return;
    }
    // Also for a file whose conditions do not end in it.
    this.#conditions = outside;
  }

  /** Puts in an included file. Returns false if the line stays. */
  #include({ name, isQuoted }: Include, file: number, number: number, folder: string): boolean {
    if (name === '' || !(isQuoted || this.#hasAngles) || SYSTEM_HEADER.test(name) || HOST_HEADER.test(name)) return false;
    const found = this.#find(name, isQuoted ? [folder] : []);
    if (found === undefined) return false;
    const { path, text } = found;
    const isOnce = ONCE.test(text);
    const guard = isOnce ? undefined : guardOf(text);
    const mayRepeat = !isOnce && guard === undefined;
    if (this.#done.has(path) || (!mayRepeat && this.#open.includes(path))) {
      this.#add('', file, number);
      return true;
    }
    if (!mayRepeat && this.#conditions === 0) this.#done.add(path);
    this.#chars += text.length;
    this.#isTooLarge ||= this.#chars > MAX_CHARS || this.#files.length >= MAX_FILES || this.#open.length >= MAX_DEPTH;
    if (this.#isTooLarge) return true;
    if (isOnce && this.#conditions > 0) this.#marked.add(path);
    const isMarked = this.#marked.has(path);
    // What `#pragma once` does: only the preprocessor knows whether an earlier include under a condition was read.
    const mark = `MR_INCLUDED_${path.replace(/\W/g, (sign) => `_${sign.charCodeAt(0)}_`)}`;
    if (isMarked) for (const directive of [`#ifndef ${mark}`, `#define ${mark}`]) this.#add(directive, file, number);
    this.#open.push(path);
    const index = this.#files.indexOf(path) + 1 || this.#files.push(path);
    const plain = text.replace(/^\uFEFF/, '').replace(ONCE, (pragma) => ' '.repeat(pragma.length));
    this.put(plain, index, this.#access.folderOf(path), guard === undefined ? 0 : 1);
    this.#open.pop();
    if (isMarked) this.#add('#endif', file, number);
    return true;
  }

  #find(name: string, first: readonly string[]): { readonly path: string; readonly text: string } | undefined {
    for (const from of [...first, ...this.#folders]) {
      const path = this.#access.resolve(from, name);
      const text = this.#access.read(path);
      if (text !== undefined) return { path, text };
    }
    return undefined;
  }

  #add(line: string, file: number, number: number): void {
    this.#text.push(line);
    this.#lines.push(number);
    this.#of.push(file);
  }
}

/** The macro of the include guard around a file. */
function guardOf(text: string): string | undefined {
  const directives = directivesOf(withoutComments(text));
  const [first, second] = directives;
  const words = wordsOf(first?.rest ?? '').filter((word) => word !== '(');
  const isGuard = first?.name === 'ifndef' || (first?.name === 'if' && words[0] === '!' && words[1] === 'defined');
  const name = words[first?.name === 'ifndef' ? 0 : 2];
  if (!isGuard || name === undefined || second?.name !== 'define' || second.rest.trim() !== name) return undefined;
  let depth = 0;
  for (const [at, { name: directive }] of directives.entries()) {
    if (directive.startsWith('if')) depth++;
    else if (directive === 'endif') depth--;
    // The guard must surround the whole file.
    if (depth === 0 && at < directives.length - 1) return undefined;
  }
  return name;
}
