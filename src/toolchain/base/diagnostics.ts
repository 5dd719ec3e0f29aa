// Parses compiler output into diagnostics that point into the user's source.
import type { BuildFacts, BuildSpec } from '../../core/channel/build-spec.js';
import { CompileError, type CompilerDiagnostic } from '../../core/base/errors.js';
import { readableLog } from './readable-log.js';
import { locate } from './source-locations.js';

/** The file name of the source in compiler output. */
export const SOURCE_NAME = 'kernel.cu';

/** g++ and clang++: `file:line:column: error: message`. */
const GNU = /^(.+?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$/;
/** nvcc and NVRTC: `file(line): error: message`, followed by the line and a caret under the column. */
const EDG = /^(.+?)\((\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (.*)$/;
/** The position in the user's source that made a header fail. */
const INSTANTIATED = /^(.+?):(\d+):(\d+):\s+(?:required from here|note: in instantiation of .* requested here)/;
const LINKER = /^(?:.*\bld(?:\.\w+)?: )?.*(undefined (?:reference to|symbol:?) .*)$/;

/** The source and a line of it: `kernel.cu:3`, `/tmp/a/kernel.cu(3)`; and the source alone. */
const PLACE = /(?<![^\s"])(?:\/[^\s"():]*\/)?kernel\.cu([:(])(\d+)(?::(\d+))?(?=[:)])/g;
const FILE = /(?<![^\s"])(?:\/[^\s"():]*\/)?kernel\.cu(?=[:"])/g;

/** What is compiled behind the source: its kernels by their names, and checks. NVRTC's name is the last. */
const GENERATED = /^(?:exports|parameters|__nv_name_map)$/;
const GENERATED_PLACE = /^(?:exports|parameters|__nv_name_map)(?::\d+(?::\d+)?:|\(\d+\):|:)/gm;

/** The errors in a compiler's output. Lines refer to the compiled source, not yet to the user's file. */
export function parseLog(log: string): CompilerDiagnostic[] {
  const found: CompilerDiagnostic[] = [];
  const lines = log.split(/\r?\n/);
  let requiredFrom: { line: number; column: number } | undefined;
  for (const [i, text] of lines.entries()) {
    const from = INSTANTIATED.exec(text);
    if (from && isText(from[1]!)) requiredFrom = { line: Number(from[2]), column: Number(from[3]) };
    const gnu = GNU.exec(text);
    const edg = gnu ? null : EDG.exec(text);
    const match = gnu ?? edg;
    const linker = match ? null : LINKER.exec(text);
    if (linker) found.push({ code: 'K702', line: 1, column: 1, message: linker[1]! });
    if (!match) continue;
    const file = match[1]!;
    const message = (gnu ? gnu[4] : edg![3])!;
    if (GENERATED.test(file)) {
      found.push({ code: 'K702', line: 1, column: 1, message });
    } else if (isText(file)) {
      const column = gnu ? Number(gnu[3] ?? 1) : caretColumn(lines, i);
      found.push({ code: 'K702', line: Number(match[2]), column, message });
    } else if (requiredFrom) {
      found.push({ code: 'K702', ...requiredFrom, message });
    } else {
      found.push({ code: 'K702', file, line: Number(match[2]), column: Number(gnu?.[3] ?? 1), message });
    }
    requiredFrom = undefined;
  }
  return found;
}

function isText(file: string): boolean {
  return file === SOURCE_NAME || file.endsWith(`/${SOURCE_NAME}`);
}

/** nvcc indents the quoted line by two spaces. */
function caretColumn(lines: readonly string[], at: number): number {
  for (const line of lines.slice(at + 1, at + 4)) {
    const caret = /^(\s*)\^/.exec(line);
    if (caret) return Math.max(1, caret[1]!.length - 1);
  }
  return 1;
}

/** Maps lines of the source to the user's file. A generated line counts as the last mapped line before it. */
export function mapDiagnostics(spec: BuildSpec, found: readonly CompilerDiagnostic[]): CompilerDiagnostic[] {
  return found.map((one) => {
    if (one.file !== undefined) return one;
    const { line, column } = one;
    return { ...one, file: userFile(spec, line), line: userLine(spec, line), column: columnIn(spec, line, column) };
  });
}

/** The column in a line of the source. Checks that the compiler reads after the source are said to be on a line of it, and begin there. */
function columnIn({ source }: BuildSpec, line: number, column: number): number {
  const text = source.split('\n')[line - 1];
  return text !== undefined && column > text.length + 1 ? 1 : column;
}

function userFile({ mapping: { file, of, files } }: BuildSpec, line: number): string {
  return files?.[(of?.[line - 1] ?? 0) - 1] ?? file;
}

function userLine(spec: BuildSpec, line: number): number {
  const { lines } = spec.mapping;
  if (lines.length === 0) return line;
  for (let i = Math.min(line, lines.length) - 1; i >= 0; i--) {
    if (lines[i]! > 0) return lines[i]!;
  }
  return lines.find((candidate) => candidate > 0) ?? line;
}

/** A compiler's output with the positions of the user's file. */
function inUsersFile(spec: BuildSpec, log: string): string {
  return log
    .replace(PLACE, (_place, open: string, line: string, column?: string) => {
      const place = `${userFile(spec, Number(line))}${open}${userLine(spec, Number(line))}`;
      return column === undefined ? place : `${place}:${columnIn(spec, Number(line), Number(column))}`;
    })
    .replace(FILE, spec.mapping.file)
    .replace(GENERATED_PLACE, `${spec.mapping.file}:`);
}

/** A source line with a caret under the column, numbered as in the user's file. */
export function codeFrame(spec: BuildSpec, line: number, column: number): string {
  const text = spec.source.split('\n')[line - 1];
  if (text === undefined || text.trim() === '') return '';
  const number = String(userLine(spec, line));
  const gutter = ' '.repeat(number.length);
  // Tabs are kept, so that the caret lines up.
  const indent = text.slice(0, column - 1).replace(/[^\t]/g, ' ');
  return `\n  ${number} | ${text.trimEnd()}\n  ${gutter} | ${indent}^`;
}

/** A CompileError that shows its first diagnostic in the user's source. `found` has lines of the compiled source. */
export function compileError(given: BuildSpec, summary: string, found: readonly CompilerDiagnostic[], log = ''): CompileError {
  const spec: BuildSpec = { ...given, mapping: locate(given.original ?? given.source, given.mapping) };
  const diagnostics = mapDiagnostics(spec, found);
  const [first] = diagnostics;
  const code: string = first?.code ?? 'K702';
  let message = `${code}: ${summary}`;
  if (first) {
    message += `\n  at ${first.file}:${first.line}:${first.column}`;
    if (found[0]!.file === undefined) message += codeFrame(spec, found[0]!.line, first.column);
    if (found.length > 1) message += `\n  (${found.length - 1} more ${found.length === 2 ? 'error' : 'errors'})`;
  }
  return new CompileError('ERR_MILLRACE_COMPILE', message, inUsersFile(spec, log), diagnostics);
}

/** The subject of messages about a build. */
export function titleOf({ name, isModule }: BuildFacts): string {
  return isModule ? `The module of kernels '${name}'` : `Kernel '${name}'`;
}

/** Builds K702 from a compiler's output. */
export function rejectedBy(compiler: string, spec: BuildSpec, output: string): CompileError {
  const log = readableLog(output);
  const found = parseLog(log);
  const said = found[0]?.message ?? log.split('\n').find((line) => line.trim() !== '') ?? 'it gave no reason';
  const sentence = /[.!?]$/.test(said) ? said : `${said}.`;
  return compileError(spec, `${titleOf(spec)} does not compile with ${compiler}: ${sentence}`, found, log);
}

/** Messages of compilers that ran out of a resource, or whose child process was killed. */
const OF_THE_MACHINE =
  /(?:Killed|Terminated|Hangup|CPU time limit exceeded) signal terminated program|unable to execute command: (?:Killed|Terminated)|[Oo]ut of memory|memory exhausted|Cannot allocate memory|No space left on device|Disk quota exceeded|Too many open files|Resource temporarily unavailable|Read-only file system|Input\/output error|Stale file handle|cannot execute|cannot find '(?:as|ld)'|error trying to exec|unrecognized command[- ]line option '-std=/;

/** The line of the log that gives a reason outside the source; undefined when the log reports an error in the source, or no known reason. */
export function machineFault(log: string): string | undefined {
  if (parseLog(log).some(({ file }) => file === undefined)) return undefined;
  return log
    .split('\n')
    .find((line) => OF_THE_MACHINE.test(line))
    ?.trim();
}

/** Builds K704. */
export function timedOut(compiler: string, spec: BuildSpec, timeoutMs: number): CompileError {
  const message = `${titleOf(spec)} did not compile with ${compiler} within ${timeoutMs / 1000} s, so the compiler was stopped.`;
  return compileError(spec, message, [{ code: 'K704', line: 1, column: 1, message }]);
}

/** `file:line` in the user's file of a line of the compiled source. */
export function placeInFile(given: BuildSpec, line: number): string {
  const spec: BuildSpec = { ...given, mapping: locate(given.original ?? given.source, given.mapping) };
  return `${userFile(spec, line)}:${userLine(spec, line)}`;
}
