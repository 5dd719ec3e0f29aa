// Parses the expressions of a function's body, as far as they affect its variables. It is a grammar, so that an unknown construct fails to
// parse rather than passing for harmless.
import { closingAngle } from './functions.js';
import { NotInGrammar, Reading, type VariableKind } from './parser.js';
import { CASTS, TYPE_WORDS } from './statements.js';
import { closing } from './tokens.js';

/** The possible results of an expression. */
interface Value {
  /** Tokens of the variables that the result is, or is part of. Empty for a value. */
  readonly roots: readonly number[];
  readonly kind: VariableKind;
  /** Array dimensions left to index. */
  readonly dimensions: number;
  /** Whether it is an lvalue or an rvalue; `none` if the expression may really be a declaration. */
  readonly shape: 'place' | 'value' | 'none';
}

const VALUE: Value = { roots: [], kind: 'plain', dimensions: 0, shape: 'value' };
const PLACE: Value = { ...VALUE, shape: 'place' };
const ASSIGNMENTS: ReadonlySet<string> = new Set('= += -= *= /= %= &= |= ^= <<= >>='.split(' '));
const PRECEDENCE: ReadonlyMap<string, number> = new Map(
  ['||', '&&', '|', '^', '&', '== !=', '< > <= >=', '<< >>', '+ -', '* / %'].flatMap((row, level) =>
    row.split(' ').map((operator): [string, number] => [operator, level]),
  ),
);
const WORDS_OUTSIDE: ReadonlySet<string> = new Set(
  'and and_eq bitand bitor compl not not_eq or or_eq xor xor_eq alignas alignof asm auto break case catch class co_await co_return co_yield concept consteval constexpr constinit continue decltype default delete do dynamic_cast else enum explicit export extern for friend goto if inline mutable namespace new noexcept operator private protected public register requires return static static_assert struct switch template this thread_local throw try typedef typeid typename union using virtual void wchar_t while'.split(
    ' ',
  ),
);

export class ExpressionGrammar extends Reading {
  protected expose({ roots }: Value): void {
    this.mark(roots, 'exposed');
  }

  /** Uses the value as an operand. An object may reach an operator that the source defines. */
  protected readValue({ roots, kind }: Value): void {
    const isObject = kind === 'other' || kind === 'vector';
    this.mark(roots, kind === 'array' || (isObject && this.callables.hasOperators) ? 'exposed' : 'read');
  }

  /** Copies the value into a variable or a by-value parameter. Copying an object may call a constructor that the source defines. */
  protected readCopy(value: Value): void {
    if (value.kind === 'other' && this.callables.hasCopies) this.expose(value);
    else if (value.kind === 'vector' || value.kind === 'other') this.mark(value.roots, 'read');
    else this.readValue(value);
  }

