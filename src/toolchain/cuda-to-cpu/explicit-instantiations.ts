// Removes explicit instantiations of functions: an image contains what its kernels use, and the shim's `__global__` is `inline`, which an
// instantiation must not repeat.

const DIRECTIVE_OR_INSTANTIATION = /^[ \t]*#(?:\\\r?\n|[^\n])*|\b(?:extern\s+)?template\b(?!\s*<)[^;{}]*;/gm;
/** In a macro, it may end with the macro. */
const IN_MACRO = /\b(?:extern\s+)?template\b(?!\s*<)[^;{}]*;?/g;

/** The source with spaces in their place, also in macros that stand for them. */
export function withoutInstantiations(source: string): string {
  if (!/\btemplate\b(?!\s*<)/.test(source)) return source;
  return source.replace(DIRECTIVE_OR_INSTANTIATION, (text) =>
    /^\s*#/.test(text) ? text.replace(IN_MACRO, withoutSpecified) : withoutSpecified(text),
  );
}

/** Not `object.template call<T>(x)`, which has no specifier. */
function withoutSpecified(text: string): string {
  const isOne = text.includes('(') && /\b(?:__(?:global|device|host|forceinline|noinline)__|inline)\b/.test(text);
  return isOne ? text.replace(/[^\s\\]/g, ' ') : text;
}
