// Pointers to functions in variables, tables, members, parameters and results. If one of them may point to a function that waits, all of them
// get the type of coroutines, their calls are awaited, and every function that the source takes the address of becomes a coroutine.
import { closingAngle, type FunctionTokens } from '../cuda-parser/functions.js';
import type { Edit } from '../cuda-parser/source-edits.js';
import { closing, opening, type Token } from '../cuda-parser/tokenizer.js';

/** Words before a declaration that are not part of its type. */
const SPECIFIERS =
  /^(?:__device__|__host__|__constant__|__shared__|__managed__|static|extern|typedef|constexpr|inline|mutable|register|thread_local)$/;
/** Words that begin an expression, although they look like a type. */
const NOT_TYPES: ReadonlySet<string> = new Set(['return', 'co_return', 'else', 'do', 'case', 'goto', 'throw', 'new', 'delete', 'sizeof']);
/** Longest list of template arguments in a type, far longer than people write. It bounds the visits of each token. */
const MOST_ARGUMENT_TOKENS = 64;
const QUALIFIERS = /^(?:const|volatile|__restrict__|\*|&)$/;

export class FunctionPointers {
  /** Variables, members and parameters that are pointers to functions. */
  readonly names: Set<string> = new Set();
  readonly #tokens: readonly Token[];
  readonly #functions: readonly FunctionTokens[];
  readonly #owner: Int32Array;
  readonly #functionNames: ReadonlySet<string>;
  /** Parameters that are written as functions: `float f(float)`. */
  readonly functionParameters: Set<string> = new Set();
  /** Names of types: `using f = float (*)(float)`. */
  readonly #aliases = new Set<string>();
  /** Functions that return one. */
  readonly #givers = new Set<string>();
  /** Tokens at which the names are declared. */
  readonly #declared = new Set<number>();
  /** The first and the last token of each type to which a pointed-to function returns. */
  readonly #results: (readonly [from: number, to: number])[] = [];

