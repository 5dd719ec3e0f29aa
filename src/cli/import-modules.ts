// Imports the modules that define kernels. Where Node does not read their TypeScript as the project does, the project's tsx does: `npx millrace`
// then runs again in a process that starts with tsx, because tsx that is registered later does not load in every release and project.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, type Stats, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { UnavailableError } from '../core/base/errors.js';
import { didYouMean } from '../core/base/nearest-name.js';

const TYPESCRIPT = /\.(?:[cm]?ts|[jt]sx)$/;
const STARTED_WITH_TSX = /(?:^|[/=])tsx(?:\/|$)/;
const INSTALL = 'npm install --save-dev tsx.';
/** Time after which a module that is not imported yet gets a line: imports of kernels take far less. */
const SLOW_MS = 10_000;
/** Time for Node to read the modules once more. */
const PRINT_MS = 30_000;
/** A line of a stack. */
const FRAME = /^\s+at /m;
/** The line of a message that Node writes above the source's. */
const PLACE = /^(?:file:\/\/)?\/.*:\d+$/m;
const TYPESCRIPT_PLACE = /\.[cm]?tsx?:\d+$/m;
/** This package's own files. */
const OWN = new URL('..', import.meta.url);

/**
 * Resolves when all are imported; with an exit code, if another process did the whole command. Rejects with an UnavailableError that tells
 * which module cannot be imported, and why.
 */
export async function importModules(paths: readonly string[]): Promise<number | undefined> {
  for (const path of paths) checkFile(path);
  const tsx = projectTsx(paths);
  const isUnused = tsx !== undefined && !process.execArgv.some((word) => STARTED_WITH_TSX.test(word));
  if (isUnused && paths.some((path) => TYPESCRIPT.test(path))) return runAgainWith(tsx);
  for (const path of paths) {
    try {
      await importOne(path);
    } catch (error) {
      // A JavaScript module that imports TypeScript.
      if (isUnused && typescriptOf(error) !== undefined) return runAgainWith(tsx);
      throw await notImported(path, error, tsx === undefined);
    }
  }
  return undefined;
}

/** Rejects also with what a module throws in a callback, or leaves rejected, before it is imported. */
async function importOne(path: string): Promise<void> {
  const { exitCode: unsettled } = process;
  const ended = (code: number): void => {
    const isUnsettled = code === 0 || code === unsettled;
    const how = isUnsettled ? 'the module ends it, or awaits what never settles' : `the module ends it with code ${code}`;
    process.stderr.write(`${path} was not imported, because the process ended first: ${how}.\n`);
    process.exitCode = 1;
  };
  const slow = setTimeout(() => {
    process.stderr.write(`${path} is not imported yet: it works, or awaits at its top level what has not settled. Ctrl-C ends the wait.\n`);
  }, SLOW_MS).unref();
  let fail!: (error: unknown) => void;
  const failed = new Promise<never>((_resolve, reject) => (fail = reject));
  process.once('exit', ended).once('uncaughtException', fail);
  try {
    await Promise.race([import(pathToFileURL(path).href), failed]);
  } finally {
    clearTimeout(slow);
    process.off('exit', ended).off('uncaughtException', fail);
  }
}

