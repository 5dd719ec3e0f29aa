// Finds a statement of a kernel's own text that stores through a pointer parameter, by tokens: `y[i] = `, `*(y + i) += `, `y->f++`,
// `atomicAdd(&y[i], ...)`, also through pointers and references that the kernel declares: `float* p = y + k; p[0] = 1;`. What it cannot tell, it
// takes for no store: other functions, code that a directive, `if constexpr` or a template's argument may leave out, and pointers that the
// kernel sets anew.
import { macrosIn } from './directives.js';
import { closingAngle } from './functions.js';
import { closing, opening, type Token, tokenize } from './tokens.js';

/** A parameter or what a declaration makes of it, between these tokens. */
interface Alias {
  readonly name: string;
  readonly isReference: boolean;
  readonly from: number;
  readonly to: number;
}

/** Declares a name between these tokens. */
interface Declared {
  readonly at: number;
  readonly to: number;
}

const ATOMICS = /^atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(?:_block|_system)?$/;
const HEADS = /^(?:if|for|while|switch|constexpr)$/;
const NO_TYPE = /^(?:return|else|do|case|goto|delete|new|throw|sizeof|break|continue|default|using|typedef|if|for|while|switch|co_return)$/;
const CASTS = /^(?:reinterpret|static|const)_cast$/;
/** A body with more tokens is not searched. */
const MOST_TOKENS = 50_000;
const MOST_ALIASES = 32;

/**
 * A function that gives the offset in `text` of the first store through a parameter, by its name; -1 if tokens show none. `open`: the offset
 * behind the parenthesis of the kernel's parameter list. `text` has no comments. `template`: the names of the parameters of its template.
 */
export function storesOf(text: string, open: number, template: readonly string[] = []): (name: string) => number {
  const macros = new Set(macrosIn(text).map((macro) => macro.name));
  const next = text.indexOf('__global__', open);
  const { tokens } = tokenize(withoutBranches(text.slice(open - 1, next < 0 ? text.length : next)));
  const bodyOpen = tokens[0]?.text === '(' ? bodyBehind(tokens, closing(tokens, 0)) : -1;
  const bodyEnd = bodyOpen < 0 ? -1 : closing(tokens, bodyOpen);
  if (bodyEnd < 0 || bodyEnd >= tokens.length || bodyEnd - bodyOpen > MOST_TOKENS) return () => -1;
  const body = new Body(tokens, bodyOpen, bodyEnd, macros, new Set(template));
  return (name) => {
    const at = macros.has(name) ? -1 : body.firstStore(name);
    return at < 0 ? -1 : open - 1 + tokens[at]!.start;
  };
}

/** Blanks what stands between `#if` and `#endif`. */
function withoutBranches(text: string): string {
  let depth = 0;
  return text
    .split('\n')
    .map((line) => {
      const word = /^[ \t]*#[ \t]*(if|endif)/.exec(line)?.[1];
      const isInside = depth > 0;
      depth = Math.max(0, depth + (word === 'if' ? 1 : word === 'endif' ? -1 : 0));
      return isInside && word === undefined ? ' '.repeat(line.length) : line;
    })
    .join('\n');
}

function bodyBehind(tokens: readonly Token[], close: number): number {
  let at = close + 1;
  while (tokens[at]?.kind === 'name') at = tokens[at + 1]?.text === '(' ? closing(tokens, at + 1) + 1 : at + 1;
  return tokens[at]?.text === '{' ? at : -1;
}

class Body {
  readonly #tokens: readonly Token[];
  readonly #open: number;
  readonly #end: number;
  readonly #declared = new Map<string, Declared[]>();
  /** Tokens that may not be compiled, or are of another scope. */
  readonly #isLeft: Uint8Array;

