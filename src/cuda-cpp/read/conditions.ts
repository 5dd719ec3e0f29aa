// Reads `#if`. Blanks the branches of conditions that the preprocessor will not take, as far as the source itself shows it: `#if 0`, and tests
// of macros that the source, the options or the device define. A refusal of the source may then name only code that is compiled. Names that
// headers define count as undefined; the compiler, which preprocesses the source, checks the rest.
import { directivesOf, macroOf } from './directives.js';
import { sourceTokens, SPLICE, withoutComments } from './tokens.js';

const SPLICES = new RegExp(SPLICE, 'g');
/** Operators of two characters. */
const PAIRS: ReadonlySet<string> = new Set(['&&', '||', '==', '!=', '<=', '>=', '<<', '>>']);
/** How tightly operators bind. */
const BINDING: readonly (readonly string[])[] = [['||'], ['&&'], ['==', '!='], ['<', '>', '<=', '>='], ['+', '-'], ['*', '/', '%']];

interface Condition {
  /** Whether a branch was taken; undefined if that is not known. */
  wasTaken: boolean | undefined;
  /** Whether the present branch is left out, by itself or with what is around the condition. */
  isBlank: boolean;
  readonly isAroundBlank: boolean;
  /** Whether no compiler takes the present branch. */
  isNever: boolean;
}

/** The directives that decide which branches are taken. Others are left out with the branch that they are in. */
const READ = /^(?:if|ifdef|ifndef|elif|else|endif|define|undef)$/;

/** A part of the source between two of these directives. */
interface Part {
  readonly start: number;
  readonly end: number;
  readonly isBlank: boolean;
  readonly isNever: boolean;
}

/** `holds` tells of each directive that is compiled, or opens or continues a condition, whether its condition holds. */
function partsOf(text: string, holds: (directive: string, rest: string, isBlank: boolean) => boolean | undefined): Part[] {
  const open: Condition[] = [];
  const parts: Part[] = [];
  let from = 0;
  const end = (to: number): void => {
    parts.push({ start: from, end: to, isBlank: open.at(-1)?.isBlank === true, isNever: open.some(({ isNever }) => isNever) });
  };
  for (const { name, rest, start, end: next } of directivesOf(text)) {
    if (!READ.test(name)) continue;
    end(start);
    const isBlank = open.at(-1)?.isBlank === true;
    follow(open, name, holds(name, rest.replace(SPLICES, ' ').trim(), isBlank), isBlank);
    from = next;
  }
  end(text.length);
  return parts;
}

function withoutBlank(source: string, parts: readonly Part[]): string {
  if (!parts.some(({ isBlank }) => isBlank)) return source;
  let [made, from] = ['', 0];
  for (const { start, end, isBlank } of parts) {
    if (!isBlank) continue;
    made += source.slice(from, start) + source.slice(start, end).replace(/[^\r\n]/g, ' ');
    from = end;
  }
  return made + source.slice(from);
}

