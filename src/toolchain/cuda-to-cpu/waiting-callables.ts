// Functions and functors that wait and are given to other code: as template arguments, as arguments, in variables. Without types, every
// template parameter and variable that may hold one counts as waiting; a call of one that does not wait costs time but has the same result.
import { closingAngle, type FunctionTokens } from '../cuda-parser/functions.js';
import type { Edit } from '../cuda-parser/source-edits.js';
import { closing, type Token } from '../cuda-parser/tokenizer.js';

/** Words after which a name begins an expression, although they look like its type. */
const BEFORE_EXPRESSION: ReadonlySet<string> = new Set(['return', 'co_return', 'else', 'do', 'case']);

/** The parameter, or the template parameter, `float (*name)(float)` or `alias name`. Token indices, both inclusive. */
interface PointerParameter {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

export class Callables {
  readonly #tokens: readonly Token[];
  /** Aliases of pointers to functions: `using f = float (*)(float)`, `typedef float (*f)(float)`. */
  readonly #pointerTypes = new Set<string>();
  /** Template parameters that are types. */
  readonly #typeParameters = new Set<string>();
  /** Template parameters that are pointers to functions. */
  readonly #templatePointers: PointerParameter[] = [];
  readonly #functionNames: ReadonlySet<string>;

  constructor(tokens: readonly Token[], functions: readonly FunctionTokens[]) {
    this.#tokens = tokens;
    this.#functionNames = new Set(functions.filter(({ kind }) => kind === 'function').map(({ name }) => name));
    this.#findPointerTypes();
    for (const [i, { text }] of tokens.entries()) {
      if (text !== 'template' || tokens[i + 1]?.text !== '<') continue;
      const close = closingAngle(tokens, i + 1);
      if (close < 0) continue;
      for (let at = i + 2; at < close; at++) {
        const name = tokens[at + 1]?.text === '.' ? at + 4 : at + 1;
        if (/^(?:typename|class)$/.test(tokens[at]!.text) && tokens[name]?.kind === 'name') this.#typeParameters.add(tokens[name].text);
        // `template <auto f>`
        if (tokens[at]!.text === 'auto' && tokens[at + 1]?.kind === 'name')
          this.#templatePointers.push({ name: tokens[at + 1]!.text, from: at, to: at + 1 });
      }
      this.#templatePointers.push(...this.#pointersIn(i + 1, close));
    }
  }

  /** Names of the template parameters that may be the function at this token, if it is a template argument there. */
  fromTemplateArgument(at: number): string[] {
    const before = this.#text(at - 1) === '&' ? this.#text(at - 2) : this.#text(at - 1);
    const after = this.#text(at + 1);
    if ((before !== '<' && before !== ',') || (after !== '>' && after !== ',')) return [];
    return this.templatePointerNames();
  }

  templatePointerNames(): string[] {
    return this.#templatePointers.map(({ name }) => name);
  }

