// Removes host code from CUDA C++ source: main, functions that launch kernels and call CUDA's API, and declarations that only these use. A
// function without __device__ counts as a device function if device code names it, so sources that omit the specifier keep their functions.
// Spaces replace the removed code, so lines, columns and directives stay.
//
// Lists of names tell what is the host's in members, classes and aliases, and in functions and variables whose names device code uses too. Nothing
// else in the text does: what a name stands for is in headers of the system, which are not read here. What device code does not name needs no list.
import { joinedNames } from './joined-names.js';
import { type DeclarationText, declarationsOf, OF_HOST_MACRO } from '../read/declarations.js';
import { directivesOf, type Macro, macrosIn, withoutDirectives, withoutIncludes } from '../read/directives.js';
import { closing, type SourceToken, withoutComments, wordsOf } from '../read/tokens.js';

/** Libraries of the host by their prefixes; CUDA's complex numbers, textures and surfaces are for both. */
const API =
  /^(?:cuda(?!(?:Texture|Surface)Object_t$|ReadMode|TextureReadMode|BoundaryMode|SurfaceBoundaryMode)[A-Z]\w*|cu(?!C(?:add|sub|mul|div|abs|fma|real|imag|onj|omplex)|Conj|Complex|Float|Double)[A-Z]\w*|cublas\w+|cufft\w+|curand(?!State)[A-Z]\w*|cudnn\w+|cusparse\w+|cusolver\w+|nccl[A-Z]\w+|nvml\w+|nvtx[A-Z]\w+|pthread_\w+|MPI_\w+|omp_\w+|glut?[A-Z]\w+|thrust|checkCudaErrors)$/;
