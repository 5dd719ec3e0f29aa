// Tells, from tokens, whether a CUDA kernel synchronises its grid through cooperative groups: the kernel, or a function that it calls by
// name, calls sync() on a variable declared as the grid. A grid passed through a template parameter is not detected. Without a cooperative
// launch, such a kernel fails on the CPU device when it runs; on CUDA it traps, which loses the device.
import { type DeclarationText, declarationsOf } from '../read/declarations.js';
import type { SourceToken } from '../read/tokens.js';

/** Whether source without comments mentions the grid group. Such a kernel can test whether its launch is cooperative. */
export function namesGrid(text: string): boolean {
  return /\b(?:this_grid|grid_group)\b/.test(text);
}

/** Whether the kernel `entry` of source without comments synchronises its grid. */
export function syncsGrid(text: string, entry: string): boolean {
  if (!namesGrid(text)) return false;
  const { tokens, declarations } = declarationsOf(text) ?? { tokens: [], declarations: [] };
  const bodies = declarations.filter(({ kind }) => kind === 'function');
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

/** Names of functions in the source that a body calls, with or without template arguments. */
function calledIn(tokens: readonly SourceToken[], { from, to }: DeclarationText): string[] {
  const names = new Set<string>();
  for (let i = from; i < to; i++) {
    const next = tokens[i + 1]?.text;
    if (/^\w/.test(tokens[i]!.text) && (next === '(' || next === '<' || next === '<<<')) names.add(tokens[i]!.text);
  }
  return [...names];
}

function syncsItself(tokens: readonly SourceToken[], { from, to }: DeclarationText): boolean {
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
