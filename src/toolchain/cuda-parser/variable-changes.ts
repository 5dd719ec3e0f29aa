// What a function's body does to its variables, by name: whether one can change after its declaration, and whether something
// else gets hold of it. It says yes where it does not know.
import { callablesOf } from './symbol-table.js';
import type { LocalVariable } from './parser.js';
import type { FunctionText } from './functions.js';
import type { Token } from './tokenizer.js';
import { usesOf, type Uses } from './variable-uses.js';

export class BodyText {
  readonly #tokens: readonly Token[];
  readonly #fn: FunctionText;
  readonly #uses: Uses | undefined;
  readonly #mentions = new Map<string, readonly number[]>();

  constructor(tokens: readonly Token[], fn: FunctionText) {
    this.#tokens = tokens;
    this.#fn = fn;
    this.#uses = usesOf(tokens, fn);
  }

  /** Whether all of it is. Of what is not, everything may change. */
  get isUnderstood(): boolean {
    return this.#uses !== undefined;
  }

  /** Whether something in [from, to] may change the variable after its declaration. */
  isAssigned(name: string, from: number, to: number): boolean {
    return this.#mentionsOf(name).some((at) => at >= from && at <= to && !/^(?:declared|read)$/.test(this.#uses?.use(at) ?? ''));
  }

  /** Whether something may know where the variable is, by a pointer or a reference. */
  isExposed(name: string): boolean {
    return this.#mentionsOf(name).some((at) => !/^(?:declared|read|written)$/.test(this.#uses?.use(at) ?? ''));
  }

  /** The variable that a token mentions or declares. */
  variableAt(at: number): LocalVariable | undefined {
    return this.#uses?.variable(at);
  }

  /** Whether the text has a function, or an object, of the name. */
  isOfText(name: string): boolean {
    return callablesOf(this.#tokens).defines(name);
  }

  /** Whether the words of a type name what may be a class of the text's. */
  isObjectType(from: number, to: number): boolean {
    const words = this.#tokens.slice(from, to + 1).map(({ text }) => text);
    return callablesOf(this.#tokens).kindOf(words) === 'other';
  }

  isDeclaratorAt(at: number): boolean {
    return this.#uses?.use(at) === 'declared';
  }

  isMember(i: number): boolean {
    const before = this.#tokens[i - 1]!.text;
    return before === '.' || (before === '>' && this.#tokens[i - 2]!.text === '-');
  }

  isOperand(i: number): boolean {
    const { kind, text } = this.#tokens[i]!;
    return kind === 'number' || text === ')' || text === ']' || (kind === 'name' && text !== 'return');
  }

  #mentionsOf(name: string): readonly number[] {
    let found = this.#mentions.get(name);
    if (found === undefined) {
      const list: number[] = [];
      for (let i = this.#fn.bodyOpen + 1; i < this.#fn.bodyEnd; i++) {
        if (this.#tokens[i]!.text === name && !this.isMember(i)) list.push(i);
      }
      this.#mentions.set(name, (found = list));
    }
    return found;
  }
}
