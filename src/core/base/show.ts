// A value as a message shows it: in one line of bounded length. It never throws, whatever the value does.

/** Limits of what is shown: characters of a string, elements of a list, and nested lists. */
const MOST_CHARACTERS = 80;
const MOST_ELEMENTS = 16;
const MOST_DEPTH = 2;
/** Converting a bigint to text takes time quadratic in its length. */
const LARGEST_BIGINT: bigint = 2n ** 128n;

/** A value as a message shows it. Never throws. */
export function show(value: unknown): string {
  return showAt(value, 0);
}

function showAt(value: unknown, depth: number): string {
  try {
    switch (typeof value) {
      case 'string':
        return value.length > MOST_CHARACTERS ? `'${value.slice(0, MOST_CHARACTERS)}...' of ${value.length} characters` : `'${value}'`;
      case 'bigint':
        return value < LARGEST_BIGINT && value > -LARGEST_BIGINT ? `${value}n` : 'a bigint of more than 128 bits';
      case 'symbol':
        return cut(String(value));
      case 'function':
        return 'a function';
      case 'object':
        if (value === null) return 'null';
        return Array.isArray(value) ? showList(value, depth) : className(value);
      default:
        return String(value);
    }
  } catch {
    // A getter or a proxy that throws, or a proxy that was revoked.
    return 'an object';
  }
}

function showList(list: readonly unknown[], depth: number): string {
  const { length } = list;
  if (depth > MOST_DEPTH) return `a list of ${length}`;
  const shown: string[] = [];
  for (let at = 0; at < length && at < MOST_ELEMENTS; at++) shown.push(showAt(list[at], depth + 1));
  return length > MOST_ELEMENTS ? `[${shown.join(', ')}, ...] of ${length} elements` : `[${shown.join(', ')}]`;
}

function className(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === 'string' && name !== '' ? cut(name) : 'an object';
}

function cut(text: string): string {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}...` : text;
}
