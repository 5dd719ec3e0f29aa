// The return types of functions and lambdas that wait and leave the type to the compiler: a coroutine has to name it. The type of the first
// returned expression is written with decltype, in which parameters keep their names and local variables become values of their types.
import { closingAngle, type FunctionTokens } from '../cuda-parser/functions.js';
import { closing, type Token } from '../cuda-parser/tokenizer.js';

/** Tokens [from, to] that the rewritten source awaits. */
interface Awaited {
  readonly from: number;
  readonly to: number;
}
/** Most variables whose types depend on each other. */
const MOST_NESTED = 8;
const NOT_TYPES: ReadonlySet<string> = new Set(['return', 'co_return', 'else', 'do', 'case', 'goto', 'new', 'delete', 'sizeof', 'throw']);

/** Whether the function leaves its return type to the compiler. */
export function isDeduced(tokens: readonly Token[], fn: FunctionTokens): boolean {
  if (fn.trailing !== undefined) return false;
  return fn.kind === 'lambda' || tokens.slice(fn.start, fn.at).some(({ text }) => text === 'auto');
}

/**
 * The type that a function without one returns, as C++ of one line; undefined if the expression is not understood. `owner`: the function of
 * each token, in which `index` is this function's number.
 */
export function deducedType(
  tokens: readonly Token[],
  owner: Int32Array,
  index: number,
  fn: FunctionTokens,
  awaits: readonly Awaited[],
): string | undefined {
  const locals = new Locals(tokens, owner, index, fn, awaits);
  let isVoid = true;
  for (let i = fn.bodyOpen + 1; i < fn.bodyEnd; i++) {
    if (tokens[i]!.text !== 'return' || owner[i] !== index || tokens[i + 1]!.text === ';') continue;
    isVoid = false;
    const type = locals.typeOf(i + 1, endOf(tokens, i + 1, fn.bodyEnd) - 1, 0);
    if (type !== undefined) return type;
  }
  return isVoid ? 'void' : undefined;
}

/** Where the expression that begins here ends: its semicolon, or a comma outside of brackets. */
function endOf(tokens: readonly Token[], from: number, end: number): number {
  let i = from;
  for (; i < end && tokens[i]!.text !== ';' && tokens[i]!.text !== ','; i++) {
    const { text } = tokens[i]!;
    if (text === '(' || text === '[' || text === '{') i = closing(tokens, i);
    else if (text === '<') i = Math.max(i, closingAngle(tokens, i));
  }
  return i;
}

class Locals {
  readonly #tokens: readonly Token[];
  readonly #owner: Int32Array;
  readonly #index: number;
  readonly #fn: FunctionTokens;
  readonly #awaits: readonly Awaited[];

  constructor(tokens: readonly Token[], owner: Int32Array, index: number, fn: FunctionTokens, awaits: readonly Awaited[]) {
    this.#tokens = tokens;
    this.#owner = owner;
    this.#index = index;
    this.#fn = fn;
    this.#awaits = awaits;
  }

  /** The type of the expression [from, to] without references. */
  typeOf(from: number, to: number, depth: number): string | undefined {
    if (to < from || depth > MOST_NESTED) return undefined;
    const inside = this.#awaits.filter((one) => one.from >= from && one.to <= to);
    let text = '';
    for (let i = from; i <= to; i++) {
      text += 'mr_awaited('.repeat(inside.filter((one) => one.from === i).length);
      const value = this.#valueOf(i, depth);
      if (value === undefined) return undefined;
      text += value + ')'.repeat(inside.filter((one) => one.to === i).length);
      const { start, end } = this.#tokens[i]!;
      if (this.#tokens[i + 1]?.start !== end || start === end) text += ' ';
    }
    return `mr_plain<decltype(${text.trim()})>`;
  }

  /** A token of an expression: a local variable becomes a value of its type. */
  #valueOf(at: number, depth: number): string | undefined {
    const { text, kind } = this.#tokens[at]!;
    // A lambda in an unevaluated expression would be another one.
    if (text === '{' || text === ';') return undefined;
    const before = this.#text(at - 1);
    if (kind !== 'name' || before === '.' || (before === ':' && this.#text(at - 2) === ':')) return text;
    if (before === '>' && this.#text(at - 2) === '-') return text;
    const declared = this.#declaration(text);
    if (declared === undefined) return text;
    const type = this.#declaredType(declared, depth);
    return type === undefined ? undefined : `mr_value_of<${type}>()`;
  }

  #text(at: number): string {
    return this.#tokens[at]?.text ?? '';
  }

  /** The token of a local variable's name in its declaration. */
  #declaration(name: string): number | undefined {
    for (let i = this.#fn.bodyOpen + 1; i < this.#fn.bodyEnd; i++) {
      const { text } = this.#tokens[i]!;
      if (text !== name || this.#owner[i] !== this.#index || !'=;,{[(:'.includes(this.#text(i + 1))) continue;
      const before = this.#tokens[i - 1]!;
      const isDeclared = (before.kind === 'name' && !NOT_TYPES.has(before.text)) || '>*&'.includes(before.text) || before.text === ',';
      if (isDeclared && this.#typeStart(i) !== undefined) return i;
    }
    return undefined;
  }

  /** The first token of the declaration whose first name is at `at`; undefined if this is no declaration. */
  #typeStart(at: number): number | undefined {
    let from = at;
    while (from > this.#fn.bodyOpen + 1 && !';{}('.includes(this.#text(from - 1))) from--;
    if (NOT_TYPES.has(this.#text(from))) return undefined;
    let hasName = false;
    for (let i = from; i < at; i++) {
      const { text, kind } = this.#tokens[i]!;
      if (text === '<') i = Math.max(i, closingAngle(this.#tokens, i));
      else if (kind === 'name') hasName = true;
      else if (!(text === ':' || text === '*' || text === '&')) return undefined;
    }
    return hasName ? from : undefined;
  }

  #declaredType(at: number, depth: number): string | undefined {
    const from = this.#typeStart(at)!;
    const words: string[] = [];
    for (let i = from; i < at; i++) {
      const { text } = this.#tokens[i]!;
      if (!/^(?:const|static|constexpr|__shared__|volatile|register)$/.test(text)) words.push(text);
    }
    let end = at + 1;
    let stars = '';
    while (this.#text(end) === '[') {
      stars += '*';
      end = closing(this.#tokens, end) + 1;
    }
    if (stars.length > 1) return undefined;
    if (words.includes('auto'))
      return this.#text(end) === '=' ? this.typeOf(end + 1, endOf(this.#tokens, end + 1, this.#fn.bodyEnd) - 1, depth + 1) : undefined;
    return (
      words
        .join(' ')
        .replaceAll(' : : ', '::')
        .replace(/(?: &)+$/, '') + stars
    );
  }
}
