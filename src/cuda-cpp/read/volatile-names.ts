// Names that declarations with `volatile` give, by tokens: `volatile float* a, *b;`, `typedef volatile int flag_t; flag_t f[4];`,
// `volatile float (*rows)[33]`, `auto p = a + 16;`. Scopes are not told apart.
import { closingAngle } from './functions.js';
import { closing, type Token } from './tokens.js';

export interface VolatileNames {
  /** Variables, parameters and members. */
  readonly names: ReadonlySet<string>;
  /** Names of types. */
  readonly types: ReadonlySet<string>;
}

export function volatileNames(tokens: readonly Token[]): VolatileNames {
  const names = new Set<string>();
  const types = new Set<string>();
  let first = 0;
  for (const [i, { text }] of tokens.entries()) {
    if (text === ';' || text === '{' || text === '}') first = i + 1;
    if (text === 'volatile' || types.has(text)) {
      if (tokens[first]?.text === 'using' && tokens[first + 2]?.text === '=') types.add(tokens[first + 1]!.text);
      else addDeclared(tokens, i, tokens[first]?.text === 'typedef' ? types : names);
    } else if (text === 'auto') addDeduced(tokens, i, names, types);
  }
  return { names, types };
}

/** Adds the names of the declaration whose type has a word at `word`. */
function addDeclared(tokens: readonly Token[], word: number, to: Set<string>): void {
  for (let at = word + 1, isFirst = true; ; isFirst = false) {
    const from = at;
    for (;;) {
      const { kind, text } = tokens[at] ?? {};
      if (isFirst && text === '<' && closingAngle(tokens, at) > at) at = closingAngle(tokens, at);
      else if (kind !== 'name' && text !== '*' && text !== '&' && !(isFirst && text === ':')) break;
      at++;
    }
    const last = tokens[at - 1];
    // `(*rows)[33]` and `(&row)[32]`
    const isInner = tokens[at]?.text === '(' && /^[*&]$/.test(tokens[at + 1]?.text ?? '') && tokens[at + 3]?.text === ')';
    // After a comma in a list of parameters comes a type.
    if (!isFirst && tokens.slice(from, at).filter(({ kind }) => kind === 'name').length !== 1) return;
    if (isInner) to.add(tokens[at + 2]!.text);
    else if (at > from && last?.kind === 'name' && /^[=;,)[]$/.test(tokens[at]?.text ?? '')) to.add(last.text);
    else return;
    while (at < tokens.length && !/^[,;)}]$/.test(tokens[at]!.text))
      at = /^[([{]$/.test(tokens[at]!.text) ? closing(tokens, at) + 1 : at + 1;
    if (tokens[at]?.text !== ',') return;
    at++;
  }
}

/** Adds the variable of `auto p = s + 16`, `auto p = &s[16]`, `auto& e = s[16]` and `auto p = (volatile int*)x`. */
function addDeduced(tokens: readonly Token[], word: number, names: Set<string>, types: ReadonlySet<string>): void {
  let at = word + 1;
  while (/^(?:[*&]|const|__restrict(?:__)?)$/.test(tokens[at]?.text ?? '')) at++;
  const name = tokens[at];
  if (name?.kind !== 'name' || tokens[at + 1]?.text !== '=') return;
  const isReference = tokens[at - 1]!.text === '&';
  const init = at + 2;
  let end = init;
  while (end < tokens.length && tokens[end]!.text !== ';') end++;
  const given = tokens.slice(init, end);
  if (given[0]?.text === '*') return;
  const isCast = given.some(
    ({ text }, i) => (text === 'volatile' || types.has(text)) && given.slice(i).some((token) => token.text === '*'),
  );
  const of = given.findIndex(({ text }) => text !== '(' && text !== '&');
  const isAddress = isReference || given.slice(0, of).some(({ text }) => text === '&') || given[of + 1]?.text !== '[';
  if (isCast || (of >= 0 && names.has(given[of]!.text) && isAddress)) names.add(name.text);
}
