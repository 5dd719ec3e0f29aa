// Decides, by tokens, whether an expression of a kernel depends only on unchanging values. The answer is no when the expression is not
// understood.
import type { BodyText } from '../read/variable-changes.js';

import { opening, type Token } from '../read/tokens.js';

const TYPES: ReadonlySet<string> = new Set(
  'int unsigned signed long short char float double bool size_t const int32_t uint32_t int64_t uint64_t'.split(' '),
);
/** Functions that access no memory, casts and literals. */
const PURE_WORDS: ReadonlySet<string> = new Set(['static_cast', 'min', 'max', 'true', 'false']);

/** `isFixed` tells whether the name at a token (not a type or member) has an unchanging value. */
export function isPure(
  tokens: readonly Token[],
  body: BodyText,
  from: number,
  to: number,
  isFixed: (at: number) => boolean,
  mayAssign = false,
): boolean {
  const isBinary = (i: number): boolean => i > from && body.isOperand(i - 1) && !endsCast(tokens, i - 1);
  for (let i = from; i <= to; i++) {
    const { text, kind } = tokens[i]!;
    const next = tokens[i + 1]!;
    if (kind === 'string' || text === '[' || text === '{') return false;
    if (text === '*' && !isBinary(i)) return false;
    if (text === '&' && next.text !== '&' && !isBinary(i) && tokens[i - 1]!.text !== '&') return false;
    if (text === '-' && next.text === '>') return false;
    if (kind !== 'name') {
      const isAssignment = text === '=' && next.text !== '=' && !/[=!<>]/.test(tokens[i - 1]!.text);
      const isShifted = text === '=' && /[<>]/.test(tokens[i - 1]!.text) && tokens[i - 2]!.text === tokens[i - 1]!.text;
      const isStep = (text === '+' || text === '-') && next.text === text;
      if (!mayAssign && (isAssignment || isShifted || isStep)) return false;
      continue;
    }
    if (body.isMember(i)) {
      const object = body.variableAt(i - 2);
      if (!/^[xyz]$/.test(text) || !(object === undefined || object.kind === 'vector')) return false;
      continue;
    }
    const variable = body.variableAt(i);
    if (variable === undefined && (TYPES.has(text) || PURE_WORDS.has(text)) && !body.isOfText(text)) continue;
    if (!isFixed(i) || next.text === '(') return false;
    // The source defines an object's operators and members.
    if (variable !== undefined && !/^(?:plain|pointer|vector)$/.test(variable.kind) && !variable.isInferred) return false;
  }
  return true;
}

/** Matches `(const float)`: the token after it begins the same operand. */
function endsCast(tokens: readonly Token[], close: number): boolean {
  if (tokens[close]!.text !== ')') return false;
  const open = opening(tokens, close);
  for (let i = open + 1; i < close; i++) if (!TYPES.has(tokens[i]!.text)) return false;
  return open >= 0 && close > open + 1;
}
