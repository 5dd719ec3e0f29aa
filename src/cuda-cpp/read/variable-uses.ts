// Records each use of the variables in a function's body. A body with a construct outside the grammar (here and in expressions.ts) has no
// record, and the rewriting leaves such a function unchanged.
import { callablesOf } from './symbol-table.js';
import { ExpressionGrammar } from './expressions.js';
import type { FunctionTokens } from './functions.js';
import { NotInGrammar, type LocalVariable, type Use, type VariableKind } from './parser.js';
import { declarationOf, type Declaration, TYPE_WORDS } from './statements.js';
import { closing, type Token } from './tokens.js';

export interface Uses {
  /** The use at a token; undefined if it was not understood. */
  use(at: number): Use | undefined;
  /** The variable that a token refers to or declares. */
  variable(at: number): LocalVariable | undefined;
}

/** Names with a meaning of their own, without a declaration. */
const INDEX = /^(?:threadIdx|blockIdx|blockDim|gridDim|warpSize)$/;
/** A body with more tokens is left unchanged; people do not write such bodies. */
const MOST_TOKENS = 50_000;

const KNOWN = new WeakMap<readonly Token[], Map<number, Uses | undefined>>();

/** Undefined for a body that is not understood. */
export function usesOf(tokens: readonly Token[], fn: FunctionTokens): Uses | undefined {
  let known = KNOWN.get(tokens);
  if (known === undefined) KNOWN.set(tokens, (known = new Map()));
  if (known.has(fn.bodyOpen)) return known.get(fn.bodyOpen);
  const made = readBody(tokens, fn);
  known.set(fn.bodyOpen, made);
  return made;
}

function readBody(tokens: readonly Token[], fn: FunctionTokens): Uses | undefined {
  if (fn.kind !== 'function' || fn.bodyOpen < 0 || fn.bodyEnd >= tokens.length || fn.bodyEnd - fn.bodyOpen > MOST_TOKENS) return undefined;
  const callables = callablesOf(tokens);
  if (callables.isHostile) return undefined;
  try {
    const grammar = new StatementGrammar(tokens, callables);
    grammar.body(fn);
    return grammar;
  } catch (error) {
    if (error instanceof NotInGrammar) return undefined;
    throw error;
  }
}

class StatementGrammar extends ExpressionGrammar implements Uses {
  #end = 0;

  body({ open, close, bodyOpen, bodyEnd }: FunctionTokens): void {
    this.#parameters(open, close);
    this.#end = bodyEnd;
    this.at = bodyOpen;
    this.#statement();
    this.require(this.at === bodyEnd + 1);
  }

