// Maps a position in a function's source to the file that the user wrote. On the error path only.
//
// `isExact` is set only after a check: the map has a mapping at exactly that point, or the text from the mapping to the point is the same
// in both files; without a map, the file on disk has the same line. Coverage counters shift the columns behind them, so they clear it.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type FunctionScript, LINE_END, lineOf, pointOf, type ScriptPoint, scriptOf } from './function-script.js';
import { type Mapped, openSourceMap } from './source-map.js';

export interface UserPlace {
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  readonly column: number;
  /** The user's line; undefined when neither the map nor the disk has it. */
  readonly text: string | undefined;
  /** Number of its characters that the error covers. */
  readonly width: number;
  readonly isExact: boolean;
}

const WORD = /^[\w$.]/;
const COUNTER = /\bcov_\w+\(\)/;

/** The position of `text.slice(start, end)`, where `text` is the source of `body`; undefined when only the call's position is known. */
export function userPlace(body: object, text: string, start: number, end: number): UserPlace | undefined {
  const script = scriptOf(body, text);
  if (!script) return undefined;
  const point = pointOf(script, script.start + start);
  const meant = text.slice(start, Math.max(end, start + 1));
  if (script.mapUrl === '') return placeOnDisk(script, point, text, meant);
  const find = openSourceMap(script);
  const mapped = find?.(point);
  // A map may give any position for code that a tool inserted.
  const first = find?.(pointOf(script, script.start));
  const last = find?.(pointOf(script, script.start + text.length - 1));
  if (!mapped || mapped.file !== first?.file || mapped.line < first.line || (last?.file === first.file && mapped.line > last.line))
    return undefined;
  return placeInMap(script, point, mapped, text, meant);
}

function placeInMap(script: FunctionScript, point: ScriptPoint, mapped: Mapped, text: string, meant: string): UserPlace {
  const { file, text: own } = mapped;
  const line = mapped.line + 1;
  if (own === undefined)
    return { file, line, column: mapped.column + 1, text: own, width: 1, isExact: mapped.scriptColumn === point.column };
  const from = columnInLine(script, point.line, mapped.scriptColumn);
  const reached = follow(own, mapped.column, lineOf(script, point.line).slice(from, columnInLine(script, point.line, point.column)));
  const column = reached.isWhole ? afterBlanks(own, reached.column) : mapped.column;
  const isAlike = WORD.test(meant) === WORD.test(own.slice(column));
  const isExact = reached.isWhole && isAlike && !COUNTER.test(text);
  return { file, line, column: column + 1, text: own, width: widthOf(own, column, meant), isExact };
}

/** Without a map, the script is the user's file if that has the same line. A type stripper replaces types with spaces, so lengths match. */
function placeOnDisk(script: FunctionScript, { line, column }: ScriptPoint, text: string, meant: string): UserPlace | undefined {
  try {
    const file = script.url.startsWith('file:') ? fileURLToPath(script.url) : script.url;
    const own = readFileSync(file, 'utf8').split(LINE_END)[line];
    if (own === undefined || own.length !== lineOf(script, line).length || !follow(own, column, meant.split(LINE_END)[0]!).isAny)
      return undefined;
    return { file, line: line + 1, column: column + 1, text: own, width: widthOf(own, column, meant), isExact: !COUNTER.test(text) };
  } catch {
    return undefined;
  }
}

function columnInLine(script: FunctionScript, line: number, column: number): number {
  return line === script.firstLine ? column - script.firstColumn : column;
}

function afterBlanks(line: string, column: number): number {
  return column + /^\s*/.exec(line.slice(column))![0].length;
}

interface Followed {
  /** Where the two differ, or the end of the compared text. */
  readonly column: number;
  readonly isAny: boolean;
  readonly isWhole: boolean;
}

/** TypeScript syntax that transpilation erases: `!`, `as T`, `: T`. */
const ERASED = /^(?:!(?!=)|\s*\bas\s+[\w.]+(?:\[\])*|\??\s*:\s*[\w.]+(?:\[\])*(?=\s*[=,)]))/;

/** Advances through the user's line while it matches `written`, ignoring whitespace and types. */
function follow(line: string, from: number, written: string): Followed {
  let column = from;
  let at = 0;
  for (;;) {
    while (/\s/.test(written[at] ?? '')) at++;
    if (at >= written.length) return { column, isAny: true, isWhole: true };
    const next = afterBlanks(line, column);
    if (next < line.length && isSame(line[next]!, written[at]!)) {
      column = next + 1;
      at++;
      continue;
    }
    const erased = ERASED.exec(line.slice(column));
    if (!erased) return { column, isAny: at > 0, isWhole: false };
    column += erased[0].length;
  }
}

function isSame(a: string, b: string): boolean {
  return a === b || (`'"\``.includes(a) && `'"\``.includes(b));
}

/** Length of the part of `meant` that is on the line; one word or character when a tool rewrote it. */
function widthOf(line: string, column: number, meant: string): number {
  const { column: reached, isAny } = follow(line, column, meant);
  const word = /^(?:[\w$.]+|.)/.exec(line.slice(column))?.[0].length ?? 1;
  return Math.max(1, isAny ? reached - column : word);
}
