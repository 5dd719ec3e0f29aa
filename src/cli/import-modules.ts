// Imports the modules that define kernels. Where Node does not read their TypeScript as the project does, the project's tsx does: `npx millrace`
// then runs again in a process that starts with tsx, because tsx that is registered later does not load in every release and project.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, type Stats, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { UnavailableError } from '../core/base/errors.js';
import { didYouMean } from '../core/base/nearest-name.js';

const TYPESCRIPT = /\.[cm]?tsx?$/;
const STARTED_WITH_TSX = /(?:^|[/=])tsx(?:\/|$)/;
const INSTALL = 'npm install --save-dev tsx.';
/** Node's exit code if nothing is left that a top-level await could wait for. */
const UNSETTLED = 13;
/** A line of a stack. */
const FRAME = /^\s+at /m;
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
    const ended = (code: number): void => {
      if (code !== 0 && code !== UNSETTLED) return;
      process.stderr.write(
        `${path} was not imported, because the process ended first: the module ends it, or awaits what never settles.\n`,
      );
      process.exitCode = 1;
    };
    process.once('exit', ended);
    try {
      await import(pathToFileURL(path).href);
    } catch (error) {
      // A JavaScript module that imports TypeScript.
      if (isUnused && typescriptOf(error) !== undefined) return runAgainWith(tsx);
      throw await notImported(path, error, tsx === undefined);
    } finally {
      process.off('exit', ended);
    }
  }
  return undefined;
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
    return code ?? 128 + constants.signals[signal!];
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

/** Node's stack and this tool's say nothing about the module. Never resolves for an error whose place only Node can print: it ends the process. */
async function notImported(path: string, error: unknown, lacksTsx: boolean): Promise<UnavailableError> {
  const typescript = lacksTsx ? typescriptOf(error) : undefined;
  if (typescript?.file !== undefined) {
    const message = `Node ${process.version} does not read TypeScript, as ${typescript.file} is.`;
    return unavailable(message, [`Install tsx in the project: ${INSTALL}`, 'Or use Node 22.18 or newer.'], error);
  }
  const story = storyOf(error);
  if (error instanceof SyntaxError && !FRAME.test(story)) {
    process.stderr.write(`${path} cannot be imported:\n`);
    error.stack = story;
    setImmediate(() => {
      throw error;
    });
    await new Promise<never>(() => {});
  }
  const help = typescript === undefined ? [] : [`If the compiler of TypeScript accepts the module, install tsx: ${INSTALL}`];
  return unavailable(`${path} cannot be imported:\n${story}`, help, error);
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
