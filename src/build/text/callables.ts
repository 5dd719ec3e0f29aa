// What a text's types and functions can do to a variable that is handed to them, from its tokens. What is not understood
// can do anything.
import { closingAngle, functionsOf } from './functions.js';
import { closing, type Token } from './text.js';

/** What a type is: of a number; a vector type of CUDA; anything else, such as a class, or a reference behind a name. */
export type TypeKind = 'plain' | 'vector' | 'other';

const NUMBERS: ReadonlySet<string> = new Set('unsigned signed long short int char float double bool'.split(' '));
const NUMBER_NAMES = /^(?:size_t|ptrdiff_t|uint|ushort|uchar|ulong|clock_t|u?int(?:_least|_fast)?(?:8|16|32|64)_t|u?intptr_t|u?intmax_t)$/;
const VECTOR = /^(?:u?(?:char|short|int|long|longlong)[1-4]|(?:float|double)[1-4]|dim3)$/;
const QUALIFIERS: ReadonlySet<string> = new Set(['const', 'volatile', '__restrict__', '__restrict', 'std', ':']);

/** Functions that take values, so that an argument stays as it is. */
const TAKES_VALUES =
  /^(?:min|max|u?(?:min|max)|abs|labs|llabs|f(?:abs|min|max|ma|dim|divide|loor|mod)f?|sqrtf?|cbrtf?|__\w+|make_\w+|printf|atomic(?:Add|Sub|And|Or|Xor|Min|Max|Inc|Dec|Exch|CAS)(?:_block|_system)?|(?:exp(?:2|10|m1)?|log(?:2|10|1p)?|a?(?:sin|cos|tan)h?|pow|floor|ceil|round|trunc|rint|nearbyint|r?sqrt|rcbrt|hypot|rhypot|atan2|copysign|remainder|ldexp|erfc?|[tl]gamma|sinpi|cospi)f?|isnan|isinf|isfinite|signbit|clock(?:64)?|assert)$/;

export class Callables {
  readonly #tokens: readonly Token[];
  /** Names that the text gives to types, where it gives each to one only. */
  readonly #aliases = new Map<string, TypeKind>();
  readonly #classes = new Set<string>();
  /** Whether every function of the name takes values. */
  readonly #functions = new Map<string, boolean>();
  /** The text has operators of its own. */
  readonly hasOperators: boolean;
  /** One of them, or a constructor, may take the variable that it is given, which nothing shows where it does. */
  readonly isHostile: boolean;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
    const templates = this.#templateParameters();
    this.#findClasses(templates);
    this.#findAliases(templates);
    this.#findFunctions(templates);
    this.hasOperators = tokens.some(({ text }) => text === 'operator');
    this.isHostile =
      tokens.some(({ text }, i) => text === 'operator' && !this.#isHarmless(this.#parametersOf(i))) || this.#hasHostileConstructor();
  }

  /** Of a type's words, without `*` and `&`. */
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

  /** Whether a call by this name leaves a variable of a built-in type alone that it is given. */
  takesValues(name: string): boolean {
    return this.#functions.get(name) ?? TAKES_VALUES.test(name);
  }

  /** Whether the text has a function of the name, or an object of that of a function. */
  defines(name: string): boolean {
    return this.#functions.has(name);
  }

  /** Whether the name, with parentheses behind it, is a function's and no type's. */
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

  #findClasses(templates: ReadonlySet<string>): void {
    for (const [i, { text }] of this.#tokens.entries()) {
      if (text !== 'struct' && text !== 'class' && text !== 'union') continue;
      let at = i + 1;
      while (this.#tokens[at + 1]?.text === '(') at = closing(this.#tokens, at + 1) + 1;
      const token = this.#tokens[at];
      if (token?.kind === 'name' && !templates.has(token.text)) this.#classes.add(token.text);
    }
  }

