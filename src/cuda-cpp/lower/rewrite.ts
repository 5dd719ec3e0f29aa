// Rewrites CUDA C++ source so that a C++ compiler accepts it for the CPU device. Line numbers stay the same.
import { FUNCTION_ATTRIBUTES } from '../read/attributes.js';
import { macrosIn } from '../read/directives.js';
import { applyEdits, type Edit, type EditedSource } from '../read/source-edits.js';
import { closing, namespaceScope, tokenize, type Token } from '../read/tokens.js';
import { sharedAtomics } from './shared-memory.js';

/** One `__global__ ... name(params)`, declaration or definition, as token indices. */
export interface KernelText {
  readonly name: string;
  /** The first token of its declaration. */
  readonly first: number;
  readonly open: number;
  readonly close: number;
  /** The parentheses of its `__launch_bounds__`, if any. */
  readonly bounds: readonly [open: number, close: number] | undefined;
  /** The closing brace of the body; 0 for a declaration. */
  readonly bodyEnd: number;
}

/** Tokens that end a declaration. */
const ENDS: ReadonlySet<string> = new Set([';', '{', '}']);
/** In the order of the shim's kernel_exports.h. */
const INDICES = 'mr_index3 threadIdx, mr_index3 blockIdx, mr_index3 blockDim, mr_index3 gridDim';

/** Every kernel at namespace scope except templates, which other code instantiates and which no launch names. */
export function kernelsOf(tokens: readonly Token[], isOutside: readonly boolean[]): KernelText[] {
  const kernels: KernelText[] = [];
  let first = 0;
  let isTemplate = false;
  for (let i = 0; i < tokens.length; i++) {
    const { text } = tokens[i]!;
    if (text === 'template') isTemplate = true;
    else if (ENDS.has(text)) [first, isTemplate] = [i + 1, false];
    if (text !== '__global__' || !isOutside[i] || isTemplate) continue;
    let at = i + 1;
    let bounds: KernelText['bounds'];
    while (
      at < tokens.length &&
      !(tokens[at]!.kind === 'name' && tokens[at + 1]?.text === '(' && !FUNCTION_ATTRIBUTES.includes(tokens[at]!.text))
    ) {
      // `__launch_bounds__(256)` has parentheses of its own.
      const end = tokens[at + 1]?.text === '(' ? closing(tokens, at + 1) : at;
      if (tokens[at]!.text === '__launch_bounds__') bounds = [at + 1, end];
      at = end + 1;
    }
    const close = closing(tokens, at + 1);
    if (close >= tokens.length) break;
    const bodyEnd = tokens[close + 1]?.text === '{' ? closing(tokens, close + 1) : 0;
    kernels.push({ name: tokens[at]!.text, first, open: at + 1, close, bounds, bodyEnd });
    i = close;
  }
  return kernels;
}

/** Names of the kernels that can be launched. */
export function kernelNames(source: string): string[] {
  const { tokens } = tokenize(source);
  return [...new Set(kernelsOf(tokens, namespaceScope(tokens)).map(({ name }) => name))];
}

/** Each kernel's C++ name at the end of the source, qualified with its namespaces. */
export function kernelPaths(tokens: readonly Token[]): Map<string, string> {
  const paths = new Map<string, string>();
  for (const { name, first, path } of qualified(tokens)) {
    // A kernel with a C name counts before others of the same name.
    if (!paths.has(name) || tokens[first]!.text === 'extern') paths.set(name, path);
  }
  return paths;
}

/** The C++ names of the kernels whose largest block sizes `rewriteForCpu` exports. */
export function boundedPaths(tokens: readonly Token[]): Set<string> {
  const first = new Map<string, string>();
  for (const { name, bounds, path } of qualified(tokens)) if (bounds !== undefined && !first.has(name)) first.set(name, path);
  return new Set(first.values());
}

function qualified(tokens: readonly Token[]): (KernelText & { readonly path: string })[] {
  const around: string[] = [];
  let at = 0;
  return kernelsOf(tokens, namespaceScope(tokens)).map((kernel) => {
    for (; at < kernel.first; at++) {
      if (tokens[at]!.text === '{') around.push(namespaceAt(tokens, at));
      if (tokens[at]!.text === '}') around.pop();
    }
    return { ...kernel, path: around.join('') + kernel.name };
  });
}

