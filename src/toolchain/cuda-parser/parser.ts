// A function's body as it is read: where in its tokens, which variables are in scope, and what was found out of them.
import type { Callables, TypeKind } from './symbol-table.js';
import type { Token } from './tokenizer.js';

/** What a mention of a variable does: `exposed` where something else gets hold of it, or might. In this order, the worst counts. */
export type Use = 'declared' | 'read' | 'written' | 'exposed';
const ORDER: readonly Use[] = ['declared', 'read', 'written', 'exposed'];

/** `shared` and references stand for memory that is not the variable's own. */
export type VariableKind = TypeKind | 'pointer' | 'array' | 'shared' | 'reference';
export interface LocalVariable {
  readonly name: string;
  /** The token of its declaration. */
  readonly at: number;
  readonly kind: VariableKind;
  /** Of an array's elements. */
  readonly element: TypeKind | 'pointer';
  /** Brackets of an array. */
  readonly dimensions: number;
  /** By `auto`: of what it begins with. */
  readonly isInferred: boolean;
}

/** Thrown by what is not in the grammar; never leaves variable-uses.ts. */
export class NotInGrammar extends Error {}

const MOST_NESTED = 150;
/** The longest first. */
const OPERATORS: readonly string[] =
  '<<= >>= <=> ->* ... ++ -- -> :: == != <= >= && || << >> += -= *= /= %= &= |= ^= ## <: :> <% %> %: .*'.split(' ');

export class Reading {
  protected readonly tokens: readonly Token[];
  protected readonly callables: Callables;
  protected at = 0;
  readonly #uses = new Map<number, Use>();
  readonly #variables = new Map<number, LocalVariable>();
  readonly #scopes: Map<string, LocalVariable>[] = [new Map()];
  #depth = 0;

  constructor(tokens: readonly Token[], callables: Callables) {
    this.tokens = tokens;
    this.callables = callables;
  }

  use(at: number): Use | undefined {
    return this.#uses.get(at);
  }

  variable(at: number): LocalVariable | undefined {
    return this.#variables.get(at);
  }

  protected declare(variable: LocalVariable): void {
    this.#scopes.at(-1)!.set(variable.name, variable);
    this.#variables.set(variable.at, variable);
    this.mark([variable.at], 'declared');
  }

  protected inScope(read: () => void): void {
    this.nested(() => {
      this.#scopes.push(new Map());
      read();
      this.#scopes.pop();
    });
  }

  protected nested<T>(read: () => T): T {
    this.require(++this.#depth < MOST_NESTED);
    const made = read();
    this.#depth--;
    return made;
  }

  protected require(condition: boolean): asserts condition {
    if (!condition) throw new NotInGrammar();
  }

  protected textAt(at: number): string {
    return this.tokens[at]?.text ?? '';
  }

  protected take(text: string): void {
    this.require(this.operator() === text || this.textAt(this.at) === text);
    this.at += this.#isPunctuation(this.at) ? text.length : 1;
  }

  protected takes(text: string): boolean {
    if (this.operator() !== text) return false;
    this.at += text.length;
    return true;
  }

  /** The operator or bracket here, of one or more tokens that touch; empty at a name, a number or a string. */
  protected operator(): string {
    if (!this.#isPunctuation(this.at)) return '';
    let text = this.tokens[this.at]!.text;
    for (let i = this.at + 1; i < this.at + 3 && this.#isPunctuation(i) && this.tokens[i]!.start === this.tokens[i - 1]!.end; i++)
      text += this.tokens[i]!.text;
    return OPERATORS.find((one) => text.startsWith(one)) ?? text[0]!;
  }

  #isPunctuation(at: number): boolean {
    return this.tokens[at]?.kind === 'punctuation';
  }

  protected find(name: string): LocalVariable | undefined {
    for (let i = this.#scopes.length - 1; i >= 0; i--) {
      const found = this.#scopes[i]!.get(name);
      if (found) return found;
    }
    return undefined;
  }

  protected mark(roots: readonly number[], use: Use): void {
    for (const at of roots) {
      const known = this.#uses.get(at);
      if (known === undefined || ORDER.indexOf(known) < ORDER.indexOf(use)) this.#uses.set(at, use);
    }
  }

  protected mention(at: number, variable: LocalVariable): void {
    this.#variables.set(at, variable);
  }
}