  /** Variables that may be objects of these classes, whose operator() waits. Each is called somewhere. */
  variablesOf(classes: ReadonlySet<string>): string[] {
    const found = new Set<string>();
    const called = new Set<string>();
    for (const [i, { text, kind }] of this.#tokens.entries()) {
      if (kind === 'name' && this.#text(i + 1) === '(' && this.isCall(i)) called.add(text);
      if (kind !== 'name' || !(classes.has(text) || this.#typeParameters.has(text))) continue;
      // `auto sum = WarpSum{}`
      if (this.#text(i - 1) === '=' && this.#text(i - 3) === 'auto') found.add(this.#text(i - 2));
      let at = i + 1;
      if (this.#text(at) === '<') at = closingAngle(this.#tokens, at) + 1;
      while (/^(?:const|&|\.|__restrict__)$/.test(this.#text(at))) at++;
      const name = this.#tokens[at];
      if (name?.kind === 'name' && at > i && ';,)={[(:'.includes(this.#text(at + 1)) && !this.#functionNames.has(name.text))
        found.add(name.text);
    }
    return [...found].filter((name) => called.has(name));
  }

  /** Whether the name before a parenthesis is called, and not declared: `T name(0);`. */
  isCall(at: number): boolean {
    const before = this.#tokens[at - 1];
    if (before === undefined || before.kind === 'name') return before !== undefined && BEFORE_EXPRESSION.has(before.text);
    return before.text !== '>' || this.#text(at - 2) === '-' || !this.#endsTemplate(at - 1);
  }

  /** The `(` of the call in `Class()(x)` and `Class<T>{}(x)`; -1 for anything else. */
  madeCallOpen(at: number, classes: ReadonlySet<string>): number {
    if (!classes.has(this.#text(at)) && !this.#typeParameters.has(this.#text(at))) return -1;
    const angle = this.#text(at + 1) === '<' ? closingAngle(this.#tokens, at + 1) : at;
    if (angle < 0) return -1;
    const bracket = this.#text(angle + 1);
    if (bracket !== '(' && bracket !== '{') return -1;
    const end = closing(this.#tokens, angle + 1);
    return this.#text(end + 1) === '(' ? end + 1 : -1;
  }

  /** Gives the parameters with these names, which may point to coroutines, the type of what they get. */
  typeEdits(functions: readonly FunctionTokens[], names: ReadonlySet<string>, isOnlyTemplates: boolean): Edit[] {
    const inFunctions = functions.flatMap(({ open, close, start, at }) =>
      open < 0 || isOnlyTemplates || this.#tokens.slice(start, at).some(({ text }) => text === '__global__')
        ? []
        : this.#pointersIn(open, close),
    );
    return [...this.#templatePointers, ...inFunctions]
      .filter(({ name }) => names.has(name))
      .map(({ name, from, to }) => {
        const [first, last] = [this.#tokens[from]!, this.#tokens[to]!];
        return { start: first.start, end: last.end, text: `auto ${name}` + '\n'.repeat(last.line - first.line) };
      });
  }

  #text(at: number): string {
    return this.#tokens[at]?.text ?? '';
  }

  #endsTemplate(close: number): boolean {
    for (let i = close - 1; i >= 0 && !';{}'.includes(this.#text(i)); i--)
      if (this.#text(i) === '<' && closingAngle(this.#tokens, i) === close) return true;
    return false;
  }

  #findPointerTypes(): void {
    for (const [i, { text }] of this.#tokens.entries()) {
      if (text !== 'using' && text !== 'typedef') continue;
      let end = i;
      while (end < this.#tokens.length && this.#text(end) !== ';') end++;
      for (let at = i + 1; at < end; at++) {
        if (this.#text(at) !== '(' || this.#text(at + 1) !== '*') continue;
        if (text === 'using' && this.#text(at + 2) === ')') this.#pointerTypes.add(this.#text(i + 1));
        if (text === 'typedef' && this.#text(at + 3) === ')') this.#pointerTypes.add(this.#text(at + 2));
      }
    }
  }

  /** The pointers to functions among the parameters between two brackets. */
  #pointersIn(open: number, close: number): PointerParameter[] {
    const found: PointerParameter[] = [];
    let from = open + 1;
    for (let i = open + 1; i < close; i++) {
      const text = this.#text(i);
      if (text === ',') from = i + 1;
      else if (this.#pointerTypes.has(text) && this.#tokens[i + 1]?.kind === 'name')
        found.push({ name: this.#text(i + 1), from, to: i + 1 });
      else if (text === '(') {
        const end = closing(this.#tokens, i);
        const isPointer = this.#text(i + 1) === '*' && end === i + 3 && this.#text(end + 1) === '(';
        i = isPointer ? closing(this.#tokens, end + 1) : end;
        if (isPointer) found.push({ name: this.#text(end - 1), from, to: i });
      }
    }
    return found;
  }
}
