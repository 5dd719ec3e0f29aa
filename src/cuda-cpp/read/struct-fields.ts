// Reads the fields of a struct from the words of its body. Member functions, bit fields, attributes, nested types and directives make a body
// unreadable: only the compiler then knows the layout.

/** A field as the source declares it. */
export interface SourceField {
  readonly name: string;
  /** Its type: names and stars. */
  readonly words: readonly string[];
  /** The number of elements of an array, 1 for other fields; undefined if tokens do not tell. */
  readonly count: number | undefined;
}

const NAME = /^[A-Za-z_$][\w$]*$/;
const ACCESS: ReadonlySet<string> = new Set(['public', 'private', 'protected']);
const UNREADABLE: ReadonlySet<string> = new Set(
  '( ) { } : & < > static typedef using friend template virtual operator mutable constexpr'.split(' '),
);

/** The fields in their order; undefined when the body has anything else. */
export function fieldsOf(body: readonly string[]): readonly SourceField[] | undefined {
  const fields: SourceField[] = [];
  for (const given of splitAt(body, ';')) {
    let words = given;
    while (ACCESS.has(words[0] ?? '') && words[1] === ':') words = words.slice(2);
    if (words.length === 0) continue;
    words = withoutStd(words);
    if (words.some((word) => UNREADABLE.has(word) || word === '::' || word < ' ')) return undefined;
    let type: readonly string[] = [];
    for (const [at, declarator] of splitAt(words, ',').entries()) {
      const plain = declarator.includes('=') ? declarator.slice(0, declarator.indexOf('=')) : declarator;
      const bracket = plain.indexOf('[');
      const before = bracket < 0 ? plain : plain.slice(0, bracket);
      const name = before.at(-1) ?? '';
      const own = before.slice(0, -1);
      if (!NAME.test(name) || !own.every((word) => word === '*' || NAME.test(word))) return undefined;
      if (at === 0) type = own.filter((word, index) => word !== '*' && !own.slice(0, index).includes('*'));
      if (type.length === 0) return undefined;
      fields.push({ name, words: at === 0 ? own : [...type, ...own], count: bracket < 0 ? 1 : countOf(plain.slice(bracket)) });
    }
  }
  return fields;
}

function withoutStd(words: readonly string[]): readonly string[] {
  return words.filter((word, at) => !(word === 'std' && words[at + 1] === '::') && !(word === '::' && words[at - 1] === 'std'));
}

/** The product of the extents `[3][4]`. */
function countOf(words: readonly string[]): number | undefined {
  let count = 1;
  for (let at = 0; at < words.length; at += 3) {
    const extent = /^(?:0[xX][\da-fA-F]+|[1-9]\d*)$/.test(words[at + 1] ?? '') ? Number(words[at + 1]) : undefined;
    if (words[at] !== '[' || words[at + 2] !== ']' || extent === undefined) return undefined;
    count *= extent;
  }
  return count;
}

function splitAt(words: readonly string[], separator: string): (readonly string[])[] {
  const parts: string[][] = [[]];
  for (const word of words) {
    if (word === separator) parts.push([]);
    else parts.at(-1)!.push(word);
  }
  return parts;
}
