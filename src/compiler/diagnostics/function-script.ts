// Where the engine keeps a function's text: which script, and where in it. On the error path only: it takes an inspector
// session of this thread, opened and closed within the call, and 2 to 70 ms.
//
// A session is one of any number: a debugger that is attached keeps its own, with its own breakpoints. Whatever fails on
// the way (no inspector in this build of Node, a permission, a function of another realm) is an answer: not known.
import type { Debugger, Runtime, Session } from 'node:inspector';

export interface FunctionScript {
  readonly url: string;
  /** Of its source map; empty without one. */
  readonly mapUrl: string;
  readonly source: string;
  /** Offset of the function's text in `source`. */
  readonly start: number;
  /** 0-based: where the source begins for who counts lines and columns, as a script inside a page does. */
  readonly firstLine: number;
  readonly firstColumn: number;
}

/** 0-based. */
export interface ScriptPoint {
  readonly line: number;
  readonly column: number;
}

/** What the engine and the makers of source maps take for the end of a line. */
export const LINE_END: RegExp = /\r\n|[\n\r\u2028\u2029]/;

/** The function in hand, for the moment in which the inspector asks for it. */
const HANDED_OVER: unique symbol = Symbol.for('millrace.located function') as never;

/** The script of a function whose text is `text`; undefined when it cannot be told. */
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
  // Tells of every script there is before it returns.
  ask(session, 'Debugger.enable', {});
  const answer = ask<Debugger.GetScriptSourceReturnType>(session, 'Debugger.getScriptSource', { scriptId: location.scriptId });
  if (!script) return undefined;
  const firstLine = script.startLine;
  const firstColumn = script.startColumn;
  const line = location.lineNumber - firstLine;
  const place = offsetOf(answer.scriptSource, line, (location.columnNumber ?? 0) - (line === 0 ? firstColumn : 0));
  // The engine names the parameter list; the text may begin before it, with a name or `function`.
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

/** A session of this thread answers before `post` returns. */
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

/** The point of an offset in the script's source, as the engine and source maps count. */
export function pointOf(script: FunctionScript, offset: number): ScriptPoint {
  const before = script.source.slice(0, offset).split(LINE_END);
  const line = before.length - 1;
  return { line: line + script.firstLine, column: before[line]!.length + (line === 0 ? script.firstColumn : 0) };
}

/** The text of a line of the script, 0-based as `pointOf` counts. */
export function lineOf(script: FunctionScript, line: number): string {
  return script.source.split(LINE_END)[line - script.firstLine] ?? '';
}
