// Tells, by tokens, how the source's types and functions can affect a variable that is passed to them. Anything that is not understood
// counts as able to do anything.
import { closingAngle, functionsOf } from './functions.js';
import { closing, type Token } from './tokens.js';

/** The class of a type: a number; a CUDA vector type; or anything else, such as a class or an alias of a reference. */
export type TypeKind = 'plain' | 'vector' | 'other';

const NUMBERS: ReadonlySet<string> = new Set('unsigned signed long short int char float double bool'.split(' '));
const NUMBER_NAMES = /^(?:size_t|ptrdiff_t|uint|ushort|uchar|ulong|clock_t|u?int(?:_least|_fast)?(?:8|16|32|64)_t|u?intptr_t|u?intmax_t)$/;
const VECTOR = /^(?:u?(?:char|short|int|long|longlong)[1-4]|(?:float|double)[1-4]|dim3)$/;
const QUALIFIERS: ReadonlySet<string> = new Set(['const', 'constexpr', 'volatile', '__restrict__', '__restrict', 'std', ':']);

/** Functions that take arguments by value. Excludes compiler builtins with function syntax that access the variable itself. */
const TAKES_VALUES =
  /^(?:min|max|u?(?:min|max)|abs|labs|llabs|f(?:abs|min|max|ma|dim|divide|loor|mod)f?|sqrtf?|cbrtf?|__(?!builtin_(?:addressof|va_)|(?:real|imag)$|\w*__$)\w+|make_\w+|printf|atomic(?:Add|Sub|And|Or|Xor|Min|Max|Inc|Dec|Exch|CAS)(?:_block|_system)?|(?:exp(?:2|10|m1)?|log(?:2|10|1p)?|a?(?:sin|cos|tan)h?|pow|floor|ceil|round|trunc|rint|nearbyint|r?sqrt|rcbrt|hypot|rhypot|atan2|copysign|remainder|ldexp|erfc?|[tl]gamma|sinpi|cospi)f?|isnan|isinf|isfinite|signbit|clock(?:64)?|assert|free)$/;

