// Errors in kernel text: a code, a place, a sentence, a hint, and a frame cut from the user's function.
//
// Codes: K0xx text and parsing, K1xx names, K2xx types, K3xx syntax outside the language, K4xx barriers.
import { CompileError } from '../core/base/errors.js';

/** Where `kernel()` was called, from the stack: undefined members are not known. */
export interface CallSite {
  readonly file: string | undefined;
  /** 1-based; 0 when not known. */
  readonly line: number;
}

/** Thrown inside the compiler; `kernel()` turns it into a CompileError. */
export class KernelTextError extends Error {
  readonly code: string;
  readonly start: number;
  readonly end: number;
  readonly hint: string | undefined;

  constructor(code: string, at: { readonly start: number; readonly end: number }, message: string, hint?: string) {
    super(message);
    this.code = code;
    this.start = at.start;
    this.end = at.end;
    this.hint = hint;
  }
}

/** A one-line text comes from a minifier; a frame shows no more of it than this. */
const FRAME_WIDTH = 100;
const STACK_PLACE = /\(?((?:file:\/\/)?[^\s()]+):(\d+):\d+\)?$/;

/** The caller of `entry`. Source maps count where Node or the test runner applies them to stacks. */
export function callSite(entry: (...args: never[]) => unknown): CallSite {
  const holder: { stack?: string } = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 1;
  Error.captureStackTrace(holder, entry);
  Error.stackTraceLimit = limit;
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

/** The user's line of a line of the function's text. The text is taken to begin where `kernel()` was called. */
export function userLine(site: CallSite, textLine: number): number {
  return site.line === 0 ? textLine : site.line + textLine - 1;
}

function frame(text: string, error: KernelTextError, shownLine: number): string {
  const { line, column } = placeOf(text, error.start);
  const full = (text.split('\n')[line - 1] ?? '').replaceAll('\t', ' ');
  const width = Math.max(1, Math.min(error.end - error.start, full.length - column + 1));
  const from = full.length <= FRAME_WIDTH ? 0 : Math.max(0, Math.min(column - 1 - 20, full.length - FRAME_WIDTH));
  const shown = full.slice(from, from + FRAME_WIDTH);
  const marks = `${' '.repeat(column - 1 - from)}${'^'.repeat(Math.max(1, Math.min(width, from + FRAME_WIDTH - column + 1)))}`;
  const number = String(shownLine);
  return `  ${number} | ${shown}\n  ${' '.repeat(number.length)} | ${marks}`;
}

/** The error as the user gets it. */
export function toCompileError(error: KernelTextError, kernelName: string, text: string, site: CallSite): CompileError {
  const { line, column } = placeOf(text, error.start);
  const shownLine = userLine(site, line);
  const where = site.file === undefined ? '' : ` near ${site.file}:${shownLine}`;
  const framed = text === '' ? '' : `\n${frame(text, error, shownLine)}`;
  const hint = error.hint === undefined ? '' : `\n  ${error.hint}`;
  const log = `${error.code}: ${error.message}\n  in kernel '${kernelName}'${where}${framed}${hint}`;
  const place = { code: error.code, line: shownLine, column, message: error.message };
  return new CompileError('ERR_MILLRACE_COMPILE', log, log, [site.file === undefined ? place : { ...place, file: site.file }]);
}