/** The source with spaces in these branches. Directives and line breaks stay. `macros`: what is defined at the start, with its value. */
export function withoutUntakenBranches(source: string, macros: ReadonlyMap<string, string>): string {
  if (!/^[ \t]*#[ \t]*if/m.test(source)) return source;
  const defined = new Map(macros);
  const parts = partsOf(withoutComments(source), (directive, rest, isBlank) => {
    const value = valueOf(directive, rest, defined);
    const macro = !isBlank && directive === 'define' ? macroOf(rest) : undefined;
    if (macro) defined.set(macro.name, macro.parameters ? '?' : macro.body.trim());
    if (!isBlank && directive === 'undef') defined.delete(rest);
    return value;
  });
  return withoutBlank(source, parts);
}

/** Text without comments, with spaces in place of `#if 0` and of the branches after the first, and what these branches contain. */
export function withoutLaterBranches(text: string): readonly [text: string, other: string] {
  const parts = partsOf(text, (directive, rest) => !directive.startsWith('if') || !/^0\b/.test(rest));
  const other = parts.filter(({ isBlank, isNever }) => isBlank && !isNever).map(({ start, end }) => text.slice(start, end));
  return [withoutBlank(text, parts), other.join('')];
}

/** Opens, continues or closes a condition. */
function follow(open: Condition[], directive: string, value: boolean | undefined, isAroundBlank: boolean): void {
  const top = open.at(-1);
  if (directive.startsWith('if'))
    open.push({ wasTaken: value, isBlank: isAroundBlank || value === false, isAroundBlank, isNever: value === false });
  else if (directive === 'endif') open.pop();
  else if (top !== undefined && directive.startsWith('el')) {
    const isTaken = directive === 'else' ? true : value;
    top.isBlank = top.isAroundBlank || top.wasTaken === true || (top.wasTaken === false && isTaken === false);
    if (top.wasTaken === false) top.wasTaken = isTaken;
    top.isNever = false;
  }
}

/** Whether the condition of a directive holds; undefined if that is not known. */
function valueOf(directive: string, rest: string, defined: ReadonlyMap<string, string>): boolean | undefined {
  const name = /^\w+/.exec(rest)?.[0] ?? '';
  if (directive === 'ifdef') return defined.has(name);
  if (directive === 'ifndef') return !defined.has(name);
  if (directive !== 'if' && directive !== 'elif') return undefined;
  const value = new Expression(rest, defined).value();
  return value === undefined ? undefined : value !== 0;
}

/** An integer expression of the preprocessor. */
class Expression {
  readonly #tokens: string[] = [];
  readonly #defined: ReadonlyMap<string, string>;
  readonly #depth: number;
  #at = 0;

  constructor(text: string, defined: ReadonlyMap<string, string>, depth = 0) {
    this.#defined = defined;
    this.#depth = depth;
    let last = -1;
    for (const { text: sign, start } of sourceTokens(text)) {
      const pair = last === start - 1 ? `${this.#tokens.at(-1)}${sign}` : '';
      if (PAIRS.has(pair)) this.#tokens[this.#tokens.length - 1] = pair;
      else this.#tokens.push(sign);
      last = start;
    }
  }

  /** Undefined for an expression that this does not read. */
  value(): number | undefined {
    const value = this.#level(0);
    return this.#at === this.#tokens.length ? value : undefined;
  }

  #level(level: number): number | undefined {
    const operators = BINDING[level];
    if (operators === undefined) return this.#unary();
    let left = this.#level(level + 1);
    for (let sign = this.#tokens[this.#at]; sign !== undefined && operators.includes(sign); sign = this.#tokens[this.#at]) {
      this.#at++;
      left = combine(sign, left, this.#level(level + 1));
    }
    return left;
  }

  #unary(): number | undefined {
    const token = this.#tokens[this.#at++];
    if (token === '!') return negated(this.#unary());
    if (token === '-') return combine('-', 0, this.#unary());
    if (token === '(') {
      const value = this.#level(0);
      return this.#tokens[this.#at++] === ')' ? value : undefined;
    }
    if (token === undefined) return undefined;
    if (/^\d/.test(token)) return Number(token.replace(/'/g, '').replace(/[uUlL]+$/, ''));
    if (token === 'defined') return this.#isDefined();
    if (token === 'true') return 1;
    // A call of a macro, or of `__has_include`.
    if (!/^[A-Za-z_$]/.test(token) || this.#tokens[this.#at] === '(') return undefined;
    const body = this.#defined.get(token);
    if (body === undefined) return 0;
    return this.#depth > 20 ? undefined : new Expression(body, this.#defined, this.#depth + 1).value();
  }

  #isDefined(): number | undefined {
    const isInParentheses = this.#tokens[this.#at] === '(';
    if (isInParentheses) this.#at++;
    const name = this.#tokens[this.#at++] ?? '';
    if (isInParentheses && this.#tokens[this.#at++] !== ')') return undefined;
    return this.#defined.has(name) ? 1 : 0;
  }
}

function negated(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Number(value === 0);
}

/** What one unknown side leaves: `0 && unknown` is 0. */
function combine(sign: string, left: number | undefined, right: number | undefined): number | undefined {
  if (sign === '&&' && (left === 0 || right === 0)) return 0;
  if (sign === '||' && ((left !== undefined && left !== 0) || (right !== undefined && right !== 0))) return 1;
  if (left === undefined || right === undefined || Number.isNaN(left) || Number.isNaN(right)) return undefined;
  switch (sign) {
    case '||':
    case '&&':
      return Number(sign === '||' ? left !== 0 || right !== 0 : left !== 0 && right !== 0);
    case '==':
      return Number(left === right);
    case '!=':
      return Number(left !== right);
    case '<':
      return Number(left < right);
    case '>':
      return Number(left > right);
    case '<=':
      return Number(left <= right);
    case '>=':
      return Number(left >= right);
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    default:
      return right === 0 ? undefined : sign === '/' ? Math.trunc(left / right) : left % right;
  }
}
