// Conversions of floats to integers without a cast (`int i = x;`, `i += 0.5f * x`), which saturate on a GPU when the float is out of range.
//
// Only the compiler knows the types, so it tells where they are: a build warns of them, and if it does, a second run gives their places. The
// marked expressions take the conversions of the shim's casts.h. A compiler without these diagnostics leaves such conversions as they are.
import { SHIM_DIRECTORY } from '../base/package-and-cpu-identity.js';

/** The options of both runs, and of the second. */
export const CONVERSION_FLAGS = {
  gcc: { warning: ['-Wfloat-conversion'], places: ['-fsyntax-only', '-fdiagnostics-format=json'] },
  clang: {
    warning: ['-Wno-everything', '-Wfloat-conversion'],
    places: ['-fsyntax-only', '-fdiagnostics-print-source-range-info', '-fno-caret-diagnostics'],
  },
} as const;

const WARNED =
  /^(\S+?):\d+:\d+: warning: (?:conversion from '.*' to '.*' may change value|implicit conversion turns floating-point number into integer)/gm;
/** Of clang: the line and column, and those of the converted expression and of what is behind it; then, whether a macro contains it. */
const CLANG_PLACE =
  /^(<stdin>):(\d+):(\d+):\{(\d+):(\d+)-(\d+):(\d+)\}\S* warning: implicit conversion turns floating-point number into integer.*\n(?!.* note: expanded from macro)/gm;
const CONVERSION = /^conversion from '([^']*)'(?: \{aka '([^']*)'\})? to '([^']*)'(?: \{aka '([^']*)'\})? may change value/;
const INTEGER = /^(?:(?:signed|unsigned|char|short|int|long) ?)+$/;
const LINE_MARKER = /^[ \t]*#[ \t]*(?:line[ \t]+)?\d+.*$/gm;

interface Place {
  readonly file: string;
  readonly line: number;
  readonly 'byte-column': number;
}
interface Diagnostic {
  readonly message: string;
  readonly locations: readonly { readonly caret: Place; readonly start?: Place; readonly finish?: Place }[];
}

/** Whether the compiler warned of such conversions, perhaps only between floats, outside the shim. */
export function hasConversions(log: string): boolean {
  return [...log.matchAll(WARNED)].some(([, file]) => !file!.startsWith(SHIM_DIRECTORY));
}

/** A compiler's log without warnings and the lines that belong to them. */
export function withoutWarnings(log: string): string {
  let isWarning = false;
  const kept = log.split('\n').filter((line) => {
    if (/^\S+?:(?:\d+:)* (?:warning|error|fatal error|note): /.test(line)) isWarning = line.includes(': warning: ');
    else if (!/^\s/.test(line)) isWarning = false;
    return !isWarning;
  });
  return kept.join('\n');
}

/** The input of the second run, whose lines are not renamed: several of them may come from one line of the source. */
export function unmarked(text: string): string {
  return text.replace(LINE_MARKER, '');
}

/** Where an expression is converted, and its first offset and that behind it. */
type Conversion = readonly [at: number, from: number, end: number];

function conversionsOfGcc(text: string, answer: string): Conversion[] {
  let found: readonly Diagnostic[];
  try {
    found = JSON.parse(answer.slice(answer.indexOf('['), answer.lastIndexOf(']') + 1)) as readonly Diagnostic[];
  } catch {
    return [];
  }
  const offsetOf = offsets(text);
  return found.flatMap(({ message, locations }) => {
    const named = CONVERSION.exec(message);
    const place = locations[0];
    if (!named || !place || !INTEGER.test(named[4] ?? named[3]!)) return [];
    const { caret, start = caret, finish = caret } = place;
    const [at, from, last] = [offsetOf(caret), offsetOf(start), offsetOf(finish)];
    return at === undefined || from === undefined || last === undefined ? [] : [[at, from, behind(text, last)]];
  });
}

function conversionsOfClang(text: string, answer: string): Conversion[] {
  const offsetOf = offsets(text);
  return [...answer.matchAll(CLANG_PLACE)].flatMap(([, file, ...numbers]) => {
    const [at, from, end] = [0, 2, 4].map((n) =>
      offsetOf({ file: file!, line: Number(numbers[n]), 'byte-column': Number(numbers[n + 1]) }),
    );
    return at === undefined || from === undefined || end === undefined ? [] : [[at, from, end]];
  });
}

/** The compiler's input with the conversions marked; undefined if there are none, or if the answer cannot be read. */
export function withMarkedConversions(text: string, answer: string, family: keyof typeof CONVERSION_FLAGS): string | undefined {
  const marks = new Map<string, readonly [at: number, text: string]>();
  for (const [at, from, end] of family === 'clang' ? conversionsOfClang(text, answer) : conversionsOfGcc(text, answer)) {
    // A compound assignment converts its result: the right side is marked.
    const isUpdate = /^[-+*/]=/.test(text.slice(at, at + 2));
    const first = isUpdate ? at + 2 : from;
    if (end <= first) continue;
    marks.set(`${first} (`, [first, ' ::mr_number_of(']);
    marks.set(`${end} ${first}`, [end, ')']);
  }
  if (marks.size === 0) return undefined;
  let made = '';
  let copied = 0;
  // Ends before beginnings at one place.
  for (const [at, mark] of [...marks.values()].toSorted((a, b) => a[0] - b[0] || (a[1] === ')' ? -1 : 0) - (b[1] === ')' ? -1 : 0))) {
    made += text.slice(copied, at) + mark;
    copied = at;
  }
  return made + text.slice(copied);
}

/** The index behind the token that contains or begins at this place: g++ gives either. */
function behind(text: string, last: number): number {
  if (!/[\w$]/.test(text[last]!)) return last + 1;
  let end = last;
  while (/[\w$.]/.test(text[end] ?? '')) end++;
  return end;
}

/** Finds places in a text that the compiler read as its standard input. */
function offsets(text: string): (place: Place) => number | undefined {
  const lines = text.split('\n');
  const starts: number[] = [];
  let start = 0;
  for (const line of lines) {
    starts.push(start);
    start += line.length + 1;
  }
  return ({ file, line, 'byte-column': column }) => {
    const here = lines[line - 1];
    if (file !== '<stdin>' || here === undefined) return undefined;
    return (
      starts[line - 1]! +
      Buffer.from(here)
        .subarray(0, column - 1)
        .toString().length
    );
  };
}
