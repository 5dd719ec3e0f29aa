// CUDA C++ text as far as cudaKernel() looks into it: without comments and strings, and which kernels it has. One pass over
// the text each, whatever it holds: it may be a megabyte of anything.

/**
 * A digit separator, comment, raw string, string, character. What never ends counts to the end of the text or the line,
 * so that the search for its end is made once.
 */
const QUIET =
  /(?<!\bu8)(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])|\/\/(?:\\\r?\n|[^\n])*|\/\*[\s\S]*?(?:\*\/|$)|R"([^()\\\s]{0,16})\([\s\S]*?(?:\)\1"|$)|"(?:\\[\s\S]|[^"\\\n])*(?:"|(?=\n)|$)|'(?:\\[\s\S]|[^'\\\n])*(?:'|(?=\n)|$)/g;

/** Comments, strings and character literals as blanks, so that offsets stay. Lines stay too. */
export function withoutComments(source: string): string {
  return source.replace(QUIET, (text) => (text === "'" ? text : text.replace(/[^\n]/g, ' ')));
}

export interface GlobalFunction {
  readonly name: string;
  /** Offset of its `__global__`. */
  readonly start: number;
  /** Offset behind the bracket that opens its parameters. */
  readonly open: number;
  readonly isExternC: boolean;
}

/** Names before a bracket that belongs to no function. */
const ATTRIBUTES: readonly string[] = [
  '__launch_bounds__',
  '__attribute__',
  '__cluster_dims__',
  '__block_size__',
  '__maxnreg__',
  'alignas',
  '__align__',
];

/** Every `__global__ ... name(` of a text without comments. The quoted C of `extern "C"` is a blank in it. */
export function globalFunctions(text: string): GlobalFunction[] {
  const found: GlobalFunction[] = [];
  /** Braces around: is each one of an `extern "C"`? */
  const braces: boolean[] = [];
  let externs = 0;
  /** Where the declaration in hand began, whether it says extern, and where its `__global__` is. */
  let from = 0;
  let saysExtern = false;
  let start = -1;
  for (const match of text.matchAll(/[;{}(]|\b(?:__global__|extern)\b/g)) {
    const { index: at } = match;
    const mark = match[0];
    if (mark === 'extern') {
      saysExtern = true;
      continue;
    }
    if (mark === '__global__') {
      start = at;
      continue;
    }
    if (mark === '(') {
      const name = start < 0 ? '' : wordBefore(text, at, start + '__global__'.length);
      if (name === '' || ATTRIBUTES.includes(name)) continue;
      found.push({ name, start, open: at + 1, isExternC: externs > 0 || saysExtern });
      start = -1;
      continue;
    }
    if (mark === '{') {
      const isExtern = wordBefore(text, at, from) === 'extern';
      braces.push(isExtern);
      if (isExtern) externs++;
    } else if (mark === '}' && braces.pop()) {
      externs--;
    }
    from = at + 1;
    saysExtern = false;
    start = -1;
  }
  return found;
}

/** The word that ends at `to`, blanks aside, and begins behind `from`. */
function wordBefore(text: string, to: number, from: number): string {
  let end = to;
  while (end > from && /\s/.test(text[end - 1]!)) end--;
  let begin = end;
  while (begin > from && /[\w$]/.test(text[begin - 1]!)) begin--;
  return text.slice(begin, end);
}