  #write({ roots, kind }: Value): void {
    const isObject = kind === 'other' || kind === 'vector';
    this.mark(roots, isObject && this.callables.hasOperators ? 'exposed' : 'written');
  }

  /** The result of an operator; one that the source defines may return a reference. */
  get #result(): Value {
    return this.callables.hasOperators ? PLACE : VALUE;
  }

  /** An expression whose value is unused. */
  protected discarded(): void {
    do {
      const value = this.assignment();
      // `T * x` and `T(x)` may be declarations.
      this.require(value.shape !== 'none');
      this.mark(value.roots, 'read');
    } while (this.takes(','));
  }

  protected comma(): Value {
    let value = this.assignment();
    while (this.takes(',')) {
      this.mark(value.roots, 'read');
      value = this.assignment();
    }
    return value;
  }

  protected assignment(): Value {
    return this.nested(() => {
      const left = this.#conditional();
      const operator = this.operator();
      if (!ASSIGNMENTS.has(operator)) return left;
      this.require(left.shape === 'place');
      this.take(operator);
      this.#write(left);
      const right = this.assignment();
      if (left.kind === 'other' || left.kind === 'vector') this.readCopy(right);
      else this.readValue(right);
      return left;
    });
  }

  #conditional(): Value {
    const condition = this.#binary(0);
    if (!this.takes('?')) return condition;
    this.readValue(condition);
    const yes = this.comma();
    this.take(':');
    const no = this.assignment();
    const roots = [...yes.roots, ...no.roots];
    // With two variables the result may be either; with a variable and an rvalue it is an rvalue.
    const isValue = [yes, no].some((one) => one.shape === 'value' && one.roots.length === 0);
    if (isValue || roots.length === 0) {
      this.readCopy(yes);
      this.readCopy(no);
      return isValue ? VALUE : PLACE;
    }
    const isObject = [yes, no].some((one) => one.roots.length > 0 && one.kind !== 'plain' && one.kind !== 'pointer');
    return { roots, kind: isObject ? 'other' : 'plain', dimensions: 0, shape: 'place' };
  }

  #binary(level: number): Value {
    let left = this.#unary();
    for (;;) {
      const operator = this.operator();
      const own = PRECEDENCE.get(operator);
      if (own === undefined || own < level) return left;
      this.take(operator);
      this.readValue(left);
      const right = this.nested(() => this.#binary(own + 1));
      this.readValue(right);
      left = { ...VALUE, shape: 'none' };
    }
  }

  #unary(): Value {
    return this.nested(() => {
      const operator = this.operator();
      if (operator === '+' || operator === '-' || operator === '~' || operator === '!') {
        this.at++;
        this.readValue(this.#unary());
        return this.#result;
      }
      if (operator === '*') {
        this.at++;
        const value = this.#unary();
        if (value.kind === 'other') this.expose(value);
        else this.readValue(value);
        return PLACE;
      }
      if (operator === '&') {
        this.at++;
        this.expose(this.#unary());
        return VALUE;
      }
      if (operator === '++' || operator === '--') {
        this.at += 2;
        const value = this.#unary();
        this.require(value.shape === 'place');
        this.#write(value);
        return value;
      }
      if (operator === '(') {
        const cast = this.#cast();
        if (cast) return cast;
      }
      if (this.textAt(this.at) === 'sizeof') {
        this.at++;
        if (this.textAt(this.at) !== '(') {
          this.readValue(this.#unary());
          return VALUE;
        }
        // The operand is not evaluated.
        const close = closing(this.tokens, this.at);
        for (let i = this.at; i < close; i++) if (this.find(this.textAt(i))) this.mark([i], 'read');
        this.at = close + 1;
        return VALUE;
      }
      return this.#postfix(this.#primary());
    });
  }

  /** Parses `(type) operand`; undefined for a parenthesised expression. */
  #cast(): Value | undefined {
    const close = closing(this.tokens, this.at);
    this.require(close < this.tokens.length && close > this.at + 1);
    const type = this.#castType(this.at + 1, close);
    if (type === undefined) {
      const isName = this.#isQualifiedName(this.at + 1, close) && this.find(this.textAt(this.at + 1)) === undefined;
      const next = this.tokens[close + 1];
      // An unknown type, or a constant. The operand of `&` counts as a variable whose address is taken.
      if (!isName || next === undefined) return undefined;
      const isAddress = next.text === '&' && this.tokens[close + 2]?.text !== '&';
      if (!isAddress && next.kind === 'punctuation' && next.text !== '(') return undefined;
    }
    this.require(this.textAt(close + 1) !== '{');
    this.at = close + 1;
    const value = this.#unary();
    if (type === 'value') this.readCopy(value);
    else this.expose(value);
    return type === 'value' ? VALUE : { ...PLACE, kind: 'other' };
  }

  /** `value` if the tokens are a type without references, `other` if the type may be one; undefined if they are not a type. */
  #castType(from: number, end: number): 'value' | 'other' | undefined {
    let last = end - 1;
    while (last > from && ['*', 'const', '__restrict__', 'volatile'].includes(this.textAt(last))) last--;
    const hasStar = this.tokens.slice(last + 1, end).some(({ text }) => text === '*');
    const isReference = this.textAt(last) === '&';
    while (this.textAt(last) === '&') last--;
    const words = this.tokens.slice(from, last + 1).map(({ text }) => text);
    const isKnown =
      words.every((word) => TYPE_WORDS.has(word)) ||
      (words.length === 1 && words[0] === 'void') ||
      (this.find(words.at(-1) ?? '') === undefined && this.callables.kindOf(words) !== 'other');
    const isNamed = isKnown || this.#isQualifiedName(from, last + 1);
    if (isReference) return isNamed ? 'other' : undefined;
    if (hasStar && isNamed) return 'value';
    return isKnown ? 'value' : undefined;
  }

  /** Matches `a::b<c>` and `const a`. */
  #isQualifiedName(from: number, end: number): boolean {
    let i = from;
    while (this.textAt(i) === 'const' || this.textAt(i) === 'volatile') i++;
    for (; i < end; i++) {
      const { kind, text } = this.tokens[i]!;
      if (kind === 'name' && !WORDS_OUTSIDE.has(text)) {
        if (this.textAt(i + 1) === '<') {
          const angle = closingAngle(this.tokens, i + 1);
          if (angle < 0 || angle >= end) return false;
          i = angle;
        }
        if (i + 1 === end) return true;
        if (this.textAt(i + 1) !== ':' || this.textAt(i + 2) !== ':') return false;
        i += 2;
      } else return false;
    }
    return false;
  }

  #primary(): Value {
    const token = this.tokens[this.at];
    this.require(token !== undefined);
    if (token.kind === 'number') {
      this.at++;
      return VALUE;
    }
    if (token.kind === 'string') {
      while (this.tokens[this.at]?.kind === 'string') this.at++;
      return VALUE;
    }
    if (token.text === '(') {
      this.at++;
      const value = this.comma();
      this.take(')');
      // The result of an operator or of an unknown function may be a reference.
      return value.shape === 'none' || value.roots.length > 0 ? { ...value, shape: 'place' } : value;
    }
    if (token.kind !== 'name' && this.operator() !== '::') throw new NotInGrammar();
    if (CASTS.has(token.text)) return this.#namedCast();
    return this.#named();
  }

  #namedCast(): Value {
    this.at++;
    const angle = this.textAt(this.at) === '<' ? closingAngle(this.tokens, this.at) : -1;
    this.require(angle > 0 && this.textAt(angle + 1) === '(');
    const type = this.#castType(this.at + 1, angle);
    this.at = angle + 2;
    const value = this.comma();
    this.take(')');
    if (type === 'value') this.readCopy(value);
    else this.expose(value);
    return type === 'value' ? VALUE : PLACE;
  }

  /** Parses a variable, another name of the source, or a call of it. */
  #named(): Value {
    const first = this.at;
    if (this.operator() === '::') this.at += 2;
    for (;;) {
      this.require(this.tokens[this.at]?.kind === 'name' && !WORDS_OUTSIDE.has(this.textAt(this.at)));
      this.at++;
      // `Name<type>::member`
      const angle =
        this.operator() === '<' && this.callables.isTemplate(this.textAt(this.at - 1)) ? closingAngle(this.tokens, this.at) : -1;
      if (angle > 0 && this.textAt(angle + 1) === ':') this.at = angle + 1;
      if (this.operator() !== '::') break;
      this.at += 2;
    }
    const name = this.textAt(this.at - 1);
    const variable = this.at === first + 1 ? this.find(name) : undefined;
    if (variable) {
      this.mention(first, variable);
      const isOwn = variable.kind !== 'shared' && variable.kind !== 'reference';
      if (!isOwn) this.mark([first], 'read');
      return { roots: isOwn ? [first] : [], kind: variable.kind, dimensions: variable.dimensions, shape: 'place' };
    }
    if (this.operator() === '<') {
      const angle = closingAngle(this.tokens, this.at);
      if (angle > 0 && this.textAt(angle + 1) === '(') {
        this.at = angle + 2;
        // The template arguments may make its parameters references.
        return this.#called(name, this.#arguments(false));
      }
      this.require(!this.callables.isTemplate(name));
    }
    const isType = TYPE_WORDS.has(name) || this.callables.kindOf([name]) !== 'other';
    if (this.operator() === '(') {
      this.at++;
      const count = this.#arguments(isType || this.callables.takesValues(name));
      return isType ? { ...PLACE, shape: 'none' } : this.#called(name, count);
    }
    this.require(!isType);
    return PLACE;
  }

  /** With one argument, this may be the declaration of a parenthesised name. */
  #called(name: string, count: number): Value {
    return { ...PLACE, shape: count !== 1 || this.callables.isFunction(name) ? 'place' : 'none' };
  }

  /** Skips template arguments after a member function's name. */
  #skipTemplateArguments(): void {
    if (this.operator() !== '<' || !this.callables.isTemplate(this.textAt(this.at - 1))) return;
    const angle = closingAngle(this.tokens, this.at);
    this.require(angle > 0 && this.textAt(angle + 1) === '(');
    this.at = angle + 1;
  }

  /** Parses arguments up to the closing parenthesis, and returns their number. */
  #arguments(takesValues: boolean): number {
    if (this.takes(')')) return 0;
    let count = 0;
    do {
      const value = this.assignment();
      if (takesValues) this.readCopy(value);
      else this.expose(value);
      count++;
    } while (this.takes(','));
    this.take(')');
    return count;
  }

  #postfix(first: Value): Value {
    let value = first;
    for (;;) {
      const operator = this.operator();
      if (operator === '[') {
        this.at++;
        const isArray = value.kind === 'array' && value.dimensions > 0;
        if (!isArray && value.kind === 'other') this.expose(value);
        else if (!isArray) this.readValue(value);
        const index = this.comma();
        this.readValue(index);
        this.take(']');
        value = isArray ? this.#elementOf(value) : { ...PLACE, shape: value.shape === 'none' ? 'none' : 'place' };
      } else if (operator === '(') {
        // The callee may be an object, or a function that takes references.
        this.expose(value);
        this.require(value.shape !== 'none');
        this.at++;
        this.#arguments(false);
        value = PLACE;
      } else if (operator === '.') {
        this.at++;
        this.require(this.tokens[this.at]?.kind === 'name' && !WORDS_OUTSIDE.has(this.textAt(this.at)));
        this.at++;
        this.#skipTemplateArguments();
        // A member function receives the object by reference.
        if (this.operator() === '(') this.expose(value);
        else value = { ...value, kind: value.kind === 'vector' ? 'plain' : 'other', dimensions: 0, shape: 'place' };
      } else if (operator === '->') {
        this.at += 2;
        this.require(this.tokens[this.at]?.kind === 'name' && !WORDS_OUTSIDE.has(this.textAt(this.at)));
        this.at++;
        this.#skipTemplateArguments();
        if (value.kind === 'pointer') this.readValue(value);
        else this.expose(value);
        value = PLACE;
      } else if (operator === '++' || operator === '--') {
        this.at += 2;
        this.require(value.shape === 'place');
        this.#write(value);
        value = this.#result;
      } else return value;
    }
  }

  #elementOf({ roots, dimensions }: Value): Value {
    if (dimensions > 1) return { roots, kind: 'array', dimensions: dimensions - 1, shape: 'place' };
    const elements = roots.map((at) => this.variable(at)?.element ?? 'other');
    return {
      roots,
      kind: elements.every((one) => one === elements[0]) ? (elements[0] ?? 'plain') : 'other',
      dimensions: 0,
      shape: 'place',
    };
  }
}