/** `a::b::` for `namespace a::b {`; empty for any other brace. */
function namespaceAt(tokens: readonly Token[], brace: number): string {
  let from = brace;
  while (from > 0 && (tokens[from - 1]!.text === ':' || tokens[from - 1]!.kind === 'name') && tokens[from - 1]!.text !== 'namespace')
    from--;
  if (from === brace || tokens[from - 1]?.text !== 'namespace') return '';
  const words = tokens.slice(from, brace).map(({ text }) => text);
  return `${words.filter((word) => word !== 'inline').join('')}::`;
}

/** Whether macros contain what is rewritten, so that only expanded source shows all of it. */
export function isRewrittenInMacros(source: string): boolean {
  return macrosIn(source).some(({ body }) => /\b(?:__shared__|__launch_bounds__|malloc|free|new|delete)\b|<<</.test(body));
}

/** Rewrites indices and dynamic shared memory, and applies `others`. */
export function rewriteForCpu(
  source: string,
  tokens: readonly Token[] = tokenize(source).tokens,
  others: readonly Edit[] = [],
): EditedSource {
  const isOutside = namespaceScope(tokens);
  const own = [
    ...passIndices(tokens, isOutside),
    ...dynamicShared(source, tokens, isOutside),
    ...sharedSpecifiers(source, tokens),
    ...sharedAtomics(tokens),
  ];
  // `others` replace whole kernels, whose own edits are dropped.
  const isFree = (edit: Edit): boolean => !others.some(({ start, end }) => edit.start > start && edit.end < end);
  return applyEdits(source, tokens, [...exportBounds(source, tokens, isOutside), ...others, ...own.filter(isFree)]);
}

/** Exports a kernel's largest block size, before the kernel, where names in its `__launch_bounds__` have the same meaning. */
function exportBounds(source: string, tokens: readonly Token[], isOutside: readonly boolean[]): Edit[] {
  const told = new Set<string>();
  return kernelsOf(tokens, isOutside).flatMap(({ name, first, bounds }) => {
    if (bounds === undefined || told.has(name)) return [];
    told.add(name);
    const start = tokens[first]!.start;
    const threads = firstArgument(source, tokens, bounds);
    return [{ start, end: start, text: `MR_MAX_THREADS(${name}, ${threads}) ` }];
  });
}

/** The argument's source on one line. */
function firstArgument(source: string, tokens: readonly Token[], [open, close]: readonly [number, number]): string {
  let end = open + 1;
  while (end < close && tokens[end]!.text !== ',') end = tokens[end]!.text === '(' ? closing(tokens, end) + 1 : end + 1;
  return tokens
    .slice(open + 1, end)
    .map((token) => source.slice(token.start, token.end))
    .join(' ')
    .replaceAll(': :', '::');
}

/**
 * Passes the indices as parameters before a kernel's own (see the shim's thread_index.h). Not for a body with a scope that sees globals but no
 * parameters: a class, or a lambda that does not capture them.
 */
function passIndices(tokens: readonly Token[], isOutside: readonly boolean[]): Edit[] {
  const kernels = kernelsOf(tokens, isOutside);
  const left = new Set(kernels.filter(({ close, bodyEnd }) => hasInnerScope(tokens.slice(close, bodyEnd))).map(({ name }) => name));
  return kernels
    .filter(({ name }) => !left.has(name))
    .map(({ open, close }) => {
      const isVoid = close === open + 2 && tokens[open + 1]!.text === 'void';
      if (isVoid) return { start: tokens[open + 1]!.start, end: tokens[open + 1]!.end, text: INDICES };
      const { end } = tokens[open]!;
      return { start: end, end, text: close === open + 1 ? INDICES : `${INDICES}, ` };
    });
}

function hasInnerScope(body: readonly Token[]): boolean {
  return body.some(({ text }, i) => text === 'struct' || text === 'class' || text === 'union' || (text === '[' && !capturesAll(body, i)));
}

/** Whether the bracket belongs to a subscript or an attribute, or to a lambda that captures everything. */
function capturesAll(body: readonly Token[], open: number): boolean {
  const before = body[open - 1];
  if (before === undefined || ')]['.includes(before.text) || (before.kind === 'name' && !/^(?:return|case|else|do)$/.test(before.text)))
    return true;
  const [first, second] = [body[open + 1]?.text, body[open + 2]?.text];
  return first === '=' || first === '[' || (first === '&' && (second === ',' || second === ']'));
}

/**
 * Rewrites `extern __shared__ T name[];` as valid C++ that refers to the launch's dynamic shared memory: inside a function a pointer, at
 * namespace scope an object that converts to one.
 */