export class Callables {
  readonly #tokens: readonly Token[];
  /** Type aliases of the source; a name with two meanings maps to `other`. */
  readonly #aliases = new Map<string, TypeKind>();
  readonly #classes = new Set<string>();
  /** Names of templates. */
  readonly #templated = new Set<string>();
  /** By function name: whether all overloads take their arguments by value. */
  readonly #functions = new Map<string, boolean>();
  /** Whether the source overloads operators. */
  readonly hasOperators: boolean;
  /** Whether copying an object may call a function of the source that keeps a reference to it. */
  readonly hasCopies: boolean;
  /** Whether an operator or a constructor may take a variable by reference, which its use does not show. */
  readonly isHostile: boolean;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
    const templates = this.#templateParameters();
    this.#findClasses(templates);
    this.#findAliases(templates);
    this.#findTemplates();
    this.#findFunctions();
    this.hasOperators = tokens.some(({ text }) => text === 'operator');
    const constructors = this.#constructors();
    this.isHostile =
      tokens.some(({ text }, i) => text === 'operator' && !this.#isHarmless(this.#parametersOf(i))) ||
      constructors.some((open) => !this.#isHarmless(open));
    this.hasCopies = this.hasOperators || constructors.some((open) => this.#hasReference(open));
  }

  /** The class of a type, from its words without `*` and `&`. */
  kindOf(words: readonly string[]): TypeKind {
    const named = words.filter((word) => !QUALIFIERS.has(word));
    if (named.length === 0) return 'other';
    if (named.every((word) => NUMBERS.has(word))) return 'plain';
    if (named.length > 1) return 'other';
    const [name = ''] = named;
    const alias = this.#aliases.get(name);
    if (alias !== undefined) return alias;
    if (this.#classes.has(name)) return 'other';
    return NUMBER_NAMES.test(name) ? 'plain' : VECTOR.test(name) ? 'vector' : 'other';
  }

  /** Whether a call of this name leaves its argument of a built-in type unchanged. */
  takesValues(name: string): boolean {
    return this.#functions.get(name) ?? TAKES_VALUES.test(name);
  }

  /** Whether the source has a function or a callable object of this name. */
  defines(name: string): boolean {
    return this.#functions.has(name);
  }

  /** Whether a `<` after the name may begin template arguments. */
  isTemplate(name: string): boolean {
    return this.#templated.has(name);
  }

  /** Whether the name, before a parenthesis, is a function and not a type. */
  isFunction(name: string): boolean {
    return (this.#functions.has(name) || TAKES_VALUES.test(name)) && !this.#classes.has(name) && !this.#aliases.has(name);
  }

  #templateParameters(): Set<string> {
    const found = new Set<string>();
    for (const [i, { text }] of this.#tokens.entries()) {
      if (text !== 'template' || this.#tokens[i + 1]?.text !== '<') continue;
      const close = closingAngle(this.#tokens, i + 1);
      for (let at = i + 2; at < close; at++) if (this.#tokens[at]!.kind === 'name') found.add(this.#tokens[at]!.text);
    }
    return found;
  }

  /** Collects the names between a template's head and its body; the template's own name is among them. */
  #findTemplates(): void {
    for (const [i, { text }] of this.#tokens.entries()) {
      if (text !== 'template' || this.#tokens[i + 1]?.text !== '<') continue;
      const head = closingAngle(this.#tokens, i + 1);
      for (let at = head < 0 ? i + 2 : head + 1; at < this.#tokens.length; at++) {
        const { text: word, kind } = this.#tokens[at]!;
        // The next `template` handles the tokens after it.
        if (word === ';' || word === '{' || word === 'template') break;
        if (kind === 'name') this.#templated.add(word);
        else if (word === '(' || word === '[') at = closing(this.#tokens, at);
        else if (word === '<') at = Math.max(at, closingAngle(this.#tokens, at));
      }
    }
  }

  /** Template parameters of a function: deduced from a value, they are never references. */
  #deducedBy(start: number): Set<string> {
    const names = new Set<string>();
    if (this.#tokens[start - 1]?.text !== '>') return names;
    let open = start - 1;
    while (open > 0 && this.#tokens[open]!.text !== 'template') open--;
    if (closingAngle(this.#tokens, open + 1) !== start - 1) return names;
    for (let at = open + 2; at < start - 1; at++) {
      if (/^(?:class|typename)$/.test(this.#tokens[at]!.text)) names.add(this.#tokens[at + 1]!.text);
    }
    return names;
  }

  #findClasses(templates: ReadonlySet<string>): void {
    for (const [i, { text }] of this.#tokens.entries()) {
      if (text !== 'struct' && text !== 'class' && text !== 'union') continue;
      let at = i + 1;
      while (this.#tokens[at + 1]?.text === '(') at = closing(this.#tokens, at + 1) + 1;
      const token = this.#tokens[at];
      if (token?.kind === 'name' && !templates.has(token.text)) this.#classes.add(token.text);
    }
  }

  /** Collects `using Real = float;` and `typedef float Real;`. */
  #findAliases(templates: ReadonlySet<string>): void {
    const define = (name: string, from: number): void => {
      let end = from;
      while (end < this.#tokens.length && this.#tokens[end]!.text !== ';') end++;
      const words = this.#tokens.slice(from, this.#tokens[end - 1]?.text === name ? end - 1 : end).map(({ text }) => text);
      // A pointer counts as a number.
      while (words.at(-1) === '*' || words.at(-1) === 'const') words.pop();
      const isAgain = this.#aliases.has(name) || this.#classes.has(name) || templates.has(name);
      this.#aliases.set(name, isAgain ? 'other' : this.kindOf(words));
    };
    for (const [i, { text }] of this.#tokens.entries()) {
      const next = this.#tokens[i + 1];
      if (text === 'using' && next?.kind === 'name' && next.text !== 'namespace') define(next.text, i + 3);
      if (text !== 'typedef') continue;
      let end = i;
      while (end < this.#tokens.length && this.#tokens[end]!.text !== ';') {
        // A list of names in a typedef is not understood, so each becomes `other`.
        if (this.#tokens[end]!.kind === 'name' && ',)['.includes(this.#tokens[end + 1]?.text ?? ' '))
          this.#aliases.set(this.#tokens[end]!.text, 'other');
        end++;
      }
      const name = this.#tokens[end - 1];
      if (name?.kind === 'name') define(name.text, i + 1);
    }
    for (const name of templates) this.#aliases.set(name, 'other');
  }

  #findFunctions(): void {
    const functions = functionsOf(this.#tokens);
    const inBody = new Uint8Array(this.#tokens.length);
    const heads = new Set<number>();
    for (const { at, start, kind, name, open, close, bodyOpen, bodyEnd } of functions) {
      heads.add(at);
      if (bodyOpen >= 0) inBody.fill(1, bodyOpen, bodyEnd);
      if (kind === 'lambda' || name === '') continue;
      const deduced = this.#deducedBy(start);
      const takesValues = this.#parameterTypes(open, close).every((type) => this.#isByValue(type, deduced));
      this.#functions.set(name, takesValues && this.#functions.get(name) !== false);
    }
    for (const [i, { kind, text }] of this.#tokens.entries()) {
      // Another declaration may reuse the name: a callable object, or a reference to another function.
      if (kind !== 'name' || inBody[i] === 1 || heads.has(i)) continue;
      if (this.#functions.has(text)) this.#functions.set(text, false);
      else if (TAKES_VALUES.test(text) && this.#tokens[i + 1]?.text !== '(') this.#functions.set(text, false);
    }
  }

  #isByValue(type: readonly string[], deduced: ReadonlySet<string>): boolean {
    if (type.some((word) => '&([{.'.includes(word))) return false;
    if (type.includes('*')) return true;
    const words = type.filter((word) => !QUALIFIERS.has(word));
    return this.kindOf(type) !== 'other' || (words.length === 1 && (deduced.has(words[0]!) || words[0] === 'auto'));
  }

  /** The words of each parameter's type, without its name and default value. */
  #parameterTypes(open: number, close: number): string[][] {
    const types: string[][] = [];
    let words: string[] = [];
    let depth = 0;
    for (let i = open + 1; i <= close; i++) {
      const { text } = this.#tokens[i]!;
      if (i === close || (depth === 0 && text === ',')) {
        const end = words.indexOf('=');
        const type = end < 0 ? words : words.slice(0, end);
        const named = type.filter((word) => /^\w/.test(word) && !QUALIFIERS.has(word));
        const last = type.at(-1) ?? '';
        if (named.length > 1 && /^[A-Za-z_]/.test(last) && !NUMBERS.has(last)) type.pop();
        if (type.length > 0 && !(type.length === 1 && type[0] === 'void')) types.push(type);
        words = [];
        continue;
      }
      if ('([{<'.includes(text)) depth++;
      if (')]}>'.includes(text)) depth--;
      words.push(text);
    }
    return types;
  }

  /** The parameter list of an operator function. */
  #parametersOf(operator: number): number {
    let open = operator + 1;
    while (open < this.#tokens.length && this.#tokens[open]!.text !== '(') open++;
    return this.#tokens[open + 1]?.text === ')' && this.#tokens[open + 2]?.text === '(' ? open + 2 : open;
  }

  /** The parameter lists of constructors. */
  #constructors(): number[] {
    const found: number[] = [];
    for (const [i, { text }] of this.#tokens.entries()) {
      if (text !== 'struct' && text !== 'class' && text !== 'union') continue;
      // Template parameters and return types have no constructors.
      const names = new Set<string>();
      let brace = i + 1;
      for (; brace < this.#tokens.length && !'{;>)='.includes(this.#tokens[brace]!.text); brace++) {
        const { text: word } = this.#tokens[brace]!;
        if (word === '(' || word === '[') brace = closing(this.#tokens, brace);
        else if (word === '<') brace = Math.max(brace, closingAngle(this.#tokens, brace));
        else names.add(word);
      }
      if (this.#tokens[brace]?.text !== '{') continue;
      const end = closing(this.#tokens, brace);
      for (let at = brace + 1; at < end; at++) {
        if (this.#tokens[at]!.text === '{') at = closing(this.#tokens, at);
        else if (names.has(this.#tokens[at]!.text) && this.#tokens[at + 1]?.text === '(') found.push(at + 1);
      }
    }
    return found;
  }

  #hasReference(open: number): boolean {
    return this.#tokens.slice(open, closing(this.#tokens, open)).some(({ text }) => text === '&');
  }

  /** Whether all parameters are by value, or references to classes, to which a variable of a built-in type does not bind. */
  #isHarmless(open: number): boolean {
    const close = closing(this.#tokens, open);
    if (close >= this.#tokens.length) return false;
    return this.#parameterTypes(open, close).every((type) => {
      const angle = type.indexOf('<');
      const head = angle < 0 ? type : type.slice(0, angle);
      const named = head.filter((word) => /^[A-Za-z_]/.test(word) && !QUALIFIERS.has(word));
      const isClass =
        named.length === 1 &&
        (this.#classes.has(named[0]!) || this.kindOf(named) === 'vector') &&
        this.#aliases.get(named[0]!) === undefined;
      const isReference = type.filter((word) => word === '&').length;
      if (type.some((word) => '([{.'.includes(word))) return false;
      if (isReference > 0) return isClass && isReference === 1 && !type.includes('*');
      return isClass || type.includes('*') || this.kindOf(type) !== 'other';
    });
  }
}

const KNOWN = new WeakMap<readonly Token[], Callables>();

/** The symbol table of a source, built once. */
export function callablesOf(tokens: readonly Token[]): Callables {
  const known = KNOWN.get(tokens);
  if (known) return known;
  const made = new Callables(tokens);
  KNOWN.set(tokens, made);
  return made;
}
