// What a function's body does to its variables, from its tokens: whether one can change after its declaration. It says
// yes where it does not know.
import { closingAngle, functionsOf, opening, type FunctionText } from './functions.js';
import { declarationOf } from './statements.js';
import type { Token } from './text.js';

/** Functions that take values, so that an argument stays as it is. */
const TAKES_VALUES =
  /^(?:min|max|abs|f(?:abs|min|max|ma)f?|sqrtf?|__\w+|make_\w+|printf|atomic(?:Add|Sub|And|Or|Xor|Min|Max|Inc|Dec|Exch|CAS)(?:_block|_system)?|(?:exp|log|sin|cos|tan|pow|floor|ceil|rsqrt|tanh|fmod|atan2?|hypot)f?|sizeof|static_cast|if|for|while|u?int(?:32|64)?_t|int|float|double|unsigned)$/;

/** Of the text's functions by name: whether a parameter is a reference. */
type References = ReadonlyMap<string, boolean>;
const REFERENCES = new WeakMap<readonly Token[], References>();

export class BodyText {
  readonly #tokens: readonly Token[];
  readonly #fn: FunctionText;
  readonly #assigned = new Map<string, boolean>();

  constructor(tokens: readonly Token[], fn: FunctionText) {
    this.#tokens = tokens;
    this.#fn = fn;
  }

  /** Whether something in [from, to] may change the variable after its declaration. */
  isAssigned(name: string, from: number, to: number): boolean {
    const key = `${name} ${from} ${to}`;
    const known = this.#assigned.get(key) ?? this.#findsAssignment(name, from, to);
    this.#assigned.set(key, known);
    return known;
  }

  #findsAssignment(name: string, from: number, to: number): boolean {
    for (let i = from; i <= to; i++) {
      if (this.#tokens[i]!.text !== name || this.isMember(i)) continue;
      const [first, last] = this.#withParentheses(i);
      const [before, after] = [this.#tokens[first - 1]!, this.#tokens[last + 1]!];
      const second = this.#tokens[last + 2]!;
      const isDeclared = before.kind === 'name' || before.text === '*' || before.text === ',';
      if (after.text === '=' && second.text !== '=' && !isDeclared) return true;
      if (after.text === '=' && second.text !== '=' && !this.isDeclaratorAt(i)) return true;
      if ('+-*/%&|^'.includes(after.text) && second.text === '=' && second.start === after.end) return true;
      if ('<>'.includes(after.text) && second.text === after.text && this.#tokens[last + 3]!.text === '=') return true;
      if ((after.text === '+' || after.text === '-') && second.text === after.text && second.start === after.end) return true;
      if ((before.text === '+' || before.text === '-') && this.#tokens[first - 2]!.text === before.text) return true;
      if (after.text === '.' || this.#isAddressTaken(first) || this.#isReferredTo(i)) return true;
      if ((before.text === '(' || before.text === ',') && (after.text === ')' || after.text === ',') && !this.#isGivenByValue(i))
        return true;
    }
    return false;
  }

  /** `(x)`, which is no argument: from and to. */
  #withParentheses(i: number): readonly [first: number, last: number] {
    let [first, last] = [i, i];
    while (this.#tokens[first - 1]!.text === '(' && this.#tokens[last + 1]!.text === ')' && this.#calleeOf(first - 1) === undefined) {
      first--;
      last++;
    }
    return [first, last];
  }

  /** The token that names what the bracket at `open` calls, if it does. */
  #calleeOf(open: number): Token | undefined {
    const before = this.#tokens[open - 1]!;
    if (before.text === '>') {
      for (let at = open - 2; at > this.#fn.bodyOpen && !';{}'.includes(this.#tokens[at]!.text); at--) {
        const isTemplate = this.#tokens[at]!.text === '<' && this.#tokens[at - 1]!.kind === 'name';
        if (isTemplate && closingAngle(this.#tokens, at) === open - 1) return this.#tokens[at - 1];
      }
    }
    return before.kind === 'name' ? before : undefined;
  }

  /** `int& other = x`, `auto& other{x}`; not `const int& other = x`, and not `float& one = x[i]`, which is of an array. */
  #isReferredTo(i: number): boolean {
    if (this.#tokens[i + 1]!.text === '[') return false;
    for (let at = i - 1; at > this.#fn.bodyOpen + 2 && !';}'.includes(this.#tokens[at]!.text); at--) {
      const begins = this.#tokens[at]!.text === '{' || (this.#tokens[at]!.text === '=' && this.#tokens[at + 1]!.text !== '=');
      if (!begins || this.#tokens[at - 1]!.kind !== 'name' || this.#tokens[at - 2]!.text !== '&') continue;
      let start = at;
      while (start > this.#fn.bodyOpen && !';{}('.includes(this.#tokens[start - 1]!.text)) start--;
      const type = this.#tokens.slice(start, at - 2).map(({ text }) => text);
      if (this.#tokens[at + 1]!.text !== '*' && (type[0] !== 'const' || type.includes('*'))) return true;
    }
    return false;
  }

  /** The initialiser of a declaration is no assignment. */
  isDeclaratorAt(i: number): boolean {
    for (let at = i - 1; at >= this.#fn.bodyOpen; at--) {
      const { text } = this.#tokens[at]!;
      if (text === ')' || text === ']') at = opening(this.#tokens, at);
      else if (';{}('.includes(text)) {
        let end = i + 1;
        while (end < this.#tokens.length && this.#tokens[end]!.text !== ';') end++;
        return declarationOf(this.#tokens, at + 1, end)?.declarators.some(({ name }) => name === this.#tokens[i]!.text) ?? false;
      }
    }
    return false;
  }

  isMember(i: number): boolean {
    const before = this.#tokens[i - 1]!.text;
    return before === '.' || (before === '>' && this.#tokens[i - 2]!.text === '-');
  }

  #isAddressTaken(i: number): boolean {
    return this.#tokens[i - 1]!.text === '&' && this.#tokens[i - 2]!.text !== '&' && !this.isOperand(i - 2);
  }

  isOperand(i: number): boolean {
    const { kind, text } = this.#tokens[i]!;
    return kind === 'number' || text === ')' || text === ']' || (kind === 'name' && text !== 'return');
  }

  /** An argument by itself might be taken by reference. */
  #isGivenByValue(i: number): boolean {
    let depth = 0;
    for (let at = i - 1; at > this.#fn.bodyOpen; at--) {
      const { text } = this.#tokens[at]!;
      if (text === ')' || text === ']' || text === '}') depth++;
      else if ((text === '(' || text === '[' || text === '{') && depth-- === 0) {
        const callee = text === '(' ? this.#calleeOf(at)?.text : undefined;
        return callee === undefined || !(this.#references().get(callee) ?? !TAKES_VALUES.test(callee));
      } else if (text === ';') return true;
    }
    return true;
  }

  #references(): References {
    const known = REFERENCES.get(this.#tokens);
    if (known) return known;
    const found = new Map<string, boolean>();
    for (const { name, open, close } of functionsOf(this.#tokens)) {
      const hasReference = this.#tokens.slice(open + 1, close).some(({ text }) => text === '&');
      found.set(name, hasReference || found.get(name) === true);
    }
    REFERENCES.set(this.#tokens, found);
    return found;
  }

  isPointedTo(name: string): boolean {
    const { bodyOpen, bodyEnd } = this.#fn;
    for (let i = bodyOpen; i < bodyEnd; i++) {
      if (this.#tokens[i]!.text === name && this.#isAddressTaken(i)) return true;
    }
    return false;
  }
}
