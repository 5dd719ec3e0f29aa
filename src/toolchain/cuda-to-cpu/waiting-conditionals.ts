// Finds `?:`, `&&` and `||` that decide whether a thread waits.
//
// g++ (12, and others) evaluates every co_await of an expression regardless of these operators. So the rewriting turns such an expression
// into statements in the body of a coroutine, which is awaited in its place.
import { closingAngle } from '../cuda-parser/functions.js';
import { closing, opening, type Token } from '../cuda-parser/tokenizer.js';

/** Token indices, both inclusive. */
export interface Conditional {
  readonly operator: '?' | '&&' | '||';
  readonly from: number;
  readonly to: number;
  /** First tokens of the operators: each `&&` of a chain, or `?` and `:`. */
  readonly at: readonly number[];
}

/** Operator precedence, as far as it matters here. */
const LEVEL = { comma: 0, assignment: 1, conditional: 2, or: 3, and: 4, higher: 5 } as const;
type Level = (typeof LEVEL)[keyof typeof LEVEL];

/** Words that begin a statement or an expression. */
const BEFORE_EXPRESSION: ReadonlySet<string> = new Set(['return', 'co_return', 'else', 'do', 'case', 'goto', 'throw']);
const BEFORE_PARENTHESES: ReadonlySet<string> = new Set(['if', 'while', 'for', 'switch', 'catch']);

/** For each call, the first token of the full expression or declaration that contains it. */
export function expressionStarts(tokens: readonly Token[], calls: readonly number[], lambdaBodies: ReadonlySet<number>): number[] {
  const reader = new ExpressionReader(tokens, lambdaBodies);
  return calls.map((call) => reader.wholeStart(call));
}

/** The conditionals that contain the calls in an operand, without duplicates. `lambdaBodies` are the braces of lambdas. */
export function conditionalsOf(tokens: readonly Token[], calls: readonly number[], lambdaBodies: ReadonlySet<number>): Conditional[] {
  const reader = new ExpressionReader(tokens, lambdaBodies);
  const found = new Map<string, Conditional>();
  for (const call of calls) {
    for (const one of reader.around(call)) found.set(`${one.from}-${one.to}`, one);
  }
  // A `?` without its `:` is a syntax error that the compiler reports.
  return [...found.values()].filter(({ at, to }) => to < tokens.length && at.every((i) => i < tokens.length));
}

class ExpressionReader {
  readonly #tokens: readonly Token[];
  readonly #lambdaBodies: ReadonlySet<number>;

  constructor(tokens: readonly Token[], lambdaBodies: ReadonlySet<number>) {
    this.#tokens = tokens;
    this.#lambdaBodies = lambdaBodies;
  }

