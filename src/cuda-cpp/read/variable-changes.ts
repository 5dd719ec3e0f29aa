// Tells how a function's body uses its variables, by name: whether one can change after its declaration, and whether other code gets its
// address. The answer is yes when the body is not understood.
import { callablesOf } from './symbol-table.js';
import type { LocalVariable } from './parser.js';
import type { FunctionTokens } from './functions.js';
import type { Token } from './tokens.js';
import { usesOf, type Uses } from './variable-uses.js';

export class BodyText {
  readonly #tokens: readonly Token[];
  readonly #fn: FunctionTokens;
  readonly #uses: Uses | undefined;
  readonly #mentions = new Map<string, readonly number[]>();

  constructor(tokens: readonly Token[], fn: FunctionTokens) {
    this.#tokens = tokens;
    this.#fn = fn;
    this.#uses = usesOf(tokens, fn);
  }

  /** Whether the whole body was parsed. If not, every variable may change. */
  get isUnderstood(): boolean {
    return this.#uses !== undefined;
  }

  /** Whether code in [from, to] may change the variable after its declaration. */
  isAssigned(name: string, from: number, to: number): boolean {
    return this.#mentionsOf(name).some((at) => at >= from && at <= to && !/^(?:declared|read)$/.test(this.#uses?.use(at) ?? ''));
  }

  /** Whether a pointer or reference to the variable may exist. */
  isExposed(name: string): boolean {
    return this.#mentionsOf(name).some((at) => !/^(?:declared|read|written)$/.test(this.#uses?.use(at) ?? ''));
  }

  /** The variable that a token refers to or declares. */
  variableAt(at: number): LocalVariable | undefined {
    return this.#uses?.variable(at);
  }

  /** Whether the source defines a function or a callable object of this name. */
  isOfText(name: string): boolean {
    return callablesOf(this.#tokens).defines(name);
  }

  /** Whether the type may be a class of the source. */
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
