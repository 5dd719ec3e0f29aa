// Finds the script that contains a function, and the position in it. Runs on the error path only: it opens and closes an inspector session
// of this thread within the call, which takes 2 to 70 ms. The session is separate from an attached debugger's, so the debugger keeps its
// breakpoints. Any failure (no inspector in this build of Node, a permission, a function of another realm) makes the result undefined.
import type { Debugger, Runtime, Session } from 'node:inspector';

export interface FunctionScript {
  readonly url: string;
  /** URL of the script's source map; empty without one. */
  readonly mapUrl: string;
  readonly source: string;
  /** Offset of the function's source in `source`. */
  readonly start: number;
  /** 0-based position of `source` in its file, for a script inside an HTML page. */
  readonly firstLine: number;
  readonly firstColumn: number;
}

/** 0-based. */
export interface ScriptPoint {
  readonly line: number;
  readonly column: number;
}

/** Line terminators of JavaScript and of source maps. */
export const LINE_END: RegExp = /\r\n|[\n\r\u2028\u2029]/;

/** Global property that hands the function to the inspector's expression. */
const HANDED_OVER: unique symbol = Symbol.for('millrace.located function') as never;

/** The script that contains the function; undefined when it cannot be found. */
export function scriptOf(body: object, text: string): FunctionScript | undefined {
  let session: Session | undefined;
  try {
    const inspector = process.getBuiltinModule('node:inspector');
    session = new inspector.Session();
    session.connect();
    return read(session, body, text);
  } catch {
    return undefined;
  } finally {
    session?.disconnect();
  }
}

function read(session: Session, body: object, text: string): FunctionScript | undefined {
  const location = locationOf(session, body);
  if (!location) return undefined;
  let script: Debugger.ScriptParsedEventDataType | undefined;
  session.on('Debugger.scriptParsed', ({ params }) => {
    if (params.scriptId === location.scriptId) script = params;
  });
  // Reports every script before it returns.
  ask(session, 'Debugger.enable', {});
  const answer = ask<Debugger.GetScriptSourceReturnType>(session, 'Debugger.getScriptSource', { scriptId: location.scriptId });
  if (!script) return undefined;
  const firstLine = script.startLine;
  const firstColumn = script.startColumn;
  const line = location.lineNumber - firstLine;
  const place = offsetOf(answer.scriptSource, line, (location.columnNumber ?? 0) - (line === 0 ? firstColumn : 0));
  // V8 gives the position of the parameter list; the function's source may begin before it, with a name or `function`.
  const start = answer.scriptSource.lastIndexOf(text, place);
  if (start < 0 || start + text.length <= place) return undefined;
  return { url: script.url, mapUrl: script.sourceMapURL ?? '', source: answer.scriptSource, start, firstLine, firstColumn };
}

function locationOf(session: Session, body: object): Debugger.Location | undefined {
  const world = globalThis as { [HANDED_OVER]?: object };
  let found: Runtime.EvaluateReturnType;
  world[HANDED_OVER] = body;
  try {
    const expression = `globalThis[Symbol.for(${JSON.stringify(HANDED_OVER.description)})]`;
    found = ask(session, 'Runtime.evaluate', { expression, silent: true });
  } finally {
    delete world[HANDED_OVER];
  }
  const { objectId } = found.result;
  if (objectId === undefined) return undefined;
  const { internalProperties } = ask<Runtime.GetPropertiesReturnType>(session, 'Runtime.getProperties', { objectId, ownProperties: true });
  const value: unknown = internalProperties?.find(({ name }) => name === '[[FunctionLocation]]')?.value?.value;
  return value as Debugger.Location | undefined;
}

/** Sends a command; a session of this thread answers before `post` returns. */
function ask<T>(session: Session, method: string, params: object): T {
  let failure: Error | null = null;
  let answer: unknown;
  session.post(method, params, (error, result) => {
    failure = error;
    answer = result;
  });
  if (failure !== null) throw new Error(`The inspector refuses ${method}.`, { cause: failure });
  return answer as T;
}

function offsetOf(source: string, line: number, column: number): number {
  const ends = new RegExp(LINE_END, 'g');
  let start = 0;
  for (let n = 0; n < line && ends.exec(source); n++) start = ends.lastIndex;
  return start + column;
}

/** The position of an offset in the script's source, in lines and columns as V8 and source maps count them. */
export function pointOf(script: FunctionScript, offset: number): ScriptPoint {
  const before = script.source.slice(0, offset).split(LINE_END);
  const line = before.length - 1;
  return { line: line + script.firstLine, column: before[line]!.length + (line === 0 ? script.firstColumn : 0) };
}

/** A line of the script, numbered as in `pointOf`. */
export function lineOf(script: FunctionScript, line: number): string {
  return script.source.split(LINE_END)[line - script.firstLine] ?? '';
}
