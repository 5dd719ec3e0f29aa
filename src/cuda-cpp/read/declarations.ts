// Splits CUDA C++ source into the declarations of its namespaces and classes, by scanning tokens: functions with their bodies, classes, and
// everything else. What tokens do not tell counts as `other`, which the callers keep.
import { FUNCTION_ATTRIBUTES } from './attributes.js';
import { withoutLaterBranches } from './conditions.js';
import { withoutDirectives } from './directives.js';
import { type SourceToken, sourceTokens, wordsOf } from './tokens.js';

/** Token indices: [from, to). */
export interface DeclarationText {
  /** `using` names something of another namespace, `alias` is a typedef too. */
  readonly kind: 'function' | 'prototype' | 'class' | 'variable' | 'using' | 'alias' | 'other';
  readonly name: string;
  readonly from: number;
  readonly to: number;
  /** Calls of macros before the declaration begin here; `from` without such calls. */
  readonly macrosFrom: number;
  /** The tokens before the body; all of them without one. */
  readonly headEnd: number;
  /** Whether it is in a class, or defines a member of one. */
  readonly isMember: boolean;
  /** The class or namespace before the name of a function that is defined outside of it. */
  readonly scope: string;
  /** Whether variables or aliases follow the body of a class. */
  readonly hasVariables: boolean;
}

export interface SourceDeclarations {
  readonly tokens: readonly SourceToken[];
  /** Names in branches of conditions that were not read. */
  readonly otherWords: readonly string[];
  readonly declarations: readonly DeclarationText[];
}

/** Words that precede a parenthesis without naming a function. */
const NO_FUNCTION: ReadonlySet<string> = new Set([...FUNCTION_ATTRIBUTES, 'decltype', 'noexcept', 'explicit']);
/** What may follow a parameter list in a function's head. */
const BEHIND: ReadonlySet<string> = new Set([
  'const',
  'volatile',
  'noexcept',
  'override',
  'final',
  '->',
  ':',
  '&',
  'requires',
  'try',
  '__attribute__',
]);
/** Words before which no part of the same declaration stands, except `inline` and the like. */
const BEGINS: ReadonlySet<string> = new Set(['using', 'template', 'namespace', 'static_assert']);
const CLASSES: ReadonlySet<string> = new Set(['struct', 'class', 'union', 'enum']);
const NOT_VARIABLES: ReadonlySet<string> = new Set([
  'typedef',
  'using',
  'template',
  'friend',
  'static_assert',
  'namespace',
  'extern',
  'asm',
  'public',
  'private',
  'protected',
]);

/** Macros of the host's libraries that are called with a body. */
export const OF_HOST_MACRO: RegExp = /^(?:PYBIND11_\w+|TORCH_LIBRARY\w*|NB_MODULE|BOOST_PYTHON_MODULE|TEST(?:_[FP])?|BENCHMARK\w*)$/;
/** Most tokens of the template arguments between a function's name and its parameters. */
const MOST_ARGUMENTS = 200;
/** Most scopes around each other whose declarations are read. */
const MOST_SCOPES = 100;

/** `text` has no comments. Undefined when its brackets do not match, whichever branch of a condition is compiled. */
export function declarationsOf(text: string): SourceDeclarations | undefined {
  return split(text, '') ?? split(...withoutLaterBranches(text));
}

function split(text: string, other: string): SourceDeclarations | undefined {
  const tokens = sourceTokens(withoutDirectives(text));
  const partners = partnersOf(tokens);
  return partners && { tokens, otherWords: wordsOf(other), declarations: new Splitter(tokens, partners).split() };
}

/** For each opening bracket, the index of its partner. */
function partnersOf(tokens: readonly SourceToken[]): ReadonlyMap<number, number> | undefined {
  const found = new Map<number, number>();
  const open: number[] = [];
  for (const [at, { text }] of tokens.entries()) {
    if (text === '(' || text === '[' || text === '{') open.push(at);
    else if (text === ')' || text === ']' || text === '}') {
      const begin = open.pop();
      if (begin === undefined || '([{'.indexOf(tokens[begin]!.text) !== ')]}'.indexOf(text)) return undefined;
      found.set(begin, at);
    }
  }
  return open.length === 0 ? found : undefined;
}