function dynamicShared(source: string, tokens: readonly Token[], isOutside: readonly boolean[]): Edit[] {
  const edits: Edit[] = [];
  for (let i = 0; i < tokens.length; i++) {
    if (tokens[i]!.text !== 'extern' || tokens[i + 1]?.kind === 'string') continue;
    let last = i;
    while (last < tokens.length && tokens[last]!.text !== ';') last++;
    if (last >= tokens.length) break;
    const declaration = tokens.slice(i, last);
    const array = dynamicArray(declaration);
    // Earlier declarations have been processed.
    const next = declaration.findLastIndex((token) => token.text === 'extern');
    if (array === undefined || !(tokens[i - 1]?.text === '__shared__' || declaration.some((token) => token.text === '__shared__'))) {
      i += Math.max(next, 0);
      continue;
    }
    // `__shared__ extern` has the same meaning.
    const first = tokens[i - 1]?.text === '__shared__' ? i - 1 : i;
    const [start, end] = [tokens[first]!.start, tokens[last]!.end];
    const text = isOutside[i] ? `static const mr_dynamic_array<${array.element}> ${array.name}{};` : dynamicPointer(array);
    edits.push({ start, end, text: text + '\n'.repeat(source.slice(start, end).split('\n').length - 1) });
    i = last;
  }
  return edits;
}

/**
 * `static __shared__` and `__shared__ alignas(16)`: the shim's `__shared__` is a storage class of C++, which has no second one beside it, and
 * no alignment behind it.
 */
function sharedSpecifiers(source: string, tokens: readonly Token[]): Edit[] {
  const edits: Edit[] = [];
  for (const [i, { text, start, end }] of tokens.entries()) {
    if (text !== '__shared__' || tokens[i - 1]?.text === 'extern' || tokens[i + 1]?.text === 'extern') continue;
    for (const beside of [tokens[i - 1], tokens[i + 1]])
      if (beside?.text === 'static') edits.push({ start: beside.start, end: beside.end, text: '' });
    const align = tokens[i + 1]?.text === 'static' ? i + 2 : i + 1;
    const close = tokens[align]?.text === 'alignas' ? closing(tokens, align + 1) : tokens.length;
    if (close >= tokens.length) continue;
    const [from, to] = [tokens[align]!.start, tokens[close]!.end];
    const given = source.slice(from, to);
    if (given.includes('\n')) continue;
    edits.push({ start, end, text: `${given} __shared__` }, { start: from, end: to, text: '' });
  }
  return edits;
}

/** The bracket behind the name that a declaration from there on declares, and not one of its specifiers; -1 where it has none. */
export function boundOf(tokens: readonly Token[], from: number): number {
  for (let at = from; at < tokens.length && !/^[;{]$/.test(tokens[at]!.text); at++) {
    const { text } = tokens[at]!;
    // `__align__(sizeof(int[4]))`, `[[maybe_unused]]`
    if (text === '(' || (text === '[' && tokens[at + 1]?.text === '[')) at = closing(tokens, at);
    else if (text === '[') return at;
  }
  return -1;
}

interface DynamicArray {
  readonly name: string;
  /** The type of its elements: `float`; `__typeof__(float[33])` for `tile[][33]`. */
  readonly element: string;
}

/** What the tokens of an `extern __shared__` declaration, without its semicolon, declare; undefined for what is no array. */
export function dynamicArray(declaration: readonly Token[]): DynamicArray | undefined {
  const bracket = boundOf(declaration, 0);
  if (bracket < 1) return undefined;
  const type = elementType(declaration.slice(0, bracket - 1));
  const from = closing(declaration, bracket) + 1;
  let to = from;
  while (declaration[to]?.text === '[') to = closing(declaration, to) + 1;
  const inner = declaration.slice(from, to).map(({ text }) => text);
  return { name: declaration[bracket - 1]!.text, element: inner.length === 0 ? type : `__typeof__(${type}${inner.join(' ')})` };
}

/** The declaration of a pointer in place of the array. */
export function dynamicPointer({ name, element }: DynamicArray): string {
  return `${element}* const ${name} = reinterpret_cast<${element}*>(mr_dynamic_shared);`;
}

function elementType(tokens: readonly Token[]): string {
  const words: string[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const { text } = tokens[i]!;
    if (text === 'extern' || text === '__shared__') continue;
    if (text === '__align__' || text === 'alignas' || text === '__attribute__') i = closing(tokens, i + 1);
    else words.push(text);
  }
  return words.join(' ').replaceAll(' : : ', '::');
}
