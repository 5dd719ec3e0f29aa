// Rewrites launches from kernels, `k<<<grid, block, shared, stream>>>(args)`, as calls of the shim's device_runtime.h. Runs before all
// other rewriting, which then sees ordinary calls.
import { applyEdits, type Edit, type EditedSource } from '../read/source-edits.js';
import { closingAngle } from '../read/functions.js';
import { closing, isLaunch, namespaceScope, tokenize, type Token } from '../read/tokens.js';
import { kernelsOf } from './rewrite.js';

/** Source whose launches are calls. */
export interface LaunchingSource extends EditedSource {
  readonly tokens: readonly Token[];
}

/** Rewrites the launches; returns the source unchanged if it has none. */
export function rewriteLaunches(source: string, tokens: readonly Token[]): LaunchingSource {
  const edits: Edit[] = [];
  const templates = templateKernels(tokens);
  const bounded = boundedKernels(tokens);
  for (let i = 0; i < tokens.length; i++) {
    if (!isLaunch(tokens, i)) continue;
    const close = launchEnd(tokens, i + 3);
    const start = calleeStart(tokens, i - 1);
    if (close < 0 || start < 0) continue;
    const [first, last] = [tokens[start]!, tokens[i - 1]!];
    const name = last.kind === 'name' ? last.text : tokens[angleStart(tokens, i - 1) - 1]!.text;
    const given = last.kind === 'name' ? 0 : argumentCount(tokens, angleStart(tokens, i - 1));
    const brackets = { start: tokens[i]!.start, end: tokens[i + 2]!.end };
    if (given < (templates.get(name) ?? 0)) {
      // The call's arguments determine the template's arguments.
      edits.push({ start: first.start, end: first.start, text: 'mr_launch_body(MR_BODY(' }, { ...brackets, text: '), ' });
    } else {
      const bounds = start === i - 1 && (bounded.get(name) ?? Infinity) < i ? `, mr_max_threads_${name}` : '';
      edits.push({ start: first.start, end: first.start, text: 'mr_launch<' }, { ...brackets, text: `${bounds}>(` });
    }
    edits.push({ start: tokens[close]!.start, end: tokens[close + 2]!.end, text: ')' });
  }
  if (edits.length === 0) return { text: source, tokens, restore: (log) => log };
  const edited = applyEdits(source, tokens, edits);
  return { ...edited, tokens: tokenize(edited.text).tokens };
}

/** The first token of a launch's `>>>`. */
function launchEnd(tokens: readonly Token[], from: number): number {
  for (let i = from; i < tokens.length; i++) {
    const { text } = tokens[i]!;
    if (text === '(' || text === '[' || text === '{') i = closing(tokens, i);
    else if (text === ';' || text === ')' || text === '}' || isLaunch(tokens, i)) return -1;
    else if (isLaunch(tokens, i, '>') && tokens[i + 3]?.text === '(') return i;
  }
  return -1;
}

/** The first token of a name, possibly qualified or with template arguments, that ends at `end`; -1 if it is not a name. */
function calleeStart(tokens: readonly Token[], end: number): number {
  let i = end;
  for (;;) {
    if (tokens[i]?.text === '>') i = angleStart(tokens, i) - 1;
    if (tokens[i]?.kind !== 'name') return -1;
    if (tokens[i - 1]?.text !== ':' || tokens[i - 2]?.text !== ':') return i;
    if (tokens[i - 3]?.kind !== 'name' && tokens[i - 3]?.text !== '>') return i - 2;
    i -= 3;
  }
}

/** The `<` that the `>` at `end` closes. */
function angleStart(tokens: readonly Token[], end: number): number {
  for (let i = end - 1; i > 0; i--) {
    if (tokens[i]!.text === '<' && closingAngle(tokens, i) === end) return i;
  }
  return 0;
}

/** The number of template arguments after the `<` at `open`. */
function argumentCount(tokens: readonly Token[], open: number): number {
  const close = closingAngle(tokens, open);
  let count = close > open + 1 ? 1 : 0;
  for (let i = open + 1; i < close; i++) {
    const { text } = tokens[i]!;
    if (text === '(' || text === '[' || text === '{') i = closing(tokens, i);
    else if (text === '<') i = Math.max(i, closingAngle(tokens, i));
    else if (text === ',') count++;
  }
  return count;
}

/** For each kernel template, the number of template arguments without a default. */
function templateKernels(tokens: readonly Token[]): Map<string, number> {
  const found = new Map<string, number>();
  for (let i = 0; i < tokens.length; i++) {
    if (tokens[i]!.text !== 'template' || tokens[i + 1]?.text !== '<') continue;
    const close = closingAngle(tokens, i + 1);
    if (close < 0) continue;
    const end = tokens.findIndex(({ text }, at) => at > close && (text === '{' || text === ';'));
    const head = tokens.slice(close, end);
    if (!head.some(({ text }) => text === '__global__')) continue;
    const name = head.find(({ kind }, at) => kind === 'name' && head[at + 1]?.text === '(' && !head[at]!.text.startsWith('__'));
    if (name !== undefined && argumentCount(tokens, i + 1) > 0) found.set(name.text, neededCount(tokens, i + 1, close));
  }
  return found;
}

/** Does not count parameters that have a default. */
function neededCount(tokens: readonly Token[], open: number, close: number): number {
  const defaults = tokens.slice(open, close).filter(({ text }) => text === '=').length;
  return argumentCount(tokens, open) - defaults;
}

/** Kernels with launch bounds by name, and the offset from which the bounds are known. */
function boundedKernels(tokens: readonly Token[]): Map<string, number> {
  const kernels = kernelsOf(tokens, namespaceScope(tokens)).filter(({ bounds }) => bounds !== undefined);
  return new Map(kernels.map(({ name, open }) => [name, open]));
}
