// Whether the blocks of a CUDA text's kernel wait for each other by cooperative groups, as far as its tokens tell: the
// kernel, or a function that it calls by name, synchronises what is declared as the grid. A grid that goes through a
// template parameter is not seen: then the CPU device finds out when it runs, and CUDA stops there, which loses the device.

interface Token {
  readonly text: string;
  readonly at: number;
}

/** A function outside classes' and functions' bodies, or a member of a class: tokens of its head and body. */
interface Body {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Names before parentheses that make no function. */
const NO_FUNCTION: ReadonlySet<string> = new Set([
  '__launch_bounds__',
  '__cluster_dims__',
  '__attribute__',
  '__align__',
  'alignas',
  'noexcept',
  'decltype',
]);

/** Whether a text, without comments, has the whole grid as a group: such a kernel can tell whether its launch is cooperative. */
export function namesGrid(text: string): boolean {
  return /\b(?:this_grid|grid_group)\b/.test(text);
}

/** Whether the kernel `entry` of a text without comments waits for its whole grid. */
export function syncsGrid(text: string, entry: string): boolean {
  if (!namesGrid(text)) return false;
  const tokens = [...text.matchAll(/[A-Za-z_]\w*|[;{}()<>.,=&*:]/g)].map((match): Token => ({ text: match[0], at: match.index }));
  const bodies = bodiesOf(tokens);
  const waiting = new Set(bodies.filter((body) => syncsItself(tokens, body)).map(({ name }) => name));
  // Whoever calls one that waits does too.
  const callees = bodies.map((body) => calledIn(tokens, body));
  for (let before = -1; before < waiting.size && !waiting.has(entry); ) {
    before = waiting.size;
    for (const [at, { name }] of bodies.entries())
      if (!waiting.has(name) && callees[at]!.some((callee) => waiting.has(callee))) waiting.add(name);
  }
  return waiting.has(entry);
}

function bodiesOf(tokens: readonly Token[]): Body[] {
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

/** Of the function whose head is [start, brace); undefined for namespaces, classes and initialisers. */
function functionName(tokens: readonly Token[], start: number, brace: number): string | undefined {
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

/** The bracket that closes the one at `open`; the last token where none does. */
function closing(tokens: readonly Token[], open: number): number {
  const [opener, closer] = tokens[open]!.text === '{' ? ['{', '}'] : ['(', ')'];
  let depth = 0;
  for (let i = open; i < tokens.length; i++) {
    if (tokens[i]!.text === opener) depth++;
    else if (tokens[i]!.text === closer && --depth === 0) return i;
  }
  return tokens.length - 1;
}

/** Names of the text's functions that a body mentions before a bracket, template arguments between them or not. */
function calledIn(tokens: readonly Token[], { from, to }: Body): string[] {
  const names = new Set<string>();
  for (let i = from; i < to; i++) {
    const next = tokens[i + 1]!.text;
    if (/^\w/.test(tokens[i]!.text) && (next === '(' || next === '<')) names.add(tokens[i]!.text);
  }
  return [...names];
}

function syncsItself(tokens: readonly Token[], { from, to }: Body): boolean {
  const grids = new Set<string>();
  for (let i = from; i < to; i++) {
    const { text } = tokens[i]!;
    if (text === 'grid_group') {
      let name = i + 1;
      while (/^(?:const|[&*])$/.test(tokens[name]?.text ?? '')) name++;
      if (/^\w/.test(tokens[name]?.text ?? '')) grids.add(tokens[name]!.text);
    } else if (text === 'this_grid') {
      // `auto grid = cg::this_grid()`, with =, ( or { before it.
      let before = i - 1;
      while (tokens[before]?.text === ':' || tokens[before + 1]?.text === ':') before--;
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
    while (textAt(before) === ':' || textAt(before + 1) === ':') before--;
    if (textAt(before) === '(' && textAt(before - 1) === 'sync') return true;
  }
  return false;
}
