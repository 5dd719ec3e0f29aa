// Temporary objects of expressions that contain a co_await. g++ before 12.3 moves them to the coroutine's frame. It copies the bytes of a
// temporary that is initialised member by member (a closure, or an aggregate in braces), and then destroys the members of both copies. It
// rejects a closure that holds an array.
//
// A temporary that a function returns is moved correctly. So such a temporary becomes the result of a lambda that makes it.
import type { BuildSpec } from '../../core/channel/build-spec.js';
import type { FunctionTokens } from '../cuda-parser/functions.js';
import { closing, opening, type Token } from '../cuda-parser/tokenizer.js';
import { expressionStarts } from './waiting-conditionals.js';
import { unable, type Waiting } from './waiting-functions.js';

/** Token indices, both inclusive. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Words before a brace that make it a block. */
const BEFORE_BLOCK: ReadonlySet<string> = new Set(['else', 'do', 'try']);
const BEFORE_INITIALISER = '=,({>]';

/**
 * The temporaries that a lambda must make. Throws a CompileError for those that it cannot make. `bodies`: the braces of lambdas.
 * `nameStart`: the first token of the name, with its qualifiers and template arguments, that ends at a token.
 */
export function temporaries(
  spec: BuildSpec,
  tokens: readonly Token[],
  waiting: Waiting,
  awaits: readonly Range[],
  bodies: ReadonlySet<number>,
  nameStart: (tokens: readonly Token[], end: number) => number,
): Range[] {
  const startsOf = (ranges: readonly Range[]): number[] =>
    expressionStarts(
      tokens,
      ranges.map(({ from }) => from),
      bodies,
    );
  const awaited = new Set(startsOf(awaits));
  const ofAwaited = <R extends Range>(ranges: readonly R[]): R[] => {
    const starts = startsOf(ranges);
    return ranges.filter((_range, i) => awaited.has(starts[i]!));
  };
  const closures = waiting.functions
    .filter((fn) => fn.kind === 'lambda' && capturesValues(tokens, fn))
    .map(({ at, bodyEnd }) => ({ from: at, to: bodyEnd }));
  const found: Range[] = ofAwaited(closures);
  const classes = destroyedClasses(tokens, waiting.functions);
  if (classes.size === 0) return found;
  const mentions = (from: number, to: number): boolean => tokens.slice(from, to + 1).some(({ text }) => classes.has(text));
  for (const { from, to, open } of ofAwaited(initialisers(tokens, waiting, bodies, nameStart))) {
    const isWaiting = awaits.some((one) => one.from > open && one.to < to && waiting.owner[one.from] === waiting.owner[open]);
    const isNamed = from < open;
    if (!isWaiting && found.some((outer) => outer.from <= from && to <= outer.to)) continue;
    const [start] = startsOf([{ from: open, to }]);
    const callee = isNamed ? '' : calleeOf(tokens, open);
    const isParameter = waiting.functions.some((fn) => fn.name === callee && fn.open >= 0 && mentions(fn.open, fn.close));
    if (!isParameter && !mentions(isWaiting ? start! : from, to)) continue;
    if (!isWaiting && isNamed) found.push({ from, to });
    else
      throw unable(
        spec,
        tokens[open]!,
        isWaiting
          ? 'waits in braces that initialise an object with a destructor: store what the wait returns in a variable before'
          : 'initialises an object with a destructor in braces, in an expression that waits: write the type before the braces',
      );
  }
  return found;
}

function capturesValues(tokens: readonly Token[], { at }: FunctionTokens): boolean {
  const end = closing(tokens, at);
  for (let i = at + 1, isFirst = true; i < end; i++) {
    const { text } = tokens[i]!;
    if (isFirst && text !== '&' && text !== 'this') return true;
    isFirst = text === ',';
    if ('([{'.includes(text)) i = closing(tokens, i);
  }
  return false;
}

/** Classes with a destructor, and classes that may have members or bases of them. */
function destroyedClasses(tokens: readonly Token[], functions: readonly FunctionTokens[]): Set<string> {
  const found = new Set(functions.filter(({ name }) => name.startsWith('~')).map(({ name }) => name.slice(1)));
  for (let before = 0; found.size > before; ) {
    before = found.size;
    for (const [i, { text }] of tokens.entries()) {
      if ((text !== 'struct' && text !== 'class') || tokens[i + 1]?.kind !== 'name') continue;
      let open = i + 2;
      while (open < tokens.length && !'{;()=>'.includes(tokens[open]!.text)) open++;
      if (tokens[open]?.text !== '{') continue;
      if (tokens.slice(i + 2, closing(tokens, open)).some((token) => found.has(token.text))) found.add(tokens[i + 1]!.text);
    }
  }
  return found;
}

/** The lists in braces in functions that wait. `from` is the first token of the type before it, or the brace. */
function initialisers(
  tokens: readonly Token[],
  { waits, owner }: Waiting,
  bodies: ReadonlySet<number>,
  nameStart: (tokens: readonly Token[], end: number) => number,
): (Range & { readonly open: number })[] {
  return tokens.flatMap(({ text }, open) => {
    const before = tokens[open - 1];
    if (text !== '{' || before === undefined || bodies.has(open) || !waits.has(owner[open]!)) return [];
    const isInitialiser = before.kind === 'name' ? !BEFORE_BLOCK.has(before.text) : BEFORE_INITIALISER.includes(before.text);
    // A brace in a brace that is a block.
    if (!isInitialiser || (before.text === '{' && isBlock(tokens, open - 1, bodies))) return [];
    const isAfterName = (before.kind === 'name' && before.text !== 'return') || before.text === '>';
    let from = isAfterName ? nameStart(tokens, open - 1) : open;
    while (from < open && tokens[from - 1]?.text === ':' && tokens[from - 2]?.text === ':') {
      const qualifier = tokens[from - 3];
      from = qualifier?.kind === 'name' || qualifier?.text === '>' ? nameStart(tokens, from - 3) : from - 2;
    }
    return [{ from, to: closing(tokens, open), open }];
  });
}

/** The name of the function that gets the argument at a token; empty if it is none. */
function calleeOf(tokens: readonly Token[], argument: number): string {
  for (let i = argument - 1; i > 0; i--) {
    const { text } = tokens[i]!;
    if (text === '(') return tokens[i - 1]!.kind === 'name' ? tokens[i - 1]!.text : '';
    if (';{['.includes(text)) return '';
    if (')]}'.includes(text)) i = opening(tokens, i);
  }
  return '';
}

function isBlock(tokens: readonly Token[], open: number, bodies: ReadonlySet<number>): boolean {
  const before = tokens[open - 1];
  if (before === undefined || bodies.has(open) || ';})'.includes(before.text) || BEFORE_BLOCK.has(before.text)) return true;
  return before.text === '{' && isBlock(tokens, opening(tokens, closing(tokens, open - 1)), bodies);
}
