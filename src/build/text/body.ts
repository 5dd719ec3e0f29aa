// What a function's body does to its variables, from its tokens: whether one can change after its declaration. It says
// yes where it does not know.
import { opening, type FunctionText } from './functions.js';
import { declarationOf } from './statements.js';
import type { Token } from './text.js';

/** Functions that take values, so that an argument stays as it is. */
const TAKES_VALUES =
  /^(?:min|max|abs|f(?:abs|min|max|ma)f?|sqrtf?|__\w+|make_\w+|printf|atomic(?:Add|Sub|And|Or|Xor|Min|Max|Inc|Dec|Exch|CAS)(?:_block|_system)?|(?:exp|log|sin|cos|tan|pow|floor|ceil|rsqrt|tanh|fmod|atan2?|hypot)f?|sizeof|static_cast|if|for|while|u?int(?:32|64)?_t|int|float|double|unsigned)$/;

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
      const [before, after] = [this.#tokens[i - 1]!, this.#tokens[i + 1]!];
      const second = this.#tokens[i + 2]!;
      const isDeclared = before.kind === 'name' || before.text === '*' || before.text === ',';
      if (after.text === '=' && second.text !== '=' && !isDeclared) return true;
      if (after.text === '=' && second.text !== '=' && !this.isDeclaratorAt(i)) return true;
      if ('+-*/%&|^'.includes(after.text) && second.text === '=' && second.start === after.end) return true;
      if ('<>'.includes(after.text) && second.text === after.text && this.#tokens[i + 3]!.text === '=') return true;
      if ((after.text === '+' || after.text === '-') && second.text === after.text && second.start === after.end) return true;
      if ((before.text === '+' || before.text === '-') && this.#tokens[i - 2]!.text === before.text) return true;
      if (after.text === '.' || this.#isAddressTaken(i)) return true;
      if ((before.text === '(' || before.text === ',') && (after.text === ')' || after.text === ',') && !this.#isGivenByValue(i))
        return true;
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
        const callee = this.#tokens[at - 1]!;
        return text !== '(' || callee.kind !== 'name' || TAKES_VALUES.test(callee.text);
      } else if (text === ';') return true;
    }
    return true;
  }

  isPointedTo(name: string): boolean {
    const { bodyOpen, bodyEnd } = this.#fn;
    for (let i = bodyOpen; i < bodyEnd; i++) {
      if (this.#tokens[i]!.text === name && this.#isAddressTaken(i)) return true;
    }
    return false;
  }
}