/** Names that no code of a device uses. */
const OF_HOST: ReadonlySet<string> = new Set(
  '<<< throw try catch FILE fopen fclose fread fwrite fgets fscanf fprintf sscanf scanf snprintf fflush posix_memalign aligned_alloc getenv atoi atof perror usleep srand lrand48 drand48 srand48 pid_t getpid fork waitpid timeval timespec timezone strdup strlen strcpy strcat strcmp strncmp strtok qsort stderr stdout ostream istream ofstream ifstream stringstream cout cerr gettimeofday clock_gettime host_vector device_vector'.split(
    ' ',
  ),
);
/** Names that device code may give to something of its own; in `std` they are the host's. */
const OF_STD: ReadonlySet<string> = new Set(
  'string vector map set list deque queue unordered_map unordered_set function unique_ptr shared_ptr thread mutex chrono atomic_int atomic_uint atomic_bool atomic_flag atomic_size_t cout cerr mt19937 random_device default_random_engine runtime_error exception atomic mt19937_64 ostringstream istringstream iostream fstream future condition_variable lock_guard uniform_int_distribution uniform_real_distribution normal_distribution'.split(
    ' ',
  ),
);
/** Matches a source that may contain host code. */
const MAY_BE_HOST =
  /\bmain\s*\(|<<<|__host__|\bcu(?:da|blas|rand|fft|dnn)[A-Z]|\bcu[A-Z]\w+\s*\(|\b(?:std|FILE|fopen|fprintf|thrust|cout|cerr|malloc|rand|srand|exit|timeval|gettimeofday)\b/;
const OF_DEVICE: ReadonlySet<string> = new Set(['__global__', '__device__', '__constant__', '__shared__', '__managed__']);

/** Whether a declaration is kept, removed, or kept if a kept declaration names it. */
type Fate = 'kept' | 'removed' | 'named';

/** The source without host code; the same string if there is none. */
export function withoutHostCode(source: string): string {
  const text = withoutComments(source);
  if (!MAY_BE_HOST.test(text)) return source;
  const instantiating = instantiatingMacros(macrosIn(text));
  const left = removing(source, text, (one, head, isEvident, ofDevice, calledOnDevice) => {
    if (isOfDevice(head)) return 'kept';
    // CUDA's compilers let members of both sides call it.
    if (isHostMember(one, head) && !isEvident && calledOnDevice.has(one.name) && !ofDevice.has(one.name)) return 'kept';
    if (one.kind === 'function' && (one.name === 'main' || head.includes('__host__')))
      return one.isMember && one.name === 'main' ? 'kept' : 'removed';
    if (one.kind === 'function' && (isEvident || ofDevice.has(one.name))) return one.isMember && !isEvident ? 'kept' : 'removed';
    if (one.kind === 'function') return one.isMember ? 'kept' : 'named';
    // `template void reduce<int>(...)`: code of a device needs no explicit instantiation, and the host's template may be gone.
    if (one.kind === 'prototype' && head[0] === 'template' && head[1] !== '<') return 'removed';
    if (one.kind === 'other' && instantiating.has(head[0]!)) return 'removed';
    if (one.kind === 'prototype') return one.isMember ? 'kept' : 'named';
    if (one.kind === 'variable' && isEvident) return one.isMember ? 'kept' : 'removed';
    // A variable without a name is not followed.
    if (one.kind === 'variable') return one.isMember || one.name === '' ? 'kept' : 'named';
    if (one.kind === 'using') return one.isMember || one.name === '' ? 'kept' : 'named';
    if (one.kind === 'alias') return isEvident && !one.isMember && one.name !== '' ? 'named' : 'kept';
    // A class without a name is not followed.
    if (one.kind === 'class') return isEvident && one.name !== '' ? 'named' : 'kept';
    return 'kept';
  });
  return withoutUnusedIncludes(left, [THRUST, CURAND, OF_SYSTEM]);
}

/** A library whose headers are useless if nothing matches `use`. */
export interface Library {
  /** Matches the names of its headers. */
  readonly headers: RegExp;
  readonly use: RegExp;
}

/** Headers of the system and of graphics, which declare nothing for devices. */
const OF_SYSTEM: Library = {
  headers:
    /^(?:(?:sys|linux|asm|arpa|net|netinet|GL|EGL|GLFW|X11|nvtx3)\/.*|(?:err|error|complex|dirent|dlfcn|glob|ifaddrs|netdb|poll|pwd|grp|semaphore|spawn|syslog|termios|ucontext|numa|libgen|cpuid|[a-z]mmintrin|immintrin|x86intrin|cufftXt|cufftw|cublasLt|cublasXt|cudaGL|cudaEGL|cuda_egl_interop|nvrtc)\.h)$/,
  use: /(?!)/,
};

/** Not every toolkit has cuRAND's headers. */
const CURAND: Library = { headers: /^curand(?:_kernel|_uniform|_normal)?\.h$/, use: /\bcurand/i };

/** NVRTC compiles little of it, and the host uses it more than kernels do. */
const THRUST: Library = { headers: /^thrust\//, use: /\bthrust\b/ };

/** Replaces with spaces the includes of libraries that the code does not use. */
export function withoutUnusedIncludes(source: string, libraries: readonly Library[]): string {
  const text = withoutComments(source);
  const code = withoutDirectives(text);
  const unused = libraries.filter(({ use }) => !use.test(code));
  return withoutIncludes(source, text, (name) => unused.some(({ headers }) => headers.test(name)));
}

/**
 * The source with only those kernels, functions, types and variables that the kernels `roots` need, and in a module all that says it is of the
 * device; the same string if nothing else is there. For sources of which a device cannot compile the rest. `roots` are C++ names with the
 * arguments of templates, which may name types.
 */
export function onlyFor(source: string, roots: readonly string[], isModule = false): string {
  const words = new Set(roots.flatMap((root) => root.match(/[A-Za-z_$][\w$]*/g) ?? []));
  const text = withoutComments(source);
  const keep = (one: DeclarationText, head: readonly string[]): Fate => {
    const isFunction = one.kind === 'function' || one.kind === 'prototype';
    if (one.kind === 'other') return isOfAbsentNamespace(head, text) || isOfAbsentMacro(one, head) ? 'removed' : 'kept';
    if (one.isMember && one.scope === '') return 'kept';
    if (isFunction) return words.has(one.name) || (isModule && isOfDevice(head)) ? 'kept' : 'named';
    // The names of enumerators and variables are not followed.
    if (one.name === '' || one.hasVariables || head.includes('enum')) return 'kept';
    return one.kind === 'variable' && isOfDevice(head) ? 'kept' : 'named';
  };
  return removing(source, text, keep, words);
}

/** `using namespace cv;` of a library whose header is not there. */
function isOfAbsentNamespace(head: readonly string[], text: string): boolean {
  const [first, second, name = ''] = head;
  if (first !== 'using' || second !== 'namespace' || /^(?:std|cuda|cub|thrust|cooperative_groups|nvcuda|nv)$/.test(name)) return false;
  return !new RegExp(`\\bnamespace\\s+(?:\\w+::)*${name}\\b\\s*(?:\\{|=|::)`).test(text);
}

/** `TEST_CASE("sum") { ... }` or `BENCHMARK(sum)->Range(1, 8);`, a call of a macro that the source does not define. */
function isOfAbsentMacro({ isMember }: DeclarationText, head: readonly string[]): boolean {
  const [name = '', open] = head;
  // The words of a macro that the source defines stand behind its name.
  return (
    !isMember && open === '(' && /^[A-Za-z]\w*$/.test(name) && !/^(?:static_assert|asm|alignas|decltype)$/.test(name) && !isOfDevice(head)
  );
}

/** `fateOf` decides on each declaration. */
function removing(
  source: string,
  text: string,
  fateOf: (
    one: DeclarationText,
    head: readonly string[],
    isEvident: boolean,
    ofDevice: ReadonlySet<string>,
    calledOnDevice: ReadonlySet<string>,
  ) => Fate,
  roots: Iterable<string> = [],
): string {
  const found = declarationsOf(text);
  if (!found) return source;
  const { tokens, otherWords, declarations } = found;
  const defined = macrosIn(text);
  const macros = macroWords(defined);
  const heads = declarations.map((one) =>
    tokens.slice(one.from, one.headEnd).flatMap(({ text: word }) => [word, ...(macros.get(word) ?? [])]),
  );
  /** Functions of the device that the source defines, whose names the host's library or other overloads may have, too. */
  const ofDevice = new Set(declarations.filter(({ kind }, i) => kind === 'function' && isOfDevice(heads[i]!)).map(({ name }) => name));
  const isEvident = evidence(tokens, declarations, ofDevice, (i) => isOfDevice(heads[i]!));
  /** Names that functions for the device call. */
  const calledOnDevice = new Set<string>();
  for (const [i, { kind, from, to }] of declarations.entries()) {
    if (kind !== 'function' || !isOfDevice(heads[i]!)) continue;
    for (let at = from; at < to; at++) if (tokens[at + 1]?.text === '(') calledOnDevice.add(tokens[at]!.text);
  }
  const calls = hostCalls(tokens, declarations, hostMacros(defined, macros));
  const fates = declarations.map((one, i) => fateOf(one, heads[i]!, isEvident[i]!, ofDevice, calledOnDevice));
  // Uses of names that macros join cannot be followed.
  const joined = joinedNames(text);
  if (joined)
    for (const [i, fate] of fates.entries()) if (fate === 'named' && !isEvident[i] && joined(declarations[i]!.name)) fates[i] = 'kept';
  const shared = declarations.filter(({ kind }, i) => {
    const isFunction = kind === 'function' || kind === 'prototype';
    return isFunction && fates[i] === 'kept' && heads[i]!.includes('__host__') && !isOfDevice(heads[i]!);
  });
  if (shared.length === 0 && calls.length === 0 && fates.every((fate) => fate === 'kept')) return source;
  const owner = new Int32Array(tokens.length).fill(-1);
  // Inner declarations come before the classes that contain them.
  for (let i = declarations.length - 1; i >= 0; i--) if (fates[i] !== 'kept') owner.fill(i, declarations[i]!.from, declarations[i]!.to);
  const words = declarations.map(() => new Set<string>());
  const named = new Set(roots);
  for (const { from, to } of calls) owner.fill(declarations.length, from, to);
  const hidden = hiddenNames(tokens, declarations);
  for (const [at, { text: word }] of tokens.entries()) {
    if (!hidden[at]?.has(word)) (owner[at]! < 0 ? named : words[owner[at]!])?.add(word);
  }
  const pending = new Map<string, number[]>();
  const classes = new Set(declarations.flatMap(({ kind, name }) => (kind === 'class' ? [name] : [])));
  for (const [i, { name: own, scope }] of declarations.entries()) {
    // A member is needed if its class is.
    const name = scope !== '' && classes.has(scope) ? scope : own;
    if (fates[i] !== 'named' || name === '') continue;
    const list = pending.get(name) ?? [];
    list.push(i);
    pending.set(name, list);
  }
  for (const word of otherWords) if (pending.get(word)?.some((i) => !isEvident[i])) named.add(word);
  // A prototype alone does not make its function needed, so each brings its words only when its name is needed elsewhere.
  for (const word of named) {
    for (const inner of macros.get(word) ?? []) named.add(inner);
    for (const i of pending.get(word) ?? []) {
      fates[i] = 'kept';
      for (const inner of words[i]!) named.add(inner);
    }
    pending.delete(word);
  }
  const gone = declarations
    .filter((_one, i) => fates[i] !== 'kept')
    .map(({ macrosFrom, from, to }) => ({
      start: tokens[areAttributes(tokens, macrosFrom, from, macros) ? macrosFrom : from]!.start,
      end: tokens[to - 1]!.start + tokens[to - 1]!.text.length,
    }))
    .concat(calls.map(({ from, to }) => ({ start: tokens[from]!.start, end: spanOf(tokens[to - 1]!).end })))
    // NVRTC takes no function and no prototype with this specifier alone.
    .concat(
      shared.flatMap(({ from, headEnd }) =>
        tokens
          .slice(from, headEnd)
          .filter(({ text: word }) => word === '__host__')
          .map(spanOf),
      ),
    )
    .toSorted((a, b) => a.start - b.start || b.end - a.end);
  const directives = onlyDirectives(source, text);
  let made = '';
  let copied = 0;
  for (const { start, end } of gone) {
    // Inside of another one.
    if (end <= copied) continue;
    made += source.slice(copied, start) + directives.slice(start, end);
    copied = end;
  }
  return made + source.slice(copied);
}

/** For each token of a function's body, the function's parameters, which hide what the source declares with their names. */
function hiddenNames(
  tokens: readonly SourceToken[],
  declarations: readonly DeclarationText[],
): readonly (ReadonlySet<string> | undefined)[] {
  const hidden = Array.from<ReadonlySet<string> | undefined>({ length: tokens.length });
  for (const { kind, name, from, headEnd, to } of declarations) {
    if (kind !== 'function' || name === '') continue;
    const names = new Set<string>();
    let at = from;
    while (at < headEnd && (tokens[at]!.text !== name || tokens[at + 1]?.text !== '(')) at++;
    let depth = 0;
    for (at++; at < headEnd; at++) {
      const { text } = tokens[at]!;
      if (text === '(') depth++;
      else if (text === ')' && --depth === 0) break;
      // A type stands before the name of a parameter: `const float* x,`.
      const isLast = depth === 1 && /^[,)]$/.test(tokens[at + 1]?.text ?? '');
      if (!isLast || !/^[A-Za-z_]\w*$/.test(text) || !/[\w*&>]$/.test(tokens[at - 1]!.text)) continue;
      names.add(text);
      hidden[at] = names;
    }
    for (let i = headEnd; names.size > 0 && i < to; i++) hidden[i] = names;
  }
  return hidden;
}

/** Whether the macros that [from, to) calls stand for attributes, which would apply to the next declaration if this one were removed alone. */
function areAttributes(
  tokens: readonly SourceToken[],
  from: number,
  to: number,
  macros: ReadonlyMap<string, ReadonlySet<string>>,
): boolean {
  let depth = 0;
  for (let at = from; at < to; at++) {
    const { text } = tokens[at]!;
    if (text === '(') depth++;
    else if (text === ')') depth--;
    else if (depth === 0 && !['__attribute__', '__declspec'].some((word) => macros.get(text)?.has(word))) return false;
  }
  return true;
}

function spanOf({ start, text }: SourceToken): { readonly start: number; readonly end: number } {
  return { start, end: start + text.length };
}

/** Whether it is a function of a class for the host alone, and neither a constructor nor a destructor. */
function isHostMember({ kind, isMember, name }: DeclarationText, head: readonly string[]): boolean {
  if (kind !== 'function' || !isMember || name === 'main' || !head.includes('__host__') || isOfDevice(head)) return false;
  const before = head.slice(0, head.indexOf(name)).filter((word) => !/^(?:__host__|inline|explicit|constexpr|virtual|static)$/.test(word));
  return before.length > 0 && !before.includes('~');
}

/** Macros that stand for explicit instantiations: `#define MAKE(T) template void reduce(T*)`. */
function instantiatingMacros(macros: readonly Macro[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { name, parameters, body } of macros) {
    if (parameters && /^\s*template\b(?!\s*<)/.test(body) && !/[{}]|\btemplate\s*</.test(body)) found.add(name);
  }
  return found;
}

/** Macros that stand for code of the host: `#define LAUNCHER(T) void launch(T* y) { kernel<<<1, 32>>>(y); }`. */
function hostMacros(defined: readonly Macro[], macros: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { name, body } of defined) {
    const ofStd = [...body.matchAll(/\bstd\s*::\s*(\w+)/g)].some(([, word = '']) => OF_STD.has(word));
    const isOfHost =
      ofStd || body.includes('<<<') || [...macros.get(name)!].some((word) => word === 'main' || OF_HOST.has(word) || API.test(word));
    if (isOfHost && ![...macros.get(name)!].some((word) => OF_DEVICE.has(word))) found.add(name);
  }
  return found;
}

/** Calls of these macros in place of declarations, with a body or a semicolon behind them. Token indices: [from, to). */
function hostCalls(
  tokens: readonly SourceToken[],
  declarations: readonly DeclarationText[],
  macros: ReadonlySet<string>,
): readonly { readonly from: number; readonly to: number }[] {
  const found: { from: number; to: number }[] = [];
  for (const { macrosFrom, to } of declarations.filter(({ isMember }) => !isMember)) {
    let at = macrosFrom;
    while (at < to && macros.has(tokens[at]!.text)) {
      const from = at++;
      for (const open of ['(', '{']) if (tokens[at]?.text === open) at = closing(tokens, at) + 1;
      if (tokens[at]?.text === ';') at++;
      found.push({ from, to: at });
    }
  }
  return found;
}

/** What the source's macros consist of, by their names. */
function macroWords(defined: readonly Macro[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const { name, body } of defined) {
    const words = found.get(name) ?? new Set();
    for (const word of wordsOf(body)) words.add(word);
    found.set(name, words);
  }
  return found;
}

/** Whether each declaration is evidently of the host: by what it uses, or because it uses a function that is. */
function evidence(
  tokens: readonly SourceToken[],
  declarations: readonly DeclarationText[],
  ofDevice: ReadonlySet<string>,
  isMarked: (declaration: number) => boolean,
): boolean[] {
  const is = declarations.map((one) => hasEvidence(tokens, one, ofDevice));
  // A specialization of a template of the host is the host's, and so is a type that another branch of an `#if` declares with a type of the host.
  const isType = ({ kind, name }: DeclarationText): boolean => (kind === 'class' || kind === 'alias') && name !== '';
  const types = new Set(declarations.filter((one, i) => isType(one) && is[i]).map(({ name }) => name));
  for (const [i, one] of declarations.entries()) if (isType(one) && types.has(one.name)) is[i] = true;
  /** Functions and variables without a word for the device, by the functions that they may use. */
  const users = new Map<string, Set<number>>();
  const names: string[] = [];
  for (const [i, { kind, name, isMember, from, to }] of declarations.entries()) {
    if ((kind !== 'function' && (kind !== 'variable' || isMember)) || isMarked(i)) continue;
    if (is[i] && kind === 'function' && !isMember) names.push(name);
    for (let at = from; at < to; at++) {
      const next = tokens[at + 1]?.text;
      if (kind === 'function' && next !== '(' && next !== '<') continue;
      const word = tokens[at]!.text;
      const list = users.get(word) ?? new Set();
      users.set(word, list.add(i));
    }
  }
  for (const name of names) {
    if (ofDevice.has(name)) continue;
    for (const i of users.get(name) ?? []) {
      if (is[i]) continue;
      is[i] = true;
      if (declarations[i]!.kind === 'function' && !declarations[i]!.isMember) names.push(declarations[i]!.name);
    }
    users.delete(name);
  }
  return is;
}

function isOfDevice(head: readonly string[]): boolean {
  return head.some((word) => OF_DEVICE.has(word));
}

function hasEvidence(tokens: readonly SourceToken[], { kind, from, to }: DeclarationText, ofDevice: ReadonlySet<string>): boolean {
  if (kind === 'function' && OF_HOST_MACRO.test(tokens[from]!.text)) return true;
  for (let at = from; at < to; at++) {
    const { text } = tokens[at]!;
    if (ofDevice.has(text)) continue;
    if (OF_HOST.has(text) || API.test(text)) return true;
    if (OF_STD.has(text) && tokens[at - 1]?.text === '::' && tokens[at - 2]?.text === 'std' && tokens[at - 3]?.text !== '::') return true;
  }
  return false;
}

/** The source with spaces in place of all but line breaks and directives. */
function onlyDirectives(source: string, text: string): string {
  let made = '';
  let copied = 0;
  const blank = (end: number): string => source.slice(copied, end).replace(/[^\r\n]/g, ' ');
  for (const { start, end } of directivesOf(text)) {
    made += blank(start) + source.slice(start, end);
    copied = end;
  }
  return made + blank(source.length);
}
