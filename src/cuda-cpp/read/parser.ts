// State of parsing a function's body: the current token, the variables in scope, and their recorded uses.
import type { Callables, TypeKind } from './symbol-table.js';
import type { Token } from './tokens.js';

/** How a mention uses a variable, by severity: the worst counts. `exposed`: other code gets, or may get, the variable's address. */
export type Use = 'declared' | 'read' | 'written' | 'exposed';
const ORDER: readonly Use[] = ['declared', 'read', 'written', 'exposed'];

/** `shared` and `reference` mean memory other than the variable's own. */
export type VariableKind = TypeKind | 'pointer' | 'array' | 'shared' | 'reference';
export interface LocalVariable {
  readonly name: string;
  /** The token that declares the name. */
  readonly at: number;
  readonly kind: VariableKind;
  /** The type of an array's elements. */
  readonly element: TypeKind | 'pointer';
  /** The number of an array's dimensions. */
  readonly dimensions: number;
  /** Whether `auto` infers the type from the initialiser. */
  readonly isInferred: boolean;
}

/** Thrown for constructs outside the grammar; variable-uses.ts catches it. */
export class NotInGrammar extends Error {}

const MOST_NESTED = 150;
/** Longest first. */
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

  /** The operator or bracket at the current token, which adjacent tokens may form; empty at a name, number or string. */
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
