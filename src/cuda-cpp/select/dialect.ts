// What nvcc accepts, written so that every compiler takes it. Lines and, but for `constexpr`, columns stay.
import { declarationsOf } from '../read/declarations.js';
import { directivesOf, withoutDirectives } from '../read/directives.js';
import { withoutComments } from '../read/tokens.js';

/** Moves the space of `extern "C"__global__`, where C++11 reads one literal with a suffix. */
export function withApartLinkage(source: string): string {
  return source.replace(/\bextern[ \t]([ \t]*)"C"(?=\w)/g, 'extern$1"C" ');
}

/** Has as many characters as `__managed__`, so positions in the source stay. */
const INSTEAD = '__device__ ';

/**
 * `__managed__` variables become `__device__` variables, on every device: streams cannot order accesses of a host that reads memory while kernels
 * run, so the host has copies only. Outside of comments and strings.
 */
export function withoutManaged(source: string): string {
  if (!source.includes('__managed__')) return source;
  let changed = '';
  let from = 0;
  for (const { index } of withoutComments(source).matchAll(/\b__managed__\b/g)) {
    changed += source.slice(from, index) + INSTEAD;
    from = index + INSTEAD.length;
  }
  return changed + source.slice(from);
}

const FLOATING: ReadonlySet<string> = new Set(['float', 'double']);
const BEFORE: ReadonlySet<string> = new Set(['static', 'inline']);

/**
 * The source with `constexpr` in place of `const` for constants of floating point at namespace scope: `const float half = -two;`. nvcc computes
 * them, while NVRTC takes those that another constant initialises only as `constexpr`.
 */
export function withConstantExpressions(source: string): string {
  const found = declarationsOf(withoutComments(source));
  if (!found) return source;
  let made = '';
  let copied = 0;
  for (const { kind, isMember, from, to } of found.declarations) {
    if (kind !== 'variable' || isMember) continue;
    let at = from;
    while (BEFORE.has(found.tokens[at]?.text ?? '')) at++;
    const { text, start } = found.tokens[at]!;
    const words = found.tokens.slice(at + 1, to).map((token) => token.text);
    if (text !== 'const' || start < copied || !FLOATING.has(words[0] ?? '') || words[2] !== '=') continue;
    made += `${source.slice(copied, start)}constexpr`;
    copied = start + text.length;
  }
  return made + source.slice(copied);
}

const INSTANTIATION = /\b(?:extern\s+)?template\b(?!\s*<)[^;{}]*;/g;
/** In a macro, it may end with the macro. */
const IN_MACRO = /\b(?:extern\s+)?template\b(?!\s*<)[^;{}]*;?/g;

/**
 * The source without explicit instantiations of functions, also in macros that stand for them: an image contains what its kernels use, and the
 * shim's `__global__` is `inline`, which an instantiation must not repeat.
 */
export function withoutInstantiations(source: string): string {
  if (!/\btemplate\b(?!\s*<)/.test(source)) return source;
  const text = withoutComments(source);
  const inMacros = directivesOf(text).flatMap(({ rest, end }) => spansOf(rest, IN_MACRO, end - rest.length));
  const found = [...spansOf(withoutDirectives(text), INSTANTIATION, 0), ...inMacros].toSorted((a, b) => a.start - b.start);
  let made = '';
  let copied = 0;
  for (const { start, end } of found) {
    if (start < copied) continue;
    // A backslash continues a macro.
    made += source.slice(copied, start) + source.slice(start, end).replace(/[^\s\\]/g, ' ');
    copied = end;
  }
  return made + source.slice(copied);
}

/** Not `object.template call<T>(x)`, which has no specifier. */
function spansOf(text: string, pattern: RegExp, at: number): { readonly start: number; readonly end: number }[] {
  return [...text.matchAll(pattern)]
    .filter(([one]) => one.includes('(') && /\b(?:__(?:global|device|host|forceinline|noinline)__|inline)\b/.test(one))
    .map(({ 0: one, index }) => ({ start: at + index, end: at + index + one.length }));
}
