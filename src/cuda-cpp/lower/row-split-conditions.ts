// Parses guard conditions by which a row of threads can be split: comparisons of the thread's index in the row with values that are the
// same for the row, joined by &&, || and !. The row splits where a comparison's outcome changes.
import { closing, type Token } from '../read/tokens.js';

/** How a value depends on the position in a row: not at all; as the index itself (signed or unsigned); or in any other way. */
export type Place = 'all' | 'index' | 'signed index' | 'row';

type Extent = readonly [from: number, to: number];

/** A comparison whose outcome changes at most once along a row, provided that those before it do not change. */
export interface Change {
  readonly left: Extent;
  readonly operator: string;
  readonly right: Extent;
}
export interface Condition {
  readonly from: number;
  readonly to: number;
  readonly changes: readonly Change[];
}

/** The condition in [from, to]; `placeOf` tells what tokens depend on. Undefined for a condition by which a row cannot be split. */
export function conditionOf(
  tokens: readonly Token[],
  from: number,
  to: number,
  placeOf: (from: number, to: number) => Place | undefined,
): Condition | undefined {
  const changes: Change[] = [];
  const isUnderstood = (first: number, last: number): boolean => {
    const joints = jointsOf(tokens, first, last);
    if (joints.length > 0) {
      const ends = [...joints.map((at) => at - 1), last];
      const starts = [first, ...joints.map((at) => at + 2)];
      return starts.every((start, at) => isUnderstood(start, ends[at]!));
    }
    if (first > last) return false;
    if (tokens[first]!.text === '!' && tokens[first + 1]!.text !== '=') return isUnderstood(first + 1, last);
    if (tokens[first]!.text === '(' && closing(tokens, first) === last) return isUnderstood(first + 1, last - 1);
    if (placeOf(first, last) === 'all') return true;
    const found = comparisonOf(tokens, first, last);
    if (found === undefined) return false;
    const { left, operator, right } = found;
    const [places, others] = placeOf(...right) === 'all' ? [left, right] : [right, left];
    if (placeOf(...others) !== 'all') return false;
    const kind = placeOf(...places);
    if (kind !== 'index' && kind !== 'signed index') {
      // `i - 1` may wrap around to a large value below zero.
      const [name, sign, number] = [places[0], tokens[places[0] + 1]?.text, places[1]];
      const isMoved = number === name + 2 && (sign === '+' || sign === '-') && /^\d+$/.test(tokens[number]!.text);
      if (!isMoved || placeOf(name, name) !== 'signed index') return false;
      if (sign === '-') changes.push({ left: [name, name], operator: '<', right: [number, number] });
    }
    const operators = operator === '==' || operator === '!=' ? ['<', '>'] : [operator];
    for (const one of operators) changes.push({ left, operator: one, right });
    return true;
  };
  return isUnderstood(from, to) ? { from, to, changes } : undefined;
}

/** The first token of each && and || outside parentheses. */
function jointsOf(tokens: readonly Token[], from: number, to: number): number[] {
  const joints: number[] = [];
  for (let i = from; i < to; i++) {
    const { text } = tokens[i]!;
    if (text === '(') i = closing(tokens, i);
    else if ((text === '&' || text === '|') && tokens[i + 1]!.text === text && tokens[i + 1]!.start === tokens[i]!.end) joints.push(i++);
  }
  return joints;
}

/** A single comparison whose operands contain no other. */
function comparisonOf(tokens: readonly Token[], from: number, to: number): Change | undefined {
  let found: Change | undefined;
  for (let i = from; i <= to; i++) {
    const { text } = tokens[i]!;
    if (text === '(') i = closing(tokens, i);
    if (!/^[<>=!?:,&|^~]$/.test(text)) continue;
    const hasEquals = tokens[i + 1]?.text === '=';
    const isComparison = text === '<' || text === '>' || ((text === '=' || text === '!') && hasEquals);
    if (!isComparison || found !== undefined) return undefined;
    found = { left: [from, i - 1], operator: hasEquals ? `${text}=` : text, right: [i + (hasEquals ? 2 : 1), to] };
    if (hasEquals) i++;
  }
  return found && found.left[0] <= found.left[1] && found.right[0] <= found.right[1] ? found : undefined;
}
