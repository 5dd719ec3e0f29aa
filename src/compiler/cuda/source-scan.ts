// Scans CUDA C++ source for cudaKernel(): removes comments and strings, and lists the kernels. Each function makes a single pass, because
// the source can be a megabyte of arbitrary input.

/**
 * Matches a digit separator, comment, raw string, string or character literal. An unterminated one extends to the end of the line or of the
 * source, so that the regular expression never searches for the same end twice.
 */
const QUIET =
  /(?<!\bu8)(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])|\/\/(?:\\\r?\n|[^\n])*|\/\*[\s\S]*?(?:\*\/|$)|R"([^()\\\s]{0,16})\([\s\S]*?(?:\)\1"|$)|"(?:\\[\s\S]|[^"\\\n])*(?:"|(?=\n)|$)|'(?:\\[\s\S]|[^'\\\n])*(?:'|(?=\n)|$)/g;

/** Replaces comments, strings and character literals with spaces, which preserves offsets and line breaks. */
export function withoutComments(source: string): string {
  return source.replace(QUIET, (text) => (text === "'" ? text : text.replace(/[^\n]/g, ' ')));
}

export interface GlobalFunction {
  readonly name: string;
  /** Offset of the kernel's `__global__`. */
  readonly start: number;
  /** Offset just after the parenthesis that opens the parameter list. */
  readonly open: number;
  readonly isExternC: boolean;
}

/** Words that precede a parenthesis without naming a function. */
const ATTRIBUTES: readonly string[] = [
  '__launch_bounds__',
  '__attribute__',
  '__cluster_dims__',
  '__block_size__',
  '__maxnreg__',
  'alignas',
  '__align__',
];

/** Every `__global__ ... name(` of source without comments. The "C" of `extern "C"` is blank in it. */
export function globalFunctions(text: string): GlobalFunction[] {
  const found: GlobalFunction[] = [];
  /** The enclosing braces: whether each belongs to an `extern "C"`. */
  const braces: boolean[] = [];
  let externs = 0;
  /** Where the current declaration began, whether it says extern, and where its `__global__` is. */
  let from = 0;
  let saysExtern = false;
  let start = -1;
  for (const match of text.matchAll(/[;{}(]|\b(?:__global__|extern)\b/g)) {
    const { index: at } = match;
    const token = match[0];
    if (token === 'extern') {
      saysExtern = true;
      continue;
    }
    if (token === '__global__') {
      start = at;
      continue;
    }
    if (token === '(') {
      const name = start < 0 ? '' : wordBefore(text, at, start + '__global__'.length);
      if (name === '' || ATTRIBUTES.includes(name)) continue;
      found.push({ name, start, open: at + 1, isExternC: externs > 0 || saysExtern });
      start = -1;
      continue;
    }
    if (token === '{') {
      const isExtern = wordBefore(text, at, from) === 'extern';
      braces.push(isExtern);
      if (isExtern) externs++;
    } else if (token === '}' && braces.pop()) {
      externs--;
    }
    from = at + 1;
    saysExtern = false;
    start = -1;
  }
  return found;
}

/** The word that ends before `to`, ignoring spaces, and starts after `from`. */
function wordBefore(text: string, to: number, from: number): string {
  let end = to;
  while (end > from && /\s/.test(text[end - 1]!)) end--;
  let begin = end;
  while (begin > from && /[\w$]/.test(text[begin - 1]!)) begin--;
  return text.slice(begin, end);
}
