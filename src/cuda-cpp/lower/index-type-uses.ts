// Tells how source uses the type of CUDA's indices. The shim replaces it by a class that computes like the unsigned number (thread_index.h); if
// the type itself may select an overload or a template, the shim must use the number. The same holds for products of 16-bit floats, which
// are objects with their factors (half_products.h).
import { closingAngle, functionsOf } from '../read/functions.js';
import type { Token } from '../read/tokens.js';

/** CUDA's index and extent variables. */
export const INDEX: RegExp = /^(?:threadIdx|blockIdx|blockDim|gridDim)$/;
const HALF = /^(?:(?:__|nv_|__nv_)?half2?|(?:__)?nv_bfloat162?)$/;
/** What tells a product from a half: a product has another type and another size. */
const OF_PRODUCT = /^(?:sizeof|alignof|is_\w+|same_as|enable_if(?:_t)?|conditional(?:_t)?|numeric_limits)$/;
/** Type traits of compilers. */
const TRAIT = /^__(?:is|has)_\w+$/;

export function hasIndices(tokens: readonly Token[]): boolean {
  return tokens.some(({ text }) => INDEX.test(text));
}

/** Whether source names 16-bit floats. */
export function hasHalves(tokens: readonly Token[]): boolean {
  return tokens.some(({ text }) => HALF.test(text));
}

/** Whether an argument's type may decide which function or template is meant. */
export function looksAtTypes(tokens: readonly Token[]): boolean {
  const templates = tokens.some(({ text }) => text === 'template' || text === 'auto');
  const halves = hasHalves(tokens);
  if (!templates || !(halves || hasIndices(tokens))) return false;
  if (halves && tokens.some(({ text }) => OF_PRODUCT.test(text))) return true;
  for (const [i, { text }] of tokens.entries()) {
    if (TRAIT.test(text) || text === 'decltype') return true;
    if (text !== 'template') continue;
    // Matches `template <> ...` and `template <class T> struct X<T*>`.
    const close = tokens[i + 1]?.text === '<' ? closingAngle(tokens, i + 1) : -1;
    if (close === i + 2) return true;
    const isClass = close > 0 && /^(?:struct|class|union)$/.test(tokens[close + 1]?.text ?? '');
    if (isClass && tokens[close + 3]?.text === '<') return true;
  }
  const isTemplate = new Map<string, number>();
  const functions = functionsOf(tokens).filter(({ kind, bodyOpen }) => kind === 'function' && bodyOpen >= 0);
  for (const { name, start } of functions) {
    const count = tokens[start - 1]?.text === '>' ? 1 : 0;
    isTemplate.set(name, (isTemplate.get(name) ?? 0) + count);
  }
  return functions.some(({ name }) => isTemplate.get(name)! > 0 && functions.filter((one) => one.name === name).length > 1);
}
