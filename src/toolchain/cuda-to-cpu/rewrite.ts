// The changes that a CUDA text needs before a C++ compiler takes it for the CPU device. Line numbers stay.
import { applyEdits, type Edit, type EditedText } from '../cuda-parser/source-edits.js';
import { closing, namespaceScope, tokenize, type Token } from '../cuda-parser/tokenizer.js';
import { sharedAtomics } from './shared-memory.js';

/** One `__global__ ... name(params)`, declared or defined. Token indices. */
export interface KernelText {
  readonly name: string;
  /** Where its declaration begins. */
  readonly first: number;
  readonly open: number;
  readonly close: number;
  /** The parentheses of its `__launch_bounds__`, if it has them. */
  readonly bounds: readonly [open: number, close: number] | undefined;
  /** Of the body; 0 for a declaration. */
  readonly bodyEnd: number;
}

/** Ends of declarations. */
const ENDS: ReadonlySet<string> = new Set([';', '{', '}']);
const ATTRIBUTES: ReadonlySet<string> = new Set(['__launch_bounds__', '__attribute__', '__cluster_dims__', 'alignas']);
/** In the order of the shim's launch.h. */
const INDICES = 'mr_index3 threadIdx, mr_index3 blockIdx, mr_index3 blockDim, mr_index3 gridDim';

/** Every kernel at namespace scope, templates left out: they are instantiated by others and never launched by name. */
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
    while (at < tokens.length && !(tokens[at]!.kind === 'name' && tokens[at + 1]?.text === '(' && !ATTRIBUTES.has(tokens[at]!.text))) {
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

/** What C++ calls each kernel at the end of the text: its name, and before that the namespaces that it stands in. */
export function kernelPaths(tokens: readonly Token[]): Map<string, string> {
  const isOutside = namespaceScope(tokens);
  const paths = new Map<string, string>();
  const around: string[] = [];
  let at = 0;
  for (const { name, first } of kernelsOf(tokens, isOutside)) {
    for (; at < first; at++) {
      if (tokens[at]!.text === '{') around.push(namespaceAt(tokens, at));
      if (tokens[at]!.text === '}') around.pop();
    }
    paths.set(name, around.join('') + name);
  }
  return paths;
}

/** `a::b::` of `namespace a::b {`, nothing of any other brace. */
function namespaceAt(tokens: readonly Token[], brace: number): string {
  let from = brace;
  while (from > 0 && (tokens[from - 1]!.text === ':' || tokens[from - 1]!.kind === 'name') && tokens[from - 1]!.text !== 'namespace')
    from--;
  if (from === brace || tokens[from - 1]?.text !== 'namespace') return '';
  const words = tokens.slice(from, brace).map(({ text }) => text);
  return `${words.filter((word) => word !== 'inline').join('')}::`;
}

/** The text with indices, dynamic shared memory, and `others` written in. */
export function rewriteForCpu(
  source: string,
  tokens: readonly Token[] = tokenize(source).tokens,
  others: readonly Edit[] = [],
): EditedText {
  const isOutside = namespaceScope(tokens);
  const own = [...passIndices(tokens, isOutside), ...dynamicShared(source, tokens, isOutside), ...sharedAtomics(tokens)];
  // Not where a whole kernel is written anew.
  const isFree = (edit: Edit): boolean => !others.some(({ start, end }) => edit.start > start && edit.end < end);
  return applyEdits(source, tokens, [...exportBounds(source, tokens, isOutside), ...others, ...own.filter(isFree)]);
}

/** Says before a kernel how many threads its blocks have at most. There the names of its `__launch_bounds__` mean what they mean in it. */
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

/** On one line. */
function firstArgument(source: string, tokens: readonly Token[], [open, close]: readonly [number, number]): string {
  let end = open + 1;
  while (end < close && tokens[end]!.text !== ',') end = tokens[end]!.text === '(' ? closing(tokens, end) + 1 : end + 1;
  return tokens
    .slice(open + 1, end)
    .map((token) => source.slice(token.start, token.end))
    .join(' ');
}

/**
 * Indices as parameters in front of a kernel's own (index.h of the shim says why). Not where the body has a scope that
 * sees global names and no parameters: a class, or a lambda that does not capture them.
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

/** Whether the bracket is a subscript's or an attribute's, or a lambda's that has all names of the kernel. */
function capturesAll(body: readonly Token[], open: number): boolean {
  const before = body[open - 1];
  if (before === undefined || ')]['.includes(before.text) || (before.kind === 'name' && !/^(?:return|case|else|do)$/.test(before.text)))
    return true;
  const [first, second] = [body[open + 1]?.text, body[open + 2]?.text];
  return first === '=' || first === '[' || (first === '&' && (second === ',' || second === ']'));
}

/**
 * `extern __shared__ T name[];` as C++ that compiles: a pointer to the launch's dynamic shared memory. Inside a function
 * it is a real pointer; outside, where nothing runs yet, an object that converts to one.
 */
function dynamicShared(source: string, tokens: readonly Token[], isOutside: readonly boolean[]): Edit[] {
  const edits: Edit[] = [];
  for (let i = 0; i < tokens.length; i++) {
    if (tokens[i]!.text !== 'extern' || tokens[i + 1]?.kind === 'string') continue;
    let last = i;
    while (last < tokens.length && tokens[last]!.text !== ';') last++;
    if (last >= tokens.length) break;
    const declaration = tokens.slice(i, last);
    const bracket = declaration.findIndex((token) => token.text === '[');
    // What it declares besides has been looked at.
    const next = declaration.findLastIndex((token) => token.text === 'extern');
    if (bracket < 1 || !declaration.some((token) => token.text === '__shared__')) {
      i += Math.max(next, 0);
      continue;
    }
    const name = declaration[bracket - 1]!.text;
    const type = elementType(declaration.slice(0, bracket - 1));
    const [start, end] = [tokens[i]!.start, tokens[last]!.end];
    const text = isOutside[i]
      ? `static const mr_dynamic_array<${type}> ${name}{};`
      : `${type}* const ${name} = reinterpret_cast<${type}*>(mr_dynamic_shared);`;
    edits.push({ start, end, text: text + '\n'.repeat(source.slice(start, end).split('\n').length - 1) });
    i = last;
  }
  return edits;
}

export function elementType(tokens: readonly Token[]): string {
  const words: string[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const { text } = tokens[i]!;
    if (text === 'extern' || text === '__shared__') continue;
    if (text === '__align__' || text === 'alignas' || text === '__attribute__') i = closing(tokens, i + 1);
    else words.push(text);
  }
  return words.join(' ').replaceAll(' : : ', '::');
}
