// A piscina pool for the CPU stages of a pipeline.
//
// Tasks are calls of a module's named exports. They get pinned arrays without a copy: `pinned.data` is a typed array over a
// SharedArrayBuffer, which postMessage passes by reference, so the task reads and writes the pages that the device uses.
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as PiscinaModule from 'piscina';
import { ArgumentError, StateError, UnavailableError } from '../core/base/errors.js';

/** Options of `createCpuPool`. Bad values are an ArgumentError of the call. */
export interface CpuPoolOptions {
  /** Default: one for each core that this process may use. */
  readonly threads?: number;
}

/** The part of piscina that pipelines need; a `Piscina` can be used in its place. */
export interface CpuThreads extends AsyncDisposable {
  /** The most threads that the pool runs at once. */
  readonly threads: number;
  /**
   * Calls an export of the module on one of the threads. `task` is the function's argument, `opts.name` the export. Rejects with the
   * error that the function throws, with UnavailableError while the module's file does not exist, and with StateError after `close`.
   */
  run(task: unknown, opts?: { readonly name?: string; readonly signal?: AbortSignal }): Promise<unknown>;
  /** Accepts no further tasks, waits for the accepted ones, then stops the threads. */
  close(): Promise<void>;
}

/**
 * Creates a pool of threads that run the exports of a JavaScript module, given as a path or a `file:` URL. The threads start with the
 * first tasks. Throws ArgumentError when `filename` is neither, and when `threads` is not a positive whole number.
 * @example const pool = createCpuPool('build/stages.js', { threads: 4 });
 */
export function createCpuPool(filename: string | URL, opts: CpuPoolOptions = {}): CpuThreads {
  const { Piscina } = createRequire(import.meta.url)('piscina') as typeof PiscinaModule;
  const path = pathOf(filename);
  const { threads = availableParallelism() } = opts;
  if (!Number.isInteger(threads) || threads < 1) {
    throw badArgument('threads', threads, `The number of threads (${String(threads)}) is not a positive whole number.`, 1);
  }
  const pool = new Piscina({
    // Each task names the module. If it were named here and failed to load, the thread would end and its tasks would never settle.
    minThreads: 0,
    maxThreads: threads,
    // Stages run in bursts; keep a thread between them, with the modules that it loaded.
    idleTimeout: 10_000,
    // With piscina's default an idle thread sleeps outside its event loop: timers and native callbacks of the modules it
    // loaded do not run, and it cannot be stopped cleanly. It would save a few microseconds per task.
    atomics: 'disabled',
  });
  // A thread can fail between tasks, in a timer of the module. The next task gets a new thread.
  pool.on('error', (error: Error) => {
    process.emitWarning(`A thread of the pool for ${path} failed between two tasks: ${error.message}`, {
      type: 'MillraceWarning',
      code: 'ERR_MILLRACE_STATE',
    });
  });
  let isThere = false;
  let closed: Promise<void> | undefined;
  const running: Set<Promise<unknown>> = new Set();
  // Piscina's own close rejects the tasks that wait for a thread.
  const close = (): Promise<void> => (closed ??= Promise.allSettled(running).then(() => pool.close()));
  return {
    threads,
    run: async (task, runOptions) => {
      if (closed !== undefined) throw new StateError('ERR_MILLRACE_STATE', `The pool for ${path} is closed.`);
      if (!isThere) checkThere(path);
      isThere = true;
      const run = pool.run(task, { ...runOptions, filename: path });
      running.add(run);
      try {
        return await run;
      } catch (error) {
        throw missingExport(error, path, runOptions?.name) ?? error;
      } finally {
        running.delete(run);
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function pathOf(filename: unknown): string {
  if (typeof filename === 'string' && !filename.startsWith('file:') && filename !== '') return resolve(filename);
  try {
    return fileURLToPath(filename as string | URL);
  } catch {
    throw badArgument('filename', filename, `The filename (${String(filename)}) is neither a path nor a file: URL.`);
  }
}

/** Piscina's message for a name that the module does not export does not say which name. */
function missingExport(error: unknown, path: string, name: string | undefined): ArgumentError | undefined {
  if (name === undefined || !(error instanceof Error) || !error.message.startsWith('No handler function exported')) return undefined;
  return badArgument('name', name, `${path} exports no function '${name}'.`);
}

function checkThere(path: string): void {
  let reason = 'it is not a file';
  try {
    if (statSync(path).isFile()) return;
  } catch (error) {
    reason = (error as Error).message;
  }
  throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `The module of the pool does not exist: ${path} (${reason}).`, [
    'The threads run JavaScript: give the path of the compiled file.',
  ]);
}

function badArgument(argument: string, value: unknown, message: string, limit?: number): ArgumentError {
  return new ArgumentError('ERR_MILLRACE_ARGUMENT', message, limit === undefined ? { argument, value } : { argument, value, limit });
}