function checkFile(path: string): void {
  let facts: Stats | undefined;
  try {
    facts = statSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw unavailable(`${path} cannot be read: ${(cause as Error).message}.`, [], cause);
  }
  if (facts === undefined) throw unavailable(`There is no file ${path}${didYouMean(basename(path), namesIn(dirname(path)))}.`);
  if (facts.isDirectory()) throw unavailable(`${path} is a folder, not a module.`, ['Name the files that define kernels.']);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The URL of tsx as the modules' project has it. Other runtimes read every kind of TypeScript. */
function projectTsx(paths: readonly string[]): string | undefined {
  if ('bun' in process.versions || 'deno' in process.versions) return undefined;
  for (const folder of [...paths.map(dirname), process.cwd()]) {
    try {
      return pathToFileURL(createRequire(join(folder, 'package.json')).resolve('tsx')).href;
    } catch {
      // It is not installed there.
    }
  }
  return undefined;
}

async function runAgainWith(loader: string): Promise<number> {
  try {
    const child = spawn(process.execPath, [...process.execArgv, '--import', loader, ...process.argv.slice(1)], { stdio: 'inherit' });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    if (code !== null) return code;
    process.stderr.write(`The process that imports the modules with tsx was ended by ${signal}.\n`);
    return 128 + constants.signals[signal!];
  } catch (cause) {
    throw unavailable(`Node with tsx (${loader}) cannot be started: ${(cause as Error).message}.`, [], cause);
  }
}

/** What an error says of TypeScript that this Node has not read: a file, or the reason. */
function typescriptOf(error: unknown): { readonly file?: string } | undefined {
  const { code = '', message = '' } = Object(error) as Partial<NodeJS.ErrnoException>;
  const [, file = ''] = /(?: for | imported from )(.+)$/.exec(message) ?? [];
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION' && TYPESCRIPT.test(file)) return { file };
  // The compiler of TypeScript finds other.ts where a module imports './other.js'.
  return /_TYPE(?:SCRIPT|_STRIPPING)/.test(code) || (code === 'ERR_MODULE_NOT_FOUND' && TYPESCRIPT.test(file)) ? {} : undefined;
}

/** Node's stack and this tool's say nothing about the module. */
async function notImported(path: string, error: unknown, lacksTsx: boolean): Promise<UnavailableError> {
  const typescript = lacksTsx ? typescriptOf(error) : undefined;
  if (typescript?.file !== undefined) {
    const isJsx = typescript.file.endsWith('x');
    const message = `Node ${process.version} does not read ${isJsx ? 'JSX' : 'TypeScript'}, as ${typescript.file} is.`;
    const help = [`Install tsx in the project: ${INSTALL}`, ...(isJsx ? [] : ['Or use Node 22.18 or newer.'])];
    return unavailable(message, help, error);
  }
  const story = await placedStoryOf(path, error);
  const isMaybeTyped = lacksTsx && error instanceof SyntaxError && TYPESCRIPT_PLACE.test(story);
  const help =
    typescript === undefined && !isMaybeTyped ? [] : [`If the compiler of TypeScript accepts the module, install tsx: ${INSTALL}`];
  return unavailable(`${path} cannot be imported:\n${story}`, help, error);
}

/** Of most errors in the syntax of an ES module, only the message that Node ends a process with tells file and line. */
async function placedStoryOf(path: string, error: unknown): Promise<string> {
  const story = storyOf(error);
  if (!(error instanceof SyntaxError) || story.includes('\n') || !('node' in process.versions)) return story;
  const program = `import(${JSON.stringify(pathToFileURL(path).href)})`;
  const child = spawn(process.execPath, [...process.execArgv, '--eval', program], {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: PRINT_MS,
  });
  child.once('error', () => {});
  const printed = await text(child.stderr).catch(() => '');
  const place = printed.search(PLACE);
  return place < 0 || !printed.includes(story, place) ? story : printed.slice(place, printed.indexOf(story, place)) + story;
}

/** The error with those that it names, each with its places in the user's files. */
function storyOf(error: unknown): string {
  if (!(error instanceof Error)) return inspect(error);
  const own = String(error.stack).split('\n');
  const others = [error.cause, ...((error as Partial<AggregateError>).errors ?? [])].filter((one) => one !== undefined);
  return [...own.filter((line) => !FRAME.test(line) || !isForeign(line)), ...others.map((one) => `because of ${storyOf(one)}`)].join('\n');
}

function isForeign(line: string): boolean {
  return line.includes('node:') || line.includes(OWN.href) || line.includes(fileURLToPath(OWN)) || line.includes('/node_modules/tsx/');
}

function unavailable(message: string, help: readonly string[] = [], cause?: unknown): UnavailableError {
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, help, cause === undefined ? {} : { cause });
}
