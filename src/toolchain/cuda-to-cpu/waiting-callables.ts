// The names by which CUDA C++ source calls a function that waits other than by its own: parameters of templates, and objects with `operator()`.
import { closingAngle, type FunctionTokens } from '../cuda-parser/functions.js';
import { closing, opening, type Token } from '../cuda-parser/tokenizer.js';

/** A parameter of a template that stands for a function: its name, and its tokens without a default. */
export interface FunctionParameter {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Types that have no `operator()`, and words that are no types. */
const NO_CLASS =
  /^(?:void|bool|char|short|int|long|float|double|unsigned|signed|half|size_t|u?int(?:8|16|32|64)_t|return|co_return|else|case|goto|new|delete|throw|operator|struct|class|union|enum|typename|using|namespace|public|private|protected|do|not|and|or|inline|static|virtual|explicit|friend|constexpr|extern|volatile|mutable|__\w+)$/;

/** Most tokens between a template's name and an argument that is a function. It bounds the number of visits per token. */
const MOST_BEFORE = 200;

/** By the name of each function and class template, the `>` of its parameters. */
export function templateHeads(tokens: readonly Token[], functions: readonly FunctionTokens[]): ReadonlyMap<string, readonly number[]> {
  const heads = new Map<string, number[]>();
  const add = (name: string, close: number): void => {
    if (tokens[close]?.text === '>') heads.set(name, [...(heads.get(name) ?? []), close]);
  };
  for (const { name, start } of functions) add(name, start - 1);
  for (const [i, token] of tokens.entries()) if (isClass(token) && tokens[i + 1]?.kind === 'name') add(tokens[i + 1]!.text, i - 1);
  return heads;
}

function isClass({ text }: Token): boolean {
  return text === 'struct' || text === 'class';
}

/** The parameters of templates for which the function named at `at` is given: `reduce<warpSum>(x)`. */
export function templateParametersFor(
  tokens: readonly Token[],
  heads: ReadonlyMap<string, readonly number[]>,
  at: number,
): FunctionParameter[] {
  const first = tokens[at - 1]?.text === '&' ? at - 1 : at;
  const [before, after] = [tokens[first - 1]?.text, tokens[at + 1]?.text];
  if ((before !== '<' && before !== ',') || (after !== '>' && after !== ',')) return [];
  let position = 0;
  let i = first - 1;
  for (; i >= 0 && tokens[i]!.text !== '<'; i--) {
    const { text } = tokens[i]!;
    if (text === ',') position++;
    else if (text === ')' || text === ']') i = opening(tokens, i);
    else if (text === '>') i = openingAngle(tokens, i);
    else if (text === '(' || text === ';' || text === '{' || text === '}') return [];
    if (at - i > MOST_BEFORE) return [];
  }
  const callee = tokens[i - 1];
  if (i < 1 || callee?.kind !== 'name' || closingAngle(tokens, i) < at) return [];
  return (heads.get(callee.text) ?? [])
    .map((close) => functionParameter(tokens, openingAngle(tokens, close), close, position))
    .filter((one) => one !== undefined);
}

/** The `<` of the `>` at `close`; a place before all tokens if it is no bracket. */
function openingAngle(tokens: readonly Token[], close: number): number {
  for (let i = close - 1; i >= 0 && close - i < MOST_BEFORE; i--) {
    const { text } = tokens[i]!;
    if (text === '<' && closingAngle(tokens, i) === close) return i;
    if (text === ';' || text === '{' || text === '}') break;
  }
  return -1;
}

/** The parameter at `position` of the template head in (open, close), unless it stands for a type. */
function functionParameter(tokens: readonly Token[], open: number, close: number, position: number): FunctionParameter | undefined {
  if (open < 0) return undefined;
  let from = open + 1;
  let count = 0;
  let to = -1;
  for (let i = from; i <= close; i++) {
    const { text } = tokens[i]!;
    if (text === '(' || text === '[' || text === '{') i = closing(tokens, i);
    else if (text === '<') i = Math.max(i, closingAngle(tokens, i));
    else if (text === '=' && to < 0) to = i;
    else if (text === ',' || i === close) {
      if (count++ === position) return named(tokens, from, to < 0 ? i : to);
      from = i + 1;
      to = -1;
    }
  }
  return undefined;
}

function named(tokens: readonly Token[], from: number, to: number): FunctionParameter | undefined {
  if (/^(?:typename|class|template)$/.test(tokens[from]?.text ?? '')) return undefined;
  let name: Token | undefined;
  for (let i = from; i < to; i++) {
    // `float (*f)(float)`: the name is in the first parentheses.
    if (tokens[i]!.text === '(') {
      const inside = tokens[closing(tokens, i) - 1];
      return inside?.kind === 'name' ? { name: inside.text, from, to } : undefined;
    }
    if (tokens[i]!.kind === 'name') name = tokens[i];
  }
  return name && to - from > 1 ? { name: name.text, from, to } : undefined;
}

/**
 * Tokens that declare a variable, a parameter or a member which may be an object of one of the classes: those whose type is one of them, or
 * is none that tokens know.
 */
export function objectsOf(tokens: readonly Token[], functions: readonly FunctionTokens[], classes: ReadonlySet<string>): number[] {
  const others = new Set(functions.map(({ name }) => name).filter((name) => !classes.has(name)));
  for (const [i, { text }] of tokens.entries()) {
    const name = tokens[i + 1]?.text;
    const isNew = (isClass(tokens[i]!) || text === 'enum') && '{:;'.includes(tokens[i + 2]?.text ?? 'none');
    if (isNew && name !== undefined && !classes.has(name)) others.add(name);
  }
  const found: number[] = [];
  for (const [i, { kind, text }] of tokens.entries()) {
    const next = tokens[i + 1]?.text;
    if (kind !== 'name' || NO_CLASS.test(text) || classes.has(text) || others.has(text) || next === undefined || !';,)={(:'.includes(next))
      continue;
    let type = i - 1;
    while (tokens[type]?.text === '&' || tokens[type]?.text === 'const') type--;
    if (type < i - 1 && next === '(') continue;
    if (tokens[type]?.text === '>') type = openingAngle(tokens, type) - 1;
    const of = tokens[type];
    if (of?.kind === 'name' && !NO_CLASS.test(of.text) && !others.has(of.text)) found.push(i);
  }
  return found;
}

/** Whether the class named at `at` makes an object there that is called at once: `Sum()(x)`, `Sum{1}(x)`. */
export function isCalledAtOnce(tokens: readonly Token[], at: number): boolean {
  let open = at + 1;
  if (tokens[open]?.text === '<') open = closingAngle(tokens, open) + 1;
  const { text } = tokens[open] ?? {};
  return (text === '(' || text === '{') && open > at && tokens[closing(tokens, open) + 1]?.text === '(';
}
