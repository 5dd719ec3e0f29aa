// Conversions of floats to integers without a cast (`int i = x;`, `i += 0.5f * x`), which saturate on a GPU when the float is out of range.
//
// Only the compiler knows the types, so g++ tells where they are: a build warns of them, and if it does, a second run gives their places as
// JSON. The marked expressions take the conversions of the shim's casts.h. A g++ without these diagnostics leaves such conversions as they are.
import { SHIM_DIRECTORY } from '../base/package-and-cpu-identity.js';

export const WARNING_FLAG = '-Wfloat-conversion';
export const PLACES_FLAGS: readonly string[] = ['-fsyntax-only', '-fdiagnostics-format=json'];

const WARNED = /^(\S+?):\d+:\d+: warning: conversion from '.*' to '.*' may change value/gm;
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

/** The compiler's input with the conversions marked; undefined if there are none, or if the answer cannot be read. */
export function withMarkedConversions(text: string, answer: string): string | undefined {
  let found: readonly Diagnostic[];
  try {
    found = JSON.parse(answer.slice(answer.indexOf('['), answer.lastIndexOf(']') + 1)) as readonly Diagnostic[];
  } catch {
    return undefined;
  }
  const offsetOf = offsets(text);
  const marks = new Map<string, readonly [at: number, text: string]>();
  for (const { message, locations } of found) {
    const named = CONVERSION.exec(message);
    const place = locations[0];
    if (!named || !place || !INTEGER.test(named[4] ?? named[3]!)) continue;
    const { caret, start = caret, finish = caret } = place;
    const [at, from, last] = [offsetOf(caret), offsetOf(start), offsetOf(finish)];
    if (at === undefined || from === undefined || last === undefined) continue;
    // A compound assignment converts its result: the right side is marked.
    const isUpdate = /^[-+*/]=/.test(text.slice(at, at + 2));
    const first = isUpdate ? at + 2 : from;
    const end = behind(text, last);
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