  constructor(tokens: readonly Token[], functions: readonly FunctionTokens[], owner: Int32Array) {
    this.#tokens = tokens;
    this.#functions = functions;
    this.#owner = owner;
    // The addresses of kernels are for the host.
    const isKernel = ({ start, at }: FunctionTokens): boolean => tokens.slice(start, at).some(({ text }) => text === '__global__');
    this.#functionNames = new Set(functions.filter((fn) => fn.kind === 'function' && !isKernel(fn)).map(({ name }) => name));
    for (const [i, { text }] of tokens.entries()) {
      if (text === '(') this.#findDeclarator(i);
    }
    if (this.#aliases.size > 0) this.#findAliased();
  }

  /** Whether the function's name at a token stands for its address, other than as a template argument. */
  isAddress(at: number): boolean {
    const { kind, text } = this.#tokens[at]!;
    if (kind !== 'name' || !this.#functionNames.has(text) || this.#isLocal(at)) return false;
    const end = this.#text(at + 1) === '<' ? closingAngle(this.#tokens, at + 1) : at;
    if (end < 0 || !';,)}:'.includes(this.#text(end + 1) || ' ')) return false;
    let from = at;
    while (this.#text(from - 1) === ':' && this.#text(from - 2) === ':') from -= this.#tokens[from - 3]?.kind === 'name' ? 3 : 2;
    if (this.#text(from - 1) === '&') from--;
    return this.#text(from - 1) === 'return' || '=(,{?:)'.includes(this.#text(from - 1) || ' ');
  }

  /** The `(` of a call by a pointer whose name is at a token: `f(x)`, `table[i](x)`, `(*f)(x)`, `pick(i)(x)`; -1 for anything else. */
  callOpen(at: number): number {
    if (this.#declared.has(at)) return -1;
    const end = this.#endOf(at);
    if (end < 0) return -1;
    if (this.#text(end + 1) === '(') return end + 1;
    return this.#text(end + 1) === ')' && this.#text(end + 2) === '(' && this.#bracketOf(at, end) >= 0 ? end + 2 : -1;
  }

  /** The `(` of `(*f)(x)`, in a call by the pointer whose name is at a token; -1 for other calls. */
  calleeOpen(at: number): number {
    const end = this.#endOf(at);
    return end < 0 || this.#text(end + 1) !== ')' || this.#text(end + 2) !== '(' ? -1 : this.#bracketOf(at, end);
  }

  /** Gives the pointers the type of coroutines. */
  edits(): Edit[] {
    return this.#results.flatMap(([from, to]) => {
      const [{ start }, { end }] = [this.#tokens[from]!, this.#tokens[to]!];
      return [
        { start, end: start, text: 'mr_dco<' },
        { start: end, end, text: '>' },
      ];
    });
  }

  #text(at: number): string {
    return this.#tokens[at]?.text ?? '';
  }

  /** The last token of the pointer that is named here, with indices, or with the arguments of a function that returns it. */
  #endOf(at: number): number {
    const { kind, text } = this.#tokens[at]!;
    if (kind !== 'name') return -1;
    if (this.#givers.has(text)) return this.#text(at + 1) === '(' ? closing(this.#tokens, at + 1) : -1;
    if (!this.names.has(text)) return -1;
    let end = at;
    while (this.#text(end + 1) === '[') end = closing(this.#tokens, end + 1);
    return end;
  }

  /** The bracket around `*f` or `object.*f`, if it is not that of a call or a declaration. */
  #bracketOf(at: number, end: number): number {
    const open = opening(this.#tokens, end + 1);
    if (open < 0) return -1;
    const isPointed = this.#text(open + 1) === '*' || open + 1 === at || this.#text(at - 1) === '*';
    const before = this.#tokens[open - 1];
    const isCallee = before === undefined || before.text === ')' || before.text === ']' || before.text === '>';
    return isPointed && !isCallee && (before.kind !== 'name' || NOT_TYPES.has(before.text)) ? open : -1;
  }

  /** Whether the function around a token declares a variable with the token's name. */
  #isLocal(at: number): boolean {
    const fn = this.#functions[this.#owner[at]!];
    if (fn === undefined) return false;
    const { text } = this.#tokens[at]!;
    for (let i = Math.max(fn.open, fn.at); i < fn.bodyEnd; i++) {
      const before = this.#tokens[i - 1]!;
      if (this.#text(i) === text && before.kind === 'name' && !NOT_TYPES.has(before.text)) return true;
    }
    return false;
  }

  /** `float (*name)(float)`, `float (*name[2])(float)`, `float (Class::*name)(float)`, also without a name. */
  #findDeclarator(open: number): void {
    let at = open + 1;
    if (this.#tokens[at]?.kind === 'name' && this.#text(at + 1) === ':' && this.#text(at + 2) === ':') at += 3;
    if (this.#text(at) !== '*') return this.#findFunctionType(open);
    while (QUALIFIERS.test(this.#text(at))) at++;
    const name = this.#tokens[at]?.kind === 'name' ? at++ : -1;
    while (this.#text(at) === '[') at = closing(this.#tokens, at) + 1;
    if (this.#text(at) !== ')' || this.#text(at + 1) !== '(') return;
    let from = this.#typeStart(open);
    if (from === open || this.#tokens[from]!.kind !== 'name' || NOT_TYPES.has(this.#text(from))) return;
    const type = [from, open - 1] as const;
    let isAlias = false;
    for (; SPECIFIERS.test(this.#text(from - 1)); from--) isAlias ||= this.#text(from - 1) === 'typedef';
    const before = this.#text(from - 1);
    if (before === '=' && this.#text(from - 3) === 'using') this.#aliases.add(this.#text(from - 2));
    else if (before !== '' && !';{}(,:<>'.includes(before)) return;
    else if (this.#isInTemplateHead(from) || (name >= 0 && '(,'.includes(before || ' ') && !this.#isParameter(open))) return;
    this.#results.push(type);
    if (name < 0) return;
    this.#declared.add(name);
    (isAlias ? this.#aliases : this.names).add(this.#text(name));
  }

  /** `using f = float(float)`, `typedef float f(float)`, and the parameter `float f(float)`. */
  #findFunctionType(open: number): void {
    const isTyped = this.#tokens[open - 1]?.kind === 'name' && this.#text(open - 2) !== '=';
    const end = isTyped ? open - 1 : open;
    const from = this.#typeStart(end);
    const before = this.#text(from - 1);
    if (from === end || NOT_TYPES.has(this.#text(from))) return;
    const isUsing = before === '=' && this.#text(from - 3) === 'using' && this.#text(closing(this.#tokens, open) + 1) === ';';
    if (isUsing) this.#aliases.add(this.#text(from - 2));
    else if (isTyped && before === 'typedef') this.#aliases.add(this.#text(end));
    else if (isTyped && '(,'.includes(before || ' ') && this.#isParameter(open)) {
      this.names.add(this.#text(end));
      this.functionParameters.add(this.#text(end));
    } else return;
    this.#declared.add(end);
    this.#results.push([from, isUsing ? open - 1 : end - 1]);
  }

  /** The first token of the type that ends before `end`. */
  #typeStart(end: number): number {
    let from = end;
    for (;;) {
      const { text, kind } = this.#tokens[from - 1] ?? { text: '', kind: '' };
      if (text === '>') {
        const isOpen = (at: number): boolean => this.#text(at) === '<' && closingAngle(this.#tokens, at) === from - 1;
        let angle = from - 2;
        while (angle > from - MOST_ARGUMENT_TOKENS && !';{}'.includes(this.#text(angle)) && !isOpen(angle)) angle--;
        if (!isOpen(angle) || this.#text(angle - 1) === 'template') return from;
        from = angle;
      } else if (text === ':' && this.#text(from - 2) === ':') from -= 2;
      else if (text === '*' || text === '&' || (kind === 'name' && !SPECIFIERS.test(text))) from--;
      else return from;
    }
  }

  #isInTemplateHead(at: number): boolean {
    for (let i = at - 1; i > 0 && !';{}()'.includes(this.#text(i)); i--)
      if (this.#text(i) === '<' && this.#text(i - 1) === 'template') return closingAngle(this.#tokens, i) > at;
    return false;
  }

  /** Whether a token is in the parameter list of a function or a lambda. */
  #isParameter(at: number): boolean {
    return this.#functions.some(({ open, close }) => open >= 0 && open < at && at < close);
  }

  /** Names that an alias declares: variables, members, parameters, functions that return it. */
  #findAliased(): void {
    for (const { name, trailing } of this.#functions)
      if (trailing && this.#tokens.slice(...trailing).some(({ text }) => this.#aliases.has(text))) this.#givers.add(name);
    for (const [i, { text }] of this.#tokens.entries()) {
      // `using f = g;`
      if (text === 'using' && this.#aliases.has(this.#text(i + 3)) && this.#text(i + 4) === ';') this.#aliases.add(this.#text(i + 1));
      if (!this.#aliases.has(text) || this.#text(i - 1) === 'using' || this.#declared.has(i)) continue;
      let at = this.#text(i + 1) === '<' ? closingAngle(this.#tokens, i + 1) + 1 : i + 1;
      while (QUALIFIERS.test(this.#text(at))) at++;
      if (this.#tokens[at]?.kind !== 'name') continue;
      const isAlias = this.#text(i - 1) === 'typedef' && this.#text(at + 1) === ';';
      if (isAlias) this.#aliases.add(this.#text(at));
      else if (this.#text(at + 1) === '(' && this.#owner[at]! < 0) this.#givers.add(this.#text(at));
      else if (';,)=[{(:'.includes(this.#text(at + 1) || ' ')) this.#declare(at, this.#isParameter(at));
    }
  }

  /** Declares the variable at a token, and those after its commas. */
  #declare(first: number, isParameter: boolean): void {
    this.names.add(this.#text(first));
    this.#declared.add(first);
    if (isParameter) return;
    for (let at = first + 1; at < this.#tokens.length && !';)}'.includes(this.#text(at)); at++) {
      if ('([{'.includes(this.#text(at))) at = closing(this.#tokens, at);
      if (this.#text(at) !== ',' || this.#tokens[at + 1]?.kind !== 'name') continue;
      this.names.add(this.#text(at + 1));
      this.#declared.add(at + 1);
    }
  }
}
