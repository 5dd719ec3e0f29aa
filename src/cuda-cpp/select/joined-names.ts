// Names that macros of a source can make with `##`, which no reader of tokens sees.
import { macrosIn } from '../read/directives.js';

const JOINED = /\w+(?:\s*##\s*\w+)+/g;
/** Most operands that a macro joins to one name, and most macros in each other. */
const MOST = 4;
/** Most ways to join; more come only from arbitrary input, and every name is compared with each. */
const MOST_WAYS = 200;

/**
 * Tells which names the macros can make; undefined if they make none. An operand that is a parameter may be any word of the source, so
 * `step_##n` makes `step_a` if the source has the word `a`. `, ##__VA_ARGS__` makes no name, since a comma is no part of one.
 */
export function joinedNames(text: string): ((name: string) => boolean) | undefined {
  if (!text.includes('##')) return undefined;
  /** Texts around one parameter. */
  const around = new Map<string, readonly [before: string, behind: string]>();
  const whole = new Set<string>();
  for (const { parameters, body } of macrosIn(text)) {
    const own = new Set(parameters);
    for (const [joined] of body.matchAll(JOINED)) {
      const operands = joined.split(/\s*##\s*/);
      const given = operands.findIndex((operand) => own.has(operand));
      if (given < 0) whole.add(operands.join(''));
      // Of two parameters, any name.
      else if (operands.length > MOST || operands.some((operand, i) => i > given && own.has(operand))) return () => true;
      else around.set(joined, [operands.slice(0, given).join(''), operands.slice(given + 1).join('')]);
    }
  }
  if (around.size === 0 && whole.size === 0) return undefined;
  if (around.size > MOST_WAYS) return () => true;
  const words = new Set(text.match(/\w+/g));
  const isMade = (name: string, depth: number): boolean =>
    whole.has(name) ||
    [...around.values()].some(([before, behind]) => {
      if (name.length < before.length + behind.length || !name.startsWith(before) || !name.endsWith(behind)) return false;
      const argument = name.slice(before.length, name.length - behind.length);
      return argument === '' || words.has(argument) || (depth < MOST && argument.length < name.length && isMade(argument, depth + 1));
    });
  return (name) => isMade(name, 1);
}
