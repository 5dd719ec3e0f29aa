// Tells, from tokens, whether a CUDA kernel synchronises its grid through cooperative groups: the kernel, or a function that it calls by
// name, calls sync() on a variable declared as the grid. A grid passed through a template parameter is not detected. Without a cooperative
// launch, such a kernel fails on the CPU device when it runs; on CUDA it traps, which loses the device.
import { FUNCTION_ATTRIBUTES } from './attributes.js';
import { type SourceToken, sourceTokens } from './tokens.js';

/** The tokens of the head and body of a function at namespace scope, or of a member of a class. */
interface Body {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Words that precede a parenthesis without naming a function. */
const NO_FUNCTION: ReadonlySet<string> = new Set([...FUNCTION_ATTRIBUTES, 'noexcept', 'decltype']);

/** Whether source without comments mentions the grid group. Such a kernel can test whether its launch is cooperative. */
export function namesGrid(text: string): boolean {
  return /\b(?:this_grid|grid_group)\b/.test(text);
}

/** Whether the kernel `entry` of source without comments synchronises its grid. */
export function syncsGrid(text: string, entry: string): boolean {
  if (!namesGrid(text)) return false;
  const tokens = sourceTokens(text);
  const bodies = bodiesOf(tokens);
  const waiting = new Set(bodies.filter((body) => syncsItself(tokens, body)).map(({ name }) => name));
  // A function that calls a synchronising function synchronises too.
  const callees = bodies.map((body) => calledIn(tokens, body));
  for (let before = -1; before < waiting.size && !waiting.has(entry); ) {
    before = waiting.size;
    for (const [at, { name }] of bodies.entries())
      if (!waiting.has(name) && callees[at]!.some((callee) => waiting.has(callee))) waiting.add(name);
  }
  return waiting.has(entry);
}

function bodiesOf(tokens: readonly SourceToken[]): Body[] {
  const found: Body[] = [];
  let start = 0;
  for (let i = 0; i < tokens.length; i++) {
    const { text } = tokens[i]!;
    if (text === '{') {
      const name = functionName(tokens, start, i);
      if (name !== undefined) {
        const to = closing(tokens, i);
        found.push({ name, from: start, to });
        i = to;
      }
      start = i + 1;
    } else if (text === ';' || text === '}') {
      start = i + 1;
    }
  }
  return found;
}

/** The name of the function whose head is [start, brace); undefined for namespaces, classes and initialisers. */
function functionName(tokens: readonly SourceToken[], start: number, brace: number): string | undefined {
  for (let i = start; i < brace; i++) {
    const { text } = tokens[i]!;
    if (text === '=') return undefined;
    if (text !== '(') continue;
    const name = tokens[i - 1]?.text ?? '';
    if (i > start && /^\w/.test(name) && !NO_FUNCTION.has(name)) return name;
    i = closing(tokens, i);
  }
  return undefined;
}

/** The index of the bracket that closes the one at `open`; the last token when none does. */
function closing(tokens: readonly SourceToken[], open: number): number {
  const [opener, closer] = tokens[open]!.text === '{' ? ['{', '}'] : ['(', ')'];
  let depth = 0;
  for (let i = open; i < tokens.length; i++) {
    if (tokens[i]!.text === opener) depth++;
    else if (tokens[i]!.text === closer && --depth === 0) return i;
  }
  return tokens.length - 1;
}

/** Names of functions in the source that a body calls, with or without template arguments. */
function calledIn(tokens: readonly SourceToken[], { from, to }: Body): string[] {
  const names = new Set<string>();
  for (let i = from; i < to; i++) {
    const next = tokens[i + 1]!.text;
    if (/^\w/.test(tokens[i]!.text) && (next === '(' || next === '<' || next === '<<<')) names.add(tokens[i]!.text);
  }
  return [...names];
}

function syncsItself(tokens: readonly SourceToken[], { from, to }: Body): boolean {
  const grids = new Set<string>();
  for (let i = from; i < to; i++) {
    const { text } = tokens[i]!;
    if (text === 'grid_group') {
      let name = i + 1;
      while (/^(?:const|[&*])$/.test(tokens[name]?.text ?? '')) name++;
      if (/^\w/.test(tokens[name]?.text ?? '')) grids.add(tokens[name]!.text);
    } else if (text === 'this_grid') {
      // Matches `auto grid = cg::this_grid()`, with `=`, `(` or `{` before the call.
      let before = i - 1;
      while (tokens[before]?.text === '::' || tokens[before + 1]?.text === '::') before--;
      if (/^[=({]$/.test(tokens[before]?.text ?? '')) grids.add(tokens[before - 1]?.text ?? '');
    }
  }
  const textAt = (at: number): string => tokens[at]?.text ?? '';
  for (let i = from; i < to; i++) {
    const isGrid = grids.has(textAt(i)) || textAt(i) === 'this_grid';
    if (!isGrid) continue;
    const after = textAt(i) === 'this_grid' ? i + 3 : i + 1;
    if (textAt(after) === '.' && /^(?:sync|barrier_arrive|barrier_wait)$/.test(textAt(after + 1))) return true;
    let before = i - 1;
    while (textAt(before) === '::' || textAt(before + 1) === '::') before--;
    if (textAt(before) === '(' && textAt(before - 1) === 'sync') return true;
  }
  return false;
}