  /** `using Real = float;` and `typedef float Real;` */
  #findAliases(templates: ReadonlySet<string>): void {
    const define = (name: string, from: number): void => {
      let end = from;
      while (end < this.#tokens.length && this.#tokens[end]!.text !== ';') end++;
      const words = this.#tokens.slice(from, this.#tokens[end - 1]?.text === name ? end - 1 : end).map(({ text }) => text);
      // A pointer is a number as far as it matters here.
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
        // Each name of the list is one that is not understood.
        if (this.#tokens[end]!.kind === 'name' && ',)['.includes(this.#tokens[end + 1]?.text ?? ' '))
          this.#aliases.set(this.#tokens[end]!.text, 'other');
        end++;
      }
      const name = this.#tokens[end - 1];
      if (name?.kind === 'name') define(name.text, i + 1);
    }
    for (const name of templates) this.#aliases.set(name, 'other');
  }

  #findFunctions(templates: ReadonlySet<string>): void {
    const functions = functionsOf(this.#tokens);
    const inBody = new Uint8Array(this.#tokens.length);
    const heads = new Set<number>();
    for (const { at, kind, name, open, close, bodyOpen, bodyEnd } of functions) {
      heads.add(at);
      if (bodyOpen >= 0) inBody.fill(1, bodyOpen, bodyEnd);
      if (kind === 'lambda' || name === '') continue;
      const takesValues = this.#parameterTypes(open, close).every((type) => this.#isByValue(type, templates));
      this.#functions.set(name, takesValues && this.#functions.get(name) !== false);
    }
    for (const [i, { kind, text }] of this.#tokens.entries()) {
      // What is no function may have the name too: an object that is called, a reference to another function.
      if (kind !== 'name' || inBody[i] === 1 || heads.has(i)) continue;
      if (this.#functions.has(text)) this.#functions.set(text, false);
      else if (TAKES_VALUES.test(text) && this.#tokens[i + 1]?.text !== '(') this.#functions.set(text, false);
    }
  }

  #isByValue(type: readonly string[], templates: ReadonlySet<string>): boolean {
    if (type.some((word) => '&([{.'.includes(word))) return false;
    if (type.includes('*')) return true;
    const words = type.filter((word) => !QUALIFIERS.has(word));
    return this.kindOf(type) !== 'other' || (words.length === 1 && (templates.has(words[0]!) || words[0] === 'auto'));
  }

  /** The words of each parameter's type, its name and what is given to it left out. */
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

  /** The parentheses behind `operator` and what it is the operator of. */
  #parametersOf(operator: number): number {
    let open = operator + 1;
    while (open < this.#tokens.length && this.#tokens[open]!.text !== '(') open++;
    return this.#tokens[open + 1]?.text === ')' && this.#tokens[open + 2]?.text === '(' ? open + 2 : open;
  }

  #hasHostileConstructor(): boolean {
    for (const [i, { text }] of this.#tokens.entries()) {
      if (text !== 'struct' && text !== 'class' && text !== 'union') continue;
      let brace = i + 1;
      let name = '';
      while (brace < this.#tokens.length && !'{;>,)'.includes(this.#tokens[brace]!.text)) {
        if (name === '' && this.#classes.has(this.#tokens[brace]!.text)) name = this.#tokens[brace]!.text;
        brace++;
      }
      if (this.#tokens[brace]?.text !== '{') continue;
      const end = closing(this.#tokens, brace);
      for (let at = brace; at < end; at++) {
        if (this.#tokens[at]!.text === name && this.#tokens[at + 1]?.text === '(' && !this.#isHarmless(at + 1)) return true;
      }
    }
    return false;
  }

  /** Parameters that are built-in types and classes by value, or classes by reference: no variable of a built-in type is bound to one. */
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

/** Of a text, made once. */
export function callablesOf(tokens: readonly Token[]): Callables {
  const known = KNOWN.get(tokens);
  if (known) return known;
  const made = new Callables(tokens);
  KNOWN.set(tokens, made);
  return made;
}
