// Blanks the branches of conditions that the preprocessor will not take, as far as the source itself shows it: `#if 0`, and tests of macros
// that the source, the options or the device define. A refusal of the source may then name only code that is compiled. Names that headers
// define count as undefined; the compiler, which preprocesses the source, checks the rest.
import { withoutComments } from '../../compiler/cuda-source/source-scan.js';

const DIRECTIVE = /^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif|define|undef)\b[ \t]*([^\n]*)$/;
const TOKEN = /\s*(?:(\d[\w']*)|([A-Za-z_]\w*)|(&&|\|\||==|!=|<=|>=|<<|>>|[-+*/%<>!()~&|^?:]))/y;
/** How tightly operators bind. */
const BINDING: readonly (readonly string[])[] = [['||'], ['&&'], ['==', '!='], ['<', '>', '<=', '>='], ['+', '-'], ['*', '/', '%']];

interface Condition {
  /** Whether a branch was taken; undefined if that is not known. */
  wasTaken: boolean | undefined;
  /** Whether the present branch is compiled, together with what is around the condition. */
  isBlank: boolean;
  readonly isAroundBlank: boolean;
}

/** The source with spaces in these branches. Directives and line breaks stay. `macros`: what is defined at the start, with its value. */
export function withoutUntakenBranches(source: string, macros: ReadonlyMap<string, string>): string {
  if (!/^[ \t]*#[ \t]*if/m.test(source)) return source;
  const defined = new Map(macros);
  const open: Condition[] = [];
  const lines = source.split('\n');
  const text = withoutComments(source.replace(/\\\r?\n/g, (splice) => splice.replace('\\', ' '))).split('\n');
  return lines
    .map((line, at) => {
      const [, directive, rest = ''] = DIRECTIVE.exec(text[at]?.replace(/\r$/, '') ?? '') ?? [];
      const isBlank = open.at(-1)?.isBlank === true;
      if (directive === undefined) return isBlank ? line.replace(/[^\r]/g, ' ') : line;
      // A directive that goes on is not read: the condition counts as unknown.
      const value = /\\\r?$/.test(line) ? undefined : valueOf(directive, rest, defined);
      follow(open, directive, value, isBlank);
      if (!isBlank && directive === 'define') {
        const [, name = '', list, body = ''] = /^(\w+)(\()?(.*)$/.exec(rest) ?? [];
        defined.set(name, list === undefined ? body.trim() : '?');
      }
      if (!isBlank && directive === 'undef') defined.delete(rest.trim());
      return line;
    })
    .join('\n');
}

/** Opens, continues or closes a condition. */
function follow(open: Condition[], directive: string, value: boolean | undefined, isAroundBlank: boolean): void {
  const top = open.at(-1);
  if (directive.startsWith('if')) open.push({ wasTaken: value, isBlank: isAroundBlank || value === false, isAroundBlank });
  else if (directive === 'endif') open.pop();
  else if (top !== undefined && directive.startsWith('el')) {
    const isTaken = directive === 'else' ? true : value;
    top.isBlank = top.isAroundBlank || top.wasTaken === true || (top.wasTaken === false && isTaken === false);
    if (top.wasTaken === false) top.wasTaken = isTaken;
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
    let end = 0;
    TOKEN.lastIndex = 0;
    for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
      this.#tokens.push(match[0].trim());
      end = TOKEN.lastIndex;
    }
    // A sign that no expression has makes the value unknown.
    if (text.slice(end).trim() !== '') this.#tokens.push('?');
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
    if (!/^[A-Za-z_]/.test(token) || this.#tokens[this.#at] === '(') return undefined;
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