  constructor(tokens: readonly Token[], open: number, end: number, macros: ReadonlySet<string>, template: ReadonlySet<string>) {
    [this.#tokens, this.#open, this.#end] = [tokens, open, end];
    this.#isLeft = new Uint8Array(end + 1);
    const leave = (from: number, to: number): void => void this.#isLeft.fill(1, from, Math.min(to, end) + 1);
    for (let i = open + 1; i < end; i++) {
      const { text, kind } = tokens[i]!;
      if (kind === 'name' && macros.has(text) && this.#text(i + 1) === '(') leave(i, closing(tokens, i + 1));
      if (/^(?:sizeof|decltype|noexcept|alignof)$/.test(text) && this.#text(i + 1) === '(') leave(i, closing(tokens, i + 1));
      if (/^(?:struct|class|union)$/.test(text)) {
        let brace = i + 1;
        while (brace < end && !/^[;{()=]$/.test(this.#text(brace))) brace++;
        if (this.#text(brace) === '{') leave(i, closing(tokens, brace));
      }
      if (text === 'if') {
        const head = this.#text(i + 1) === 'constexpr' ? i + 2 : i + 1;
        const close = closing(tokens, head);
        if (
          head === i + 2 ||
          tokens
            .slice(head, close)
            .some((token) => template.has(token.text) || macros.has(token.text) || (/^(?:false|0)$/.test(token.text) && close === head + 2))
        )
          leave(i, this.#statementEnd(i));
      }
      if (this.#isStart(i)) this.#declaration(i);
      if (text === '(' && this.#text(i - 1) === ']') this.#lambda(i);
    }
  }

  /** The first store through the parameter; -1 for none. */
  firstStore(name: string): number {
    const aliases: Alias[] = [{ name, isReference: false, from: this.#open, to: this.#end }];
    let found = -1;
    for (let n = 0; n < aliases.length && n < MOST_ALIASES; n++) {
      const alias = aliases[n]!;
      if (!alias.isReference && this.#isSetAnew(alias)) continue;
      for (const at of this.#mentions(alias)) {
        if (this.#isLeft[at] === 1) continue;
        if (alias.isReference ? this.#isStored(at, at) : this.#stores(at)) {
          if (found < 0 || at < found) found = at;
        } else if (!alias.isReference) {
          const made = this.#aliasOf(at);
          if (made) aliases.push(made);
        }
      }
    }
    return found;
  }

  #text(at: number): string {
    return this.#tokens[at]?.text ?? '';
  }

  /** Whether two characters are one operator. */
  #isPair(at: number, pair: string): boolean {
    const [one, two] = [this.#tokens[at], this.#tokens[at + 1]];
    return one?.text === pair[0] && two?.text === pair[1] && one?.end === two?.start;
  }

  #isStart(at: number): boolean {
    const before = this.#text(at - 1);
    if (/^(?:[;{}]|else|do)$/.test(before)) return true;
    if (before === '(') return HEADS.test(this.#text(at - 2));
    return before === ')' && HEADS.test(this.#text(opening(this.#tokens, at - 1) - 1));
  }

  /** The last token of the statement at `at`. */
  #statementEnd(at: number, nested = 0): number {
    const text = this.#text(at);
    if (text === '{') return closing(this.#tokens, at);
    if (nested > 64) return this.#end;
    if (HEADS.test(text) && text !== 'constexpr') {
      const head = this.#text(at + 1) === 'constexpr' ? at + 2 : at + 1;
      const end = this.#statementEnd(closing(this.#tokens, head) + 1, nested + 1);
      return text === 'if' && this.#text(end + 1) === 'else' ? this.#statementEnd(end + 2, nested + 1) : end;
    }
    if (text === 'do') return this.#semicolon(this.#statementEnd(at + 1, nested + 1) + 1);
    return this.#semicolon(at);
  }

  #semicolon(from: number): number {
    let at = from;
    while (at < this.#end && this.#text(at) !== ';') at = /^[([{]$/.test(this.#text(at)) ? closing(this.#tokens, at) + 1 : at + 1;
    return at;
  }

  /** Notes the names that the statement at `start` declares, if it is a declaration. */
  #declaration(start: number): void {
    const tokens = this.#tokens;
    if (tokens[start]?.kind !== 'name' || NO_TYPE.test(this.#text(start))) return;
    let at = start;
    let words = 0;
    for (; at < this.#end; at++) {
      const { kind, text } = tokens[at]!;
      if (text === '<' && closingAngle(tokens, at) > at) at = closingAngle(tokens, at);
      else if (kind === 'name') words++;
      else if (text === '(' && /^(?:alignas|__align__|__attribute__|decltype)$/.test(this.#text(at - 1))) at = closing(tokens, at);
      else if (!/^[*&:]$/.test(text) || (text === ':' && !this.#isPair(at, '::') && !this.#isPair(at - 1, '::'))) break;
    }
    const to = this.#scopeEnd(start);
    const note = (i: number): void => {
      const list = this.#declared.get(this.#text(i));
      if (list) list.push({ at: i, to });
      else this.#declared.set(this.#text(i), [{ at: i, to }]);
    };
    // `auto [a, b] = ...`
    if (this.#text(at) === '[' && /^(?:auto|&)$/.test(this.#text(at - 1))) {
      for (let i = at + 1; i < closing(tokens, at); i++) if (tokens[i]!.kind === 'name') note(i);
      return;
    }
    // `float (*rows)[3]`
    if (this.#text(at) === '(' && /^[*&]$/.test(this.#text(at + 1)) && this.#text(at + 3) === ')') {
      note(at + 2);
      return;
    }
    if (words < 2 || tokens[at - 1]?.kind !== 'name' || !/^[=;,[({:)]$/.test(this.#text(at))) return;
    for (let declarator = at - 1; ; ) {
      note(declarator);
      let next = declarator + 1;
      while (next < this.#end && !/^[,;)]$/.test(this.#text(next)))
        next = /^[([{]$/.test(this.#text(next)) ? closing(tokens, next) + 1 : next + 1;
      if (this.#text(next) !== ',') return;
      do next++;
      while (/^(?:[*&]|const|__restrict(?:__)?)$/.test(this.#text(next)));
      if (tokens[next]?.kind !== 'name') return;
      declarator = next;
    }
  }

  /** The last token where a declaration at `at` is visible. */
  #scopeEnd(at: number): number {
    if (this.#text(at - 1) === '(') return this.#statementEnd(this.#text(at - 2) === 'constexpr' ? at - 3 : at - 2);
    let depth = 0;
    for (let i = at; i < this.#end; i++) {
      if (this.#text(i) === '{') depth++;
      else if (this.#text(i) === '}' && --depth < 0) return i;
    }
    return this.#end;
  }

  /** Notes the parameters of a lambda. */
  #lambda(open: number): void {
    const close = closing(this.#tokens, open);
    let brace = close + 1;
    while (brace < this.#end && !/^[;{),]$/.test(this.#text(brace))) brace++;
    if (this.#text(brace) !== '{') return;
    const to = closing(this.#tokens, brace);
    for (let i = open + 1; i < close; i++) {
      const isLast = /^[,)=[]$/.test(this.#text(i + 1));
      if (this.#tokens[i]!.kind === 'name' && isLast)
        this.#declared.set(this.#text(i), [...(this.#declared.get(this.#text(i)) ?? []), { at: i, to }]);
    }
  }

  /** Where the name means this parameter or alias. */
  *#mentions({ name, from, to }: Alias): Generator<number> {
    const others = (this.#declared.get(name) ?? []).filter((one) => one.at !== from);
    for (let i = from + 1; i < to; i++) {
      if (this.#text(i) !== name || this.#text(i - 1) === '.' || this.#isPair(i - 2, '->') || this.#isPair(i - 2, '::')) continue;
      if (!others.some((one) => one.at > from && i >= one.at && i <= one.to)) yield i;
    }
  }

  /** Whether the pointer may come to point elsewhere. */
  #isSetAnew(alias: Alias): boolean {
    for (const at of this.#mentions(alias)) {
      if (at === alias.from) continue;
      if (this.#text(at + 1) === '=' && !this.#isPair(at + 1, '==') && !this.#isStarred(at)) return true;
      let open = at;
      while (open > this.#open && !/^[(;{}]$/.test(this.#text(open))) open--;
      if (this.#text(open) === '(' && /swap|exchange/i.test(this.#text(open - 1))) return true;
    }
    return false;
  }

  #isOperand(at: number): boolean {
    const { kind, text } = this.#tokens[at]!;
    if (text === ')') return !HEADS.test(this.#text(opening(this.#tokens, at) - 1)) && this.#castOpen(at) < 0;
    return kind === 'number' || text === ']' || (kind === 'name' && !NO_TYPE.test(text));
  }

  /** Whether a `*` before the token reads through it. */
  #isStarred(at: number): boolean {
    return this.#text(at - 1) === '*' && !this.#isOperand(at - 2);
  }

  /** The parenthesis of the cast to a pointer that ends at `close`: `(float4*)`. */
  #castOpen(close: number): number {
    if (this.#text(close) !== ')' || this.#text(close - 1) !== '*') return -1;
    const open = opening(this.#tokens, close);
    if (open < 0) return -1;
    return this.#tokens.slice(open + 1, close).every(({ kind, text }) => kind === 'name' || /^[*:<>]$/.test(text)) ? open : -1;
  }

  /** The tokens of the largest pointer expression around the pointer at `at`, of sums, casts and parentheses. */
  #pointer(at: number): readonly [from: number, to: number] {
    let [from, to] = [at, at];
    for (;;) {
      const [before, after] = [this.#text(from - 1), this.#text(to + 1)];
      const cast = this.#castOpen(from - 1);
      if (cast >= 0 && !(this.#tokens[cast - 1]?.kind === 'name' && !NO_TYPE.test(this.#text(cast - 1)))) from = cast;
      else if (
        before === '(' &&
        (after === ')' || (/^[-+]$/.test(after) && !this.#isPair(to + 1, '->') && !this.#isPair(to + 1, after + after)))
      ) {
        const close = closing(this.#tokens, from - 1);
        if (close > this.#end || (after !== ')' && !this.#isSum(to + 1, close))) return [from, to];
        const callee = from - 2;
        if (this.#text(callee) === '>') {
          let word = callee - 1;
          while (word > this.#open && !CASTS.test(this.#text(word)) && !/^[;(){}]$/.test(this.#text(word))) word--;
          if (!CASTS.test(this.#text(word))) return [from, to];
          [from, to] = [word, close];
        } else if (this.#tokens[callee]?.kind === 'name' && !NO_TYPE.test(this.#text(callee))) return [from, to];
        else [from, to] = [from - 1, close];
      } else return [from, to];
    }
  }

  /** Whether only a sum's rest is between these tokens. */
  #isSum(from: number, to: number): boolean {
    for (let i = from; i < to; i++) {
      if (/^[?,=<>!|&]$/.test(this.#text(i))) return false;
      if (/^[([{]$/.test(this.#text(i))) i = closing(this.#tokens, i);
    }
    return true;
  }

  /** Whether the pointer at this token is stored through. */
  #stores(at: number): boolean {
    const [from, to] = this.#pointer(at);
    // `atomicAdd(y + i, 1)`
    if (this.#text(from - 1) === '(' && ATOMICS.test(this.#text(from - 2)) && /^[-+,]$/.test(this.#text(to + 1)))
      return this.#isAtomicStore(from - 1);
    if (this.#text(to + 1) === '[') return this.#isStored(from, closing(this.#tokens, to + 1));
    if (this.#isPair(to + 1, '->')) return this.#isStored(from, to + 3);
    if (!this.#isStarred(from) || this.#text(from - 2) === '*') return false;
    // `*y++ = 1`
    const isStepped = this.#isPair(to + 1, '++') || this.#isPair(to + 1, '--');
    return this.#isStored(from - 1, isStepped ? to + 2 : to, isStepped);
  }

  /** Whether the element in these tokens is stored. */
  #isStored(first: number, last: number, isStepped = false): boolean {
    let [from, to] = [first, last];
    for (;;) {
      if (this.#text(to + 1) === '.' && this.#text(to + 3) !== '(' && !isStepped) to += 2;
      else if (this.#text(from - 1) === '(' && this.#text(to + 1) === ')' && !this.#isOperand(from - 2)) [from, to] = [from - 1, to + 1];
      else break;
    }
    if (this.#text(to + 1) === '=') return !this.#isPair(to + 1, '==');
    if (/^[-+*/%&|^]$/.test(this.#text(to + 1)) && this.#isPair(to + 1, `${this.#text(to + 1)}=`)) return true;
    if ((this.#isPair(to + 1, '<<') || this.#isPair(to + 1, '>>')) && this.#isPair(to + 2, `${this.#text(to + 2)}=`)) return true;
    if (!isStepped && (this.#isPair(to + 1, '++') || this.#isPair(to + 1, '--'))) return true;
    if ((this.#isPair(from - 2, '++') || this.#isPair(from - 2, '--')) && !this.#isOperand(from - 3)) return true;
    return (
      this.#text(from - 1) === '&' && this.#text(from - 2) === '(' && ATOMICS.test(this.#text(from - 3)) && this.#isAtomicStore(from - 2)
    );
  }

  /** Whether an atomic function's operands are other than 0, with which sources read. */
  #isAtomicStore(open: number): boolean {
    const close = closing(this.#tokens, open);
    let comma = open + 1;
    while (comma < close && this.#text(comma) !== ',')
      comma = /^[([{]$/.test(this.#text(comma)) ? closing(this.#tokens, comma) + 1 : comma + 1;
    return this.#tokens.slice(comma, close).some(({ text }) => !/^(?:,|0[uUlL]*|0?\.0*[fF]?|0\.[fF]?)$/.test(text));
  }

  /** The pointer or reference that a declaration initialises with the pointer at `at`. */
  #aliasOf(at: number): Alias | undefined {
    const [from, to] = this.#pointer(at);
    // `&y[i]` of a pointer, `y[i]` or `*y` of a reference
    const isElement = this.#text(to + 1) === '[';
    const isPlace = isElement && this.#text(from - 1) === '&';
    const isRead = !isPlace && (isElement || this.#isStarred(from));
    const first = isPlace || (isRead && !isElement) ? from - 1 : from;
    const last = isElement ? closing(this.#tokens, to + 1) : to;
    const target = first - 2;
    if (this.#text(first - 1) !== '=' || this.#tokens[target]?.kind !== 'name') return undefined;
    const declared = this.#declared.get(this.#text(target))?.find((one) => one.at === target);
    if (!declared) return undefined;
    let before = target - 1;
    while (/^(?:const|__restrict(?:__)?)$/.test(this.#text(before))) before--;
    const mark = this.#text(before);
    const end = this.#text(last + 1);
    if (isRead)
      return mark === '&' && /^[;,]$/.test(end)
        ? { name: this.#text(target), isReference: true, from: target, to: declared.to }
        : undefined;
    const isPointer = mark === '*' || mark === 'auto';
    const isWhole = /^[;,]$/.test(end) || (/^[-+]$/.test(end) && this.#isSum(last + 1, this.#semicolon(last + 1)));
    return isPointer && isWhole ? { name: this.#text(target), isReference: false, from: target, to: declared.to } : undefined;
  }
}
