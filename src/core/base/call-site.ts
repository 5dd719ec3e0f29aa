// The place where user code called the library: the first stack frame outside of it. It is taken for every record of a checked
// stream, so only the frame objects are inspected. The text, with source maps applied, is made once per place.
//
// No stack frame is kept, because V8's frames keep the objects alive on which their methods were called.

/** The most frames of the library above its caller, and their number in launches, fills and copies. A frame costs 0.3 us. */
const DEPTH = 32;
const NEAR = 8;
/** The most places whose text is kept. */
const MOST = 4096;
/** The frames of the library above the last callers: operations have more of them than launches. Less by one with each search, so that both are found at once. */
let reach = NEAR;

export const UNKNOWN = 'unknown';

const library = new URL('../..', import.meta.url).href;
const libraryPath = pathOf(library);
const texts: Map<string, string> = new Map();

interface Place {
  /** The index of the frame. */
  readonly at: number;
  readonly text: string;
}

/** With `node --frozen-intrinsics`, `Error.stackTraceLimit` and `Error.prepareStackTrace` cannot be set. */
const isErrorFrozen = Object.isFrozen(Error);

/** 'file:line:column', or 'unknown'. `near`: frames of the library above most callers; more cost a second search. */
export function callSite(near: number = NEAR): string {
  if (isErrorFrozen) return siteOfText();
  const place = findPlace(Math.max(near, reach)) ?? findPlace(DEPTH);
  if (place === undefined) return UNKNOWN;
  reach = Math.max(place.at + 1, reach - 1);
  const known = texts.get(place.text);
  if (known !== undefined) return known;
  if (texts.size >= MOST) texts.clear();
  const text = written(place);
  texts.set(place.text, text);
  return text;
}

type Prepare = (error: Error, frames: readonly NodeJS.CallSite[]) => unknown;

function findPlace(depth: number): Place | undefined {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.stackTraceLimit = depth;
  Error.prepareStackTrace = pick as Prepare;
  try {
    const holder: { stack?: unknown } = {};
    Error.captureStackTrace(holder, callSite);
    return holder.stack as Place | undefined;
  } finally {
    Error.prepareStackTrace = prepareStackTrace as never;
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** The place in the text of the stack, which has ten frames unless the command line sets another number. */
function siteOfText(): string {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, callSite);
  const places = (holder.stack ?? '').split('\n').map(placeIn);
  return places.find((place) => place !== '' && !place.startsWith('node:') && !place.startsWith(libraryPath)) ?? UNKNOWN;
}

/** The place in a line of a stack, or ''. */
function placeIn(line: string): string {
  return pathOf(/^\s+at (?:.*\(|(?:async )?)([^()]+:\d+:\d+)\)?$/.exec(line)?.[1] ?? '');
}

function pick(_: Error, frames: readonly NodeJS.CallSite[]): Place | undefined {
  for (const [at, frame] of frames.entries()) {
    const file = frame.getFileName();
    if (typeof file !== 'string' || file.startsWith('node:') || file.startsWith(library) || file.startsWith(libraryPath)) continue;
    return { at, text: `${pathOf(file)}:${frame.getLineNumber()}:${frame.getColumnNumber()}` };
  }
  return undefined;
}

/** The place as Node prints the frame, with source maps applied. */
function written({ at, text }: Place): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = DEPTH;
  const holder: { stack?: unknown } = {};
  Error.captureStackTrace(holder, callSite);
  const { stack } = holder;
  Error.stackTraceLimit = stackTraceLimit;
  const frames = typeof stack === 'string' ? stack.split('\n').filter((line) => /^\s+at /.test(line)) : [];
  return placeIn(frames[at] ?? '') || text;
}

function pathOf(file: string): string {
  return file.startsWith('file://') ? decodeURI(file.slice('file://'.length)) : file;
}