  /** Parses `const T* __restrict__ name`. A parameter that is not understood gets no name, so its uses stay unknown. */
  #parameters(open: number, close: number): void {
    let from = open + 1;
    for (let i = from; i <= close; i++) {
      const { text } = this.tokens[i]!;
      if ('([{<'.includes(text)) this.require(!'({['.includes(text));
      if (i < close && text !== ',') continue;
      const last = i - 1;
      if (last >= from && this.tokens[last]!.kind === 'name' && last > from) {
        this.#declareAs(last, this.#kindOf(from, last));
      }
      from = i + 1;
    }
  }

  /** The kind of a variable declared with the words in [from, end). */
  #kindOf(from: number, end: number): VariableKind {
    let last = end - 1;
    while (last > from && ['const', '__restrict__', '__restrict', 'volatile'].includes(this.textAt(last))) last--;
    if (this.textAt(last) === '*') return 'pointer';
    if (this.textAt(last) === '&') return 'reference';
    return this.callables.kindOf(this.tokens.slice(from, last + 1).map(({ text }) => text));
  }

  #declareAs(at: number, kind: VariableKind, element: LocalVariable['element'] = 'plain', dimensions = 0, isInferred = false): void {
    const name = this.textAt(at);
    this.require(!INDEX.test(name));
    this.declare({ name, at, kind, element, dimensions, isInferred });
  }

  #statement(): void {
    this.require(this.at <= this.#end);
    const word = this.textAt(this.at);
    if (word === '{') {
      this.at++;
      this.inScope(() => {
        while (this.textAt(this.at) !== '}') this.#statement();
      });
      this.at++;
    } else if (word === ';') this.at++;
    else if (word === 'if' || word === 'while' || word === 'switch') {
      this.at++;
      this.#head(() => this.readValue(this.comma()));
      this.#inner();
      if (word === 'if' && this.textAt(this.at) === 'else') {
        this.at++;
        this.#inner();
      }
    } else if (word === 'for') this.#for();
    else if (word === 'do') {
      this.at++;
      this.#inner();
      this.take('while');
      this.#head(() => this.readValue(this.comma()));
      this.take(';');
    } else if (word === 'return') {
      this.at++;
      if (this.textAt(this.at) !== ';') this.readCopy(this.comma());
      this.take(';');
    } else if (word === 'break' || word === 'continue') {
      this.at++;
      this.take(';');
    } else if (word === 'case' || word === 'default') {
      this.at++;
      if (word === 'case') this.readValue(this.assignment());
      this.take(':');
    } else this.#simple();
  }

  #inner(): void {
    this.inScope(() => this.#statement());
  }

  #head(read: () => void): void {
    this.take('(');
    read();
    this.take(')');
  }

  #for(): void {
    this.at++;
    this.inScope(() => {
      this.#head(() => {
        if (this.textAt(this.at) === ';') this.at++;
        else this.#simple();
        if (this.textAt(this.at) !== ';') this.readValue(this.comma());
        this.take(';');
        if (this.textAt(this.at) !== ')') this.discarded();
      });
      this.#inner();
    });
  }

  /** Parses a declaration or an expression, with its semicolon. */
  #simple(): void {
    const from = this.at;
    let end = from;
    while (end < this.#end && this.textAt(end) !== ';') end = '([{'.includes(this.textAt(end)) ? closing(this.tokens, end) + 1 : end + 1;
    this.require(end < this.#end);
    const specifiers = this.tokens.slice(from, from + 4).some(({ text }) => text === '__shared__');
    if (specifiers) this.#shared(from, end);
    else {
      const isVariable = this.find(this.textAt(from)) !== undefined;
      const declaration = isVariable ? undefined : declarationOf(this.tokens, from, end);
      if (declaration) this.#declaration(declaration);
      else {
        this.require(!TYPE_WORDS.has(this.textAt(from)) && this.textAt(from) !== 'auto');
        this.discarded();
      }
    }
    this.require(this.at === end);
    this.at++;
  }

  #declaration({ type, declarators }: Declaration): void {
    const words = this.tokens.slice(type.from, type.to + 1).map(({ text }) => text);
    const named = this.callables.kindOf(words);
    const isAuto = words.every((word) => word === 'auto' || word === 'const' || word === 'volatile') && words.includes('auto');
    let at = type.to + 1;
    for (const { name, prefix, suffix, initializer } of declarators) {
      // The name follows its prefix, and is in scope from there on.
      while (this.textAt(at) !== name || ['*', '&', 'const', '__restrict__'].includes(this.textAt(at))) at++;
      const own = prefix.includes('&') ? 'reference' : prefix.includes('*') ? 'pointer' : named;
      const dimensions = suffix.split('[').length - 1;
      const element = own === 'reference' ? 'other' : own;
      const isMadeOfValues = own === 'plain' || own === 'pointer' || own === 'vector' || (isAuto && own !== 'reference');
      this.#declareAs(at, dimensions > 0 ? 'array' : own, element, dimensions, isAuto);
      at++;
      for (let n = 0; n < dimensions; n++) {
        this.at = at + 1;
        if (this.textAt(this.at) !== ']') this.readValue(this.comma());
        this.require(this.textAt(this.at) === ']');
        at = this.at + 1;
      }
      if (initializer) {
        this.at = initializer.from;
        this.#initializer(isMadeOfValues);
        this.require(this.at === initializer.to + 1);
        at = this.at;
      }
      this.at = at;
      at++;
    }
  }

  #initializer(isMadeOfValues: boolean): void {
    if (this.textAt(this.at) !== '{') {
      const value = this.assignment();
      if (isMadeOfValues) this.readCopy(value);
      else this.expose(value);
      return;
    }
    this.nested(() => {
      this.at++;
      while (this.textAt(this.at) !== '}') {
        this.#initializer(isMadeOfValues);
        if (this.textAt(this.at) !== '}') this.take(',');
      }
      this.at++;
    });
  }

  /** Parses `extern __shared__ T a[], b[4];`, which declares shared memory of the block. */
  #shared(from: number, end: number): void {
    const kept: number[] = [];
    for (let i = from; i < end; i++) {
      const text = this.textAt(i);
      if (text === '__align__' || text === 'alignas' || text === '__attribute__') i = closing(this.tokens, i + 1);
      else if (text !== 'extern' && text !== 'static' && text !== '__shared__') kept.push(i);
    }
    const rest = kept.map((i) => this.tokens[i]!);
    const declaration = rest.length > 0 ? declarationOf(rest, 0, rest.length - 1) : undefined;
    this.require(declaration !== undefined);
    let at = declaration.type.to + 1;
    for (const { name, initializer, prefix } of declaration.declarators) {
      this.require(initializer === undefined && !prefix.includes('&'));
      while (rest[at]!.text !== name) at++;
      this.#declareAs(kept[at]!, 'shared');
      at++;
    }
    this.at = end;
  }
}