class Splitter {
  readonly #tokens: readonly SourceToken[];
  readonly #partners: ReadonlyMap<number, number>;
  readonly #found: DeclarationText[] = [];

  constructor(tokens: readonly SourceToken[], partners: ReadonlyMap<number, number>) {
    this.#tokens = tokens;
    this.#partners = partners;
  }

  split(): readonly DeclarationText[] {
    this.#scope(0, this.#tokens.length, false);
    return this.#found;
  }

  #text(at: number): string {
    return this.#tokens[at]?.text ?? '';
  }

  #scope(from: number, to: number, isClass: boolean, depth = 0): void {
    for (let at = from; at < to; ) at = this.#declaration(at, to, isClass, depth);
  }

  /** Reads one declaration, and returns where the next begins. */
  #declaration(from: number, to: number, isClass: boolean, depth: number): number {
    if (/^(?:public|private|protected)$/.test(this.#text(from)) && this.#text(from + 1) === ':') return from + 2;
    if (this.#isLoneWord(from)) return from + 1;
    let hasValue = false;
    for (let at = Math.min(this.#afterTemplate(from), to - 1); at < to; at++) {
      const text = this.#text(at);
      if (text === ';') {
        this.#add(this.#statementKind(from, at, hasValue), from, at + 1, at, isClass);
        return at + 1;
      }
      if (text === '=' && !this.#isOperator(at)) hasValue = true;
      if (text === '(' || text === '[') at = this.#partners.get(at)!;
      if (text !== '{') continue;
      const close = this.#partners.get(at)!;
      if (hasValue) at = close;
      else if (this.#isNamespace(from, at)) {
        if (depth < MOST_SCOPES) this.#scope(at + 1, close, false, depth + 1);
        return close + 1;
      } else if (this.#isClass(from, at)) {
        const isEnum = this.#tokens.slice(from, at).some((token) => token.text === 'enum');
        if (!isEnum && depth < MOST_SCOPES) this.#scope(at + 1, close, true, depth + 1);
        let end = close + 1;
        while (end < to && this.#text(end) !== ';') end++;
        this.#add('class', from, Math.min(end + 1, to), at, isClass);
        return end + 1;
      } else if (this.#nameOf(from, at) !== undefined) {
        // A member that a constructor initialises with braces.
        if (this.#isInitializer(from, at)) at = close;
        else {
          // Calls of other macros may stand before it.
          const name = this.#nameOf(from, at)!;
          const isOfHost = this.#text(name) === 'main' || OF_HOST_MACRO.test(this.#text(name));
          const isCall = !isClass && !isOfHost && name === this.#withoutMacros(from, at);
          const end = this.#afterHandlers(close + 1);
          this.#add(isCall ? 'other' : 'function', from, end, at, isClass);
          return end;
        }
      } else at = close;
    }
    // The call of a macro at the end.
    this.#add('other', from, to, to, isClass);
    return to;
  }

  /** Whether it is a macro before a declaration: `LIBRARY_NAMESPACE_END using library::f;`. */
  #isLoneWord(at: number): boolean {
    return /^(?!(?:using|inline|extern|export|friend)$)[A-Za-z_$]/.test(this.#text(at)) && BEGINS.has(this.#text(at + 1));
  }

  /** Behind the handlers of a function whose body is a try block: `int main() try { ... } catch (...) { ... }`. */
  #afterHandlers(from: number): number {
    let at = from;
    while (this.#text(at) === 'catch') {
      const body = (this.#partners.get(at + 1) ?? at) + 1;
      const close = this.#partners.get(body);
      if (close === undefined || this.#text(body) !== '{') break;
      at = close + 1;
    }
    return at;
  }

  #statementKind(from: number, end: number, hasValue: boolean): DeclarationText['kind'] {
    const first = this.#text(from);
    if (first === 'using' && this.#text(from + 1) !== 'namespace') return hasValue ? 'alias' : 'using';
    if (first === 'typedef') return 'alias';
    if (hasValue && first === 'namespace') return 'alias';
    if (hasValue) return NOT_VARIABLES.has(first) ? 'other' : 'variable';
    if (first === 'template' || first === 'extern') return this.#nameOf(from, end) === undefined ? 'other' : 'prototype';
    if (NOT_VARIABLES.has(first)) return 'other';
    const name = this.#nameOf(from, end);
    // The call of a macro has no type before its name.
    return name === undefined ? 'variable' : name === from ? 'other' : 'prototype';
  }

  #add(kind: DeclarationText['kind'], start: number, to: number, headEnd: number, isClass: boolean): void {
    const from = kind === 'function' || kind === 'prototype' ? this.#withoutMacros(start, headEnd) : start;
    const isFunction = kind === 'function' || kind === 'prototype';
    const at = (kind === 'class' ? this.#className(from, headEnd) : isFunction ? this.#nameOf(from, headEnd) : undefined) ?? -1;
    const before = this.#text(this.#text(at - 1) === '~' ? at - 2 : at - 1);
    const isMember = isClass || (kind === 'function' && before === '::') || this.#text(at) === 'operator';
    const isOther = kind === 'using' || kind === 'alias';
    const named = isOther ? this.#aliasName(from, headEnd) : kind === 'variable' ? this.#variableName(from, headEnd) : at;
    const tag = named < 0 || CLASSES.has(this.#text(named)) ? '' : this.#text(named);
    // `typedef struct { ... } Name;`
    const isTypedef = kind === 'class' && tag === '' && this.#text(from) === 'typedef' && /^[A-Za-z_$]/.test(this.#text(to - 2));
    const name = isTypedef ? this.#text(to - 2) : tag;
    const scope = kind === 'function' && before === '::' ? this.#scopeBefore(this.#text(at - 1) === '~' ? at - 2 : at - 1) : '';
    const hasVariables = kind === 'class' && !isTypedef && this.#text(to - 2) !== '}';
    this.#found.push({ kind, name, from, to, macrosFrom: start, headEnd, isMember, scope, hasVariables });
  }

  /** `Name` and `Name<T>` before the colons. */
  #scopeBefore(colons: number): string {
    let at = colons - 1;
    for (let depth = 0; at > 0 && (this.#text(at) === '>' || depth > 0); at--)
      depth += this.#text(at) === '>' ? 1 : this.#text(at) === '<' ? -1 : 0;
    return this.#text(at);
  }

  /** Whether the sign belongs to the name of an operator, as in `operator+=`. */
  #isOperator(at: number): boolean {
    let name = at - 1;
    while (name >= at - 3 && /^[-+*/%&|^!=<>]/.test(this.#text(name))) name--;
    return this.#text(name) === 'operator';
  }

  /** `using Name = ...`, `using std::Name`, `typedef ... Name`; -1 for a typedef of a function or an array. */
  #aliasName(from: number, end: number): number {
    const at = this.#text(from + 2) === '=' ? from + 1 : end - 1;
    return /^[A-Za-z_$]/.test(this.#text(at)) ? at : -1;
  }

  /** -1 for several variables, and where the name is not plain. */
  #variableName(from: number, end: number): number {
    let name = -1;
    let angles = 0;
    for (let at = from; at < end; at++) {
      const text = this.#text(at);
      if (text === ',' && angles === 0) return -1;
      if (name < 0 && (text === '<' || text === '>')) angles += text === '<' ? 1 : -1;
      if (name < 0 && angles === 0 && (text === '=' || text === '[' || text === '{')) name = at - 1;
      if (text === '(' || text === '[' || text === '{') at = this.#partners.get(at) ?? at;
    }
    if (name < 0) name = end - 1;
    return /^[A-Za-z_$]/.test(this.#text(name)) ? name : -1;
  }

  #isNamespace(from: number, brace: number): boolean {
    const first = this.#text(from);
    return (
      first === 'namespace' || (first === 'inline' && this.#text(from + 1) === 'namespace') || (first === 'extern' && brace === from + 1)
    );
  }

  #isClass(from: number, brace: number): boolean {
    return this.#className(from, brace) !== undefined;
  }

  /** The name's token; the keyword's for a class without a name. */
  #className(from: number, brace: number): number | undefined {
    for (let at = this.#afterTemplate(from); at < brace; at++) {
      const text = this.#text(at);
      if (CLASSES.has(text)) {
        let name = at + 1;
        while (NO_FUNCTION.has(this.#text(name))) name = (this.#partners.get(name + 1) ?? name) + 1;
        if (CLASSES.has(this.#text(name))) name++;
        // A function may return a class.
        for (let i = name; i < brace; i++) if (this.#text(i) === '(') return undefined;
        return /^[A-Za-z_]/.test(this.#text(name)) ? name : at;
      }
      if (text === '(') {
        if (!NO_FUNCTION.has(this.#text(at - 1))) return undefined;
        at = this.#partners.get(at)!;
      }
    }
    return undefined;
  }

  #afterTemplate(from: number): number {
    let at = from;
    while (this.#text(at) === 'template' && this.#text(at + 1) === '<') {
      let depth = 0;
      for (at++; at < this.#tokens.length; at++) {
        const text = this.#text(at);
        if (text === '<') depth++;
        else if (text === '>' && --depth === 0) break;
        else if (text === '(') at = this.#partners.get(at)!;
        else if (text === ';' || text === '{') return from;
      }
      at++;
    }
    return at;
  }

  /** The name before the parameter list in [from, end); undefined without one. */
  #nameOf(from: number, end: number): number | undefined {
    for (let at = this.#afterTemplate(this.#withoutMacros(from, end)); at < end; at++) {
      const text = this.#text(at);
      if (text === 'operator') return at;
      if (text !== '(') continue;
      const before = this.#text(at - 1);
      if (at > from && /^[A-Za-z_$]/.test(before) && !NO_FUNCTION.has(before) && !this.#isBeforeType(at, end)) return at - 1;
      // `f<3>(...)`
      if (before === '>') {
        let open = at - 1;
        for (let depth = 0; open >= Math.max(from, at - MOST_ARGUMENTS); open--) {
          if (this.#text(open) === '>') depth++;
          else if (this.#text(open) === '<' && --depth === 0) break;
        }
        if (open > from && this.#text(open) === '<' && /^[A-Za-z_$]/.test(this.#text(open - 1))) return open - 1;
      }
      at = this.#partners.get(at)!;
    }
    return undefined;
  }

  /** Whether a type, a name and parameters follow the parenthesis, which then belongs to a macro: `INLINE FORMAT(1, 2) void f(`. */
  #isBeforeType(open: number, end: number): boolean {
    let at = this.#partners.get(open)! + 1;
    let names = 0;
    for (; at < end && /^(?:[A-Za-z_$]|[*&]$|::$)/.test(this.#text(at)) && !BEHIND.has(this.#text(at)); at++) {
      if (/^[A-Za-z_$]/.test(this.#text(at))) names++;
    }
    return names >= 2 && at < end && this.#text(at) === '(';
  }

  /** Calls of macros before a declaration have no semicolon: `DEFINE(float) void f() {`. */
  #withoutMacros(from: number, end: number): number {
    let at = from;
    while (/^[A-Za-z_$]/.test(this.#text(at)) && !NO_FUNCTION.has(this.#text(at)) && this.#text(at + 1) === '(') {
      const next = this.#partners.get(at + 1)! + 1;
      if (next >= end || !/^[A-Za-z_$]/.test(this.#text(next)) || BEHIND.has(this.#text(next))) break;
      at = next;
    }
    return at;
  }

  #isInitializer(from: number, brace: number): boolean {
    if (!/^[A-Za-z_$>]/.test(this.#text(brace - 1)) || BEHIND.has(this.#text(brace - 1))) return false;
    const open = this.#nameOf(from, brace)! + 1;
    return this.#text(open) === '(' && this.#text((this.#partners.get(open) ?? open) + 1) === ':';
  }
}
