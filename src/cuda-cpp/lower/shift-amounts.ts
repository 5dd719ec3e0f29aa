// Shifts by amounts that may reach the width of the value: a GPU then gives 0 or the sign, a processor takes the amount modulo the width.
//
// `x << n` becomes `x << ::mr_shift(n)`, whose type has the operators of the shim's shifts.h. Literals stay as they are, and so does code that
// this file cannot read with certainty: `>>` may end the arguments of templates.
import { isLaunch, closing, type Token } from '../read/tokens.js';
import type { Edit } from '../read/source-edits.js';

/** Tokens that may follow the right operand. A lone `<` may begin template arguments. */
const FOLLOWS: ReadonlySet<string> = new Set([';', ',', ')', ']', '}', ':', '?', '&', '|', '^', '=', '!', '>']);
const PREFIXES: ReadonlySet<string> = new Set(['-', '+', '~', '!', '*', '&']);
const ARITHMETIC: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%']);
/** Words that are no operand. */
const WORDS: ReadonlySet<string> = new Set(['operator', 'return', 'case', 'new', 'delete', 'co_await', 'co_yield', 'throw', 'typename']);

/** Whether the source may have a shift by something else than a literal. */
export function mayShift(source: string): boolean {
  return /(?:(?<!<)<<|(?<!>)>>)=?\s*(?!\d\w*\s*[^-+*/%\s\w])[^\s<>=]/.test(source);
}

/** Nothing for a source with shift operators of its own. */
export function shiftEdits(tokens: readonly Token[]): Edit[] {
  const edits: Edit[] = [];
  for (let i = 1; i + 2 < tokens.length; i++) {
    const mark = tokens[i]!.text;
    if ((mark !== '<' && mark !== '>') || !isAdjacent(tokens, i) || tokens[i + 1]!.text !== mark) continue;
    if (tokens[i - 1]!.text === 'operator') return [];
    if (isLaunch(tokens, i, mark)) {
      i += 2;
      continue;
    }
    const isCompound = tokens[i + 2]!.text === '=' && isAdjacent(tokens, i + 1);
    const first = i + (isCompound ? 3 : 2);
    if (endsOperand(tokens, i - 1, isCompound) && !(mark === '>' && isInArguments(tokens, i))) {
      const end = operandEnd(tokens, first);
      if (end > first && !(end === first + 1 && tokens[first]!.kind === 'number')) {
        const [from, to] = [tokens[first]!.start, tokens[end - 1]!.end];
        edits.push({ start: from, end: from, text: ' ::mr_shift(' }, { start: to, end: to, text: ')' });
      }
    }
    i++;
  }
  return edits;
}

function isAdjacent(tokens: readonly Token[], at: number): boolean {
  return tokens[at]!.end === tokens[at + 1]?.start;
}

/** Whether the left operand ends here. A compound assignment to a member may be one to a bit-field, which has no reference. */
function endsOperand(tokens: readonly Token[], at: number, isCompound: boolean): boolean {
  const { kind, text } = tokens[at]!;
  if (text === ']') return true;
  if (kind !== 'name' || WORDS.has(text)) return !isCompound && (kind === 'number' || text === ')');
  return !isCompound || (tokens[at - 1]?.text !== '.' && tokens[at - 1]?.text !== '>');
}

/** Whether a `<` before it in the same brackets and statement may begin template arguments that end here. */
function isInArguments(tokens: readonly Token[], at: number): boolean {
  let depth = 0;
  for (let i = at - 1; i >= 0; i--) {
    const { text } = tokens[i]!;
    if (text === ')' || text === ']') depth++;
    else if (text === '(' || text === '[') depth--;
    else if (text === ';' || text === '{' || text === '}') return false;
    if (depth < 0) return false;
    if (depth > 0 || text !== '<') continue;
    if (tokens[i - 1]?.text === '<' && isAdjacent(tokens, i - 1)) i--;
    else return true;
  }
  return false;
}

/** The index after sums and products of names, numbers, calls, elements and members; `first` if there is more. */
function operandEnd(tokens: readonly Token[], first: number): number {
  let at = first;
  for (;;) {
    while (PREFIXES.has(tokens[at]?.text ?? '')) at++;
    const { kind, text } = tokens[at] ?? { kind: 'punctuation', text: '' };
    const isGlobal = text === ':' && tokens[at + 1]?.text === ':';
    if (isGlobal) at += 2;
    else if (text === '(') at = closing(tokens, at) + 1;
    else if ((kind === 'name' && !WORDS.has(text)) || kind === 'number') at++;
    else return first;
    if (isGlobal) continue;
    at = postfixEnd(tokens, at);
    const after = tokens[at];
    if (after === undefined) return first;
    // After the parentheses of a cast.
    if (after.kind === 'name' || after.kind === 'number') {
      if (tokens[at - 1]!.text !== ')') return first;
    } else if (ARITHMETIC.has(after.text)) {
      if (tokens[at + 1]?.text === after.text && isAdjacent(tokens, at)) return first;
      at++;
    } else {
      const isShift = after.text === '<' && tokens[at + 1]?.text === '<' && isAdjacent(tokens, at);
      return FOLLOWS.has(after.text) || isShift ? at : first;
    }
  }
}

function postfixEnd(tokens: readonly Token[], from: number): number {
  let at = from;
  for (;;) {
    const text = tokens[at]?.text;
    const next = tokens[at + 1];
    if (text === '(' || text === '[') at = closing(tokens, at) + 1;
    else if (text === '.' && next?.kind === 'name') at += 2;
    else if (((text === '-' && next?.text === '>') || (text === ':' && next?.text === ':')) && tokens[at + 2]?.kind === 'name') at += 3;
    else return at;
  }
}