  around(call: number): Conditional[] {
    const found: Conditional[] = [];
    let level: Level = LEVEL.higher;
    for (let i = call - 1; i >= 0; i--) {
      if (this.#isBoundaryBefore(i)) break;
      const text = this.#text(i);
      if (text === '(' || text === '[' || text === '{') {
        // Continues outside arguments, an index or an initialiser; a block or a lambda's body ends the expression.
        if (text === '{' && !this.#isInitialiser(i)) break;
        level = LEVEL.higher;
        continue;
      }
      const inside = this.#jumpBack(i);
      if (inside < i) {
        i = inside;
        continue;
      }
      if (text === '?') {
        found.push(this.#ternary(i));
        level = LEVEL.conditional;
        continue;
      }
      const question = text === ':' ? this.#questionOf(i) : -1;
      if (question >= 0) {
        if (level >= LEVEL.assignment) found.push(this.#ternary(question));
        if (level > LEVEL.conditional) level = LEVEL.conditional;
        i = question;
        continue;
      }
      const own = this.#levelAt(i);
      if ((own === LEVEL.and || own === LEVEL.or) && level > own) found.push(this.#chain(i, own));
      if (own < level) level = own;
    }
    return found;
  }

  wholeStart(call: number): number {
    let i = call - 1;
    for (; i >= 0 && !this.#isBoundaryBefore(i); i--) {
      const text = this.#text(i);
      if (text === '{' && !this.#isInitialiser(i)) break;
      if (text === '(' && BEFORE_PARENTHESES.has(this.#text(i - 1))) break;
      i = this.#jumpBack(i);
    }
    return i + 1;
  }

  #text(i: number): string {
    return this.#tokens[i]?.text ?? ';';
  }

  /** Whether two tokens form one operator. */
  #isPair(i: number, pair: string): boolean {
    const [a, b] = [this.#tokens[i], this.#tokens[i + 1]];
    return a !== undefined && b !== undefined && a.text + b.text === pair && a.end === b.start;
  }

  /** The precedence of the operator whose last token is at `i`. */
  #levelAt(i: number): Level {
    const text = this.#text(i);
    if (text === ',') return LEVEL.comma;
    if (text === '?' || (text === ':' && !this.#isPair(i, '::') && !this.#isPair(i - 1, '::'))) return LEVEL.conditional;
    if (text === '=') {
      if (this.#isPair(i, '==') || /^(?:==|!=)$/.test(this.#pairEnding(i))) return LEVEL.higher;
      const isComparison = /^[<>]=$/.test(this.#pairEnding(i)) && !this.#isPair(i - 2, '<<') && !this.#isPair(i - 2, '>>');
      return isComparison ? LEVEL.higher : LEVEL.assignment;
    }
    if (this.#isPair(i - 1, '&&')) return LEVEL.and;
    if (this.#isPair(i - 1, '||')) return LEVEL.or;
    return LEVEL.higher;
  }

  #pairEnding(i: number): string {
    const before = this.#tokens[i - 1];
    return before !== undefined && before.end === this.#tokens[i]!.start ? before.text + this.#text(i) : '';
  }

  /** Whether an expression can begin at `i + 1`. */
  #isBoundaryBefore(i: number): boolean {
    const text = this.#text(i);
    if (text === ';' || (text === '}' && this.#jumpBack(i) === i) || BEFORE_EXPRESSION.has(text)) return true;
    return text === ')' && BEFORE_PARENTHESES.has(this.#text(opening(this.#tokens, i) - 1));
  }

  #isInitialiser(open: number): boolean {
    const before = this.#tokens[open - 1];
    if (this.#lambdaBodies.has(open) || before === undefined || BEFORE_EXPRESSION.has(before.text)) return before?.text === 'return';
    return before.kind === 'name' || ['=', ',', '(', '{', '>', ']', '?', ':'].includes(before.text);
  }

  /** Skips a bracketed group that ends at `i` to its first token; returns `i` if there is none. */
  #jumpBack(i: number): number {
    const text = this.#text(i);
    if (text === ')' || text === ']') return opening(this.#tokens, i);
    if (text === '}') {
      const open = opening(this.#tokens, i);
      return this.#lambdaBodies.has(open) || this.#isInitialiser(open) ? open : i;
    }
    if (text === '>' && ['(', ':', '{'].includes(this.#text(i + 1))) {
      for (let open = i - 1; open > 0 && !';{}'.includes(this.#text(open)); open--) {
        if (this.#text(open) === '<' && this.#tokens[open - 1]!.kind === 'name' && closingAngle(this.#tokens, open) === i) return open;
      }
    }
    return i;
  }

  /** Skips a bracketed group that begins at `i` to its last token. */
  #jump(i: number): number {
    const text = this.#text(i);
    if (text === '(' || text === '[' || text === '{') return closing(this.#tokens, i);
    if (text === '<' && this.#tokens[i - 1]?.kind === 'name') {
      const close = closingAngle(this.#tokens, i);
      if (close > 0 && ['(', ':', '{'].includes(this.#text(close + 1))) return close;
    }
    return i;
  }

  /** The `?` of the `:` at `colon`, or -1. */
  #questionOf(colon: number): number {
    if (this.#isPair(colon, '::') || this.#isPair(colon - 1, '::')) return -1;
    let open = 1;
    for (let i = colon - 1; i >= 0; i--) {
      const text = this.#text(i);
      const inside = this.#jumpBack(i);
      if (inside < i) i = inside;
      else if (text === '?') {
        if (--open === 0) return i;
      } else if (text === ':' && !this.#isPair(i, '::') && !this.#isPair(i - 1, '::')) open++;
      else if (';{}(['.includes(text)) return -1;
    }
    return -1;
  }

  /** Goes back from `i` to the first token of an expression whose operators all bind tighter than `below`. */
  #start(i: number, below: Level): number {
    let at = i;
    while (at > 0) {
      const before = at - 1;
      if ('([{'.includes(this.#text(before)) || this.#isBoundaryBefore(before)) break;
      const inside = this.#jumpBack(before);
      if (inside < before) at = inside;
      else if (this.#levelAt(before) <= below) break;
      else at = before;
    }
    return at;
  }

  /** Goes on from `i` to the last token of an expression whose operators all bind tighter than `below`. */
  #end(i: number, below: Level): number {
    let at = i;
    let questions = 0;
    for (;;) {
      const text = this.#text(at);
      if (';)]}'.includes(text)) return at - 1;
      const inside = this.#jump(at);
      if (inside > at) {
        at = inside + 1;
        continue;
      }
      if (text === '?' && below < LEVEL.conditional) questions++;
      const first = this.#isPair(at, '&&') || this.#isPair(at, '||') ? at + 1 : at;
      const level = this.#levelAt(first);
      if (level === LEVEL.conditional && text === ':' && questions-- > 0) at++;
      else if (level === LEVEL.conditional && text === '?' && questions > 0) at++;
      else if (level <= below || (level === LEVEL.conditional && text === ':')) return at - 1;
      else at = first + 1;
    }
  }

  #chain(operator: number, level: Level): Conditional {
    const from = this.#start(operator - 1, level === LEVEL.and ? LEVEL.or : LEVEL.conditional);
    const at: number[] = [];
    let to = this.#end(from, level);
    while (this.#levelAt(to + 2) === level && !';)]},'.includes(this.#text(to + 1))) {
      at.push(to + 1);
      to = this.#end(to + 3, level);
    }
    return { operator: level === LEVEL.and ? '&&' : '||', from, to, at };
  }

  #ternary(question: number): Conditional {
    const from = this.#start(question, LEVEL.conditional);
    // The operand between `?` and `:` is a full expression, which may contain commas.
    let colon = question + 1;
    for (let open = 1; colon < this.#tokens.length; colon++) {
      const text = this.#text(colon);
      if (text === '?') open++;
      else if (text === ':' && !this.#isPair(colon, '::') && !this.#isPair(colon - 1, '::') && --open === 0) break;
      else colon = this.#jump(colon);
    }
    return { operator: '?', from, to: this.#end(colon + 1, LEVEL.comma), at: [question, colon] };
  }
}
