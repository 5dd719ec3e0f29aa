// Errors in kernel source: a code, a position, a message, a hint, and a code frame of the user's function.
import type { CompileCode } from '../../core/base/compile-codes.js';
import type { CompilerDiagnostic } from '../../core/base/errors.js';
import { CompileError } from '../../core/base/errors.js';
import { userPlace } from './user-place.js';

/** The caller of `kernel()`, from the stack; unknown members are undefined. */
export interface CallSite {
  readonly file: string | undefined;
  /** 1-based; 0 when unknown. */
  readonly line: number;
  /** For source with headers in it: where each of its lines is (InlinedSource). */
  readonly included?: { readonly lines: readonly number[]; readonly of: readonly number[]; readonly files: readonly string[] };
}

/** Thrown inside the compiler; `kernel()` turns it into a CompileError. */
export class KernelTextError extends Error {
  readonly code: CompileCode;
  readonly start: number;
  readonly end: number;
  readonly hint: string | undefined;

  constructor(code: CompileCode, at: { readonly start: number; readonly end: number }, message: string, hint?: string) {
    super(message);
    this.code = code;
    this.start = at.start;
    this.end = at.end;
    this.hint = hint;
  }
}

/** Most characters of a line that a code frame shows: minified source can be one long line. */
const FRAME_WIDTH = 100;
const STACK_PLACE = /\(?((?:file:\/\/)?[^\s()]+):(\d+):\d+\)?$/;

/** The caller of `entry`. Its position is source-mapped where Node or the test runner maps stacks. */
export function callSite(entry: (...args: never[]) => unknown): CallSite {
  const holder: { stack?: string } = {};
  const limit = Error.stackTraceLimit;
  // `node --frozen-intrinsics` refuses the assignment. The stack then has more frames, of which the first one counts.
  Reflect.set(Error, 'stackTraceLimit', 1);
  Error.captureStackTrace(holder, entry);
  Reflect.set(Error, 'stackTraceLimit', limit);
  const caller = String(holder.stack)
    .split('\n')
    .find((line) => line.trimStart().startsWith('at '));
  const match = STACK_PLACE.exec(caller ?? '');
  if (!match) return { file: undefined, line: 0 };
  const file = match[1]!.startsWith('file://') ? decodeURIComponent(match[1]!.slice('file://'.length)) : match[1]!;
  return { file, line: Number(match[2]) };
}

/** 1-based line and column of an offset. */
export function placeOf(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, Math.max(0, offset));
  const line = before.split('\n').length;
  return { line, column: before.length - before.lastIndexOf('\n') };
}

/** Offset of each line of the source. */
export function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** 1-based line of an offset, given the offsets of the lines. */
export function lineAt(starts: readonly number[], offset: number): number {
  let [low, high] = [0, starts.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= offset) low = middle;
    else high = middle;
  }
  return high;
}

/** Maps a line of the function's source to the user's file, as if the function began where `kernel()` was called. */
export function userLine({ line, included }: CallSite, textLine: number): number {
  const own = included?.lines[textLine - 1] ?? textLine;
  return line === 0 || isIncluded(included, textLine) ? own : line + own - 1;
}

/** The file of a line of the source. */
function fileOfLine({ file, included }: CallSite, textLine: number): string | undefined {
  return isIncluded(included, textLine) ? included?.files[(included.of[textLine - 1] as number) - 1] : file;
}

function isIncluded(included: CallSite['included'], textLine: number): boolean {
  return (included?.of[textLine - 1] ?? 0) > 0;
}

/** A line with marks under a part of it. Both are cut so that the marks stay visible. */
function frame(line: string, number: number, column: number, width: number): string {
  const full = line.replaceAll('\t', ' ');
  const marked = Math.max(1, Math.min(width, full.length - column + 1));
  const from = full.length <= FRAME_WIDTH ? 0 : Math.max(0, Math.min(column - 1 - 20, full.length - FRAME_WIDTH));
  const shown = full.slice(from, from + FRAME_WIDTH);
  const marks = `${' '.repeat(column - 1 - from)}${'^'.repeat(Math.max(1, Math.min(marked, from + FRAME_WIDTH - column + 1)))}`;
  const gutter = ' '.repeat(String(number).length);
  return `\n  ${number} | ${shown}\n  ${gutter} | ${marks}`;
}

/** A code frame of the function's source as V8 has it, after transpilation. */
function ownFrame(error: KernelTextError, text: string, number: number): string {
  const { line, column } = placeOf(text, error.start);
  return frame(text.split('\n')[line - 1] ?? '', number, column, error.end - error.start);
}

interface Placed {
  /** ` at file:line:column`, ` near file:line`, or nothing. */
  readonly where: string;
  readonly frame: string;
  readonly place: Pick<CompilerDiagnostic, 'file' | 'line' | 'column'>;
}

/** Places the error in the user's file when its position is known, else in the transpiled source, near the call. */
function placed(error: KernelTextError, source: ErrorSource, site: CallSite): Placed {
  const { text, body } = source;
  const user = body === undefined || text === '' ? undefined : userPlace(body, text, error.start, error.end);
  if (user?.isExact) {
    const { file, line, column } = user;
    const where = ` at ${file}:${line}:${column}`;
    if (user.text !== undefined) return { where, frame: frame(user.text, line, column, user.width), place: { file, line, column } };
    return { where, frame: ownFrame(error, text, line), place: { file, line, column } };
  }
  const { line, column } = placeOf(text, error.start);
  const file = user?.file ?? fileOfLine(site, line);
  const near = user?.line ?? userLine(site, line);
  return {
    where: file === undefined ? '' : ` near ${file}:${near}`,
    frame: text === '' ? '' : ownFrame(error, text, near),
    place: { ...(file === undefined ? {} : { file }), line: near, column },
  };
}

/** The source that an error refers to. */
export interface ErrorSource {
  /** Empty when there is no source to show. */
  readonly text: string;
  /** The function with that source; it leads to the position in the user's file. */
  readonly body?: object;
}

/** With the names of the user's file: esbuild (tsx, vite) renames a local `x` to `x2` if its file has another `x`. */
function withUsersNames(message: string, { text, body }: ErrorSource): string {
  if (body === undefined || text === '') return message;
  return message.replace(/(?<![\w$.])[A-Za-z_$][\w$]*\d(?![\w$])/g, (name) => {
    const at = text.search(new RegExp(`(?<![\\w$.])${name.replaceAll('$', '\\$')}(?![\\w$])`));
    const user = at < 0 ? undefined : userPlace(body, text, at, at + name.length);
    const original = user?.isExact ? /^[A-Za-z_$][\w$]*/.exec(user.text?.slice(user.column - 1) ?? '')?.[0] : undefined;
    return original !== undefined && name.startsWith(original) && /^\d*$/.test(name.slice(original.length)) ? original : name;
  });
}

/** Converts to the error that callers catch. Without a kernel name, the error is about a module. */
export function toCompileError(error: KernelTextError, kernelName: string | undefined, source: ErrorSource, site: CallSite): CompileError {
  const { where, frame: framed, place } = placed(error, source, site);
  const hint = error.hint === undefined ? '' : `\n  ${withUsersNames(error.hint, source)}`;
  const message = withUsersNames(error.message, source);
  const what = kernelName === undefined ? 'the module' : `kernel '${kernelName}'`;
  const log = `${error.code}: ${message}\n  in ${what}${where}${framed}${hint}`;
  return new CompileError('ERR_MILLRACE_COMPILE', log, log, [{ code: error.code, ...place, message }]);
}
