// A piscina pool for the CPU stages of a pipeline, set up so that it goes well with devices.
//
// Tasks are calls of a module's named exports. Pinned arrays go to them without a copy: `pinned.data` is a typed array
// over a SharedArrayBuffer, which a message carries by reference, so the task sees and writes the device's own pages.
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as PiscinaModule from 'piscina';
import { ArgumentError, StateError, UnavailableError } from '../core/base/errors.js';

export interface CpuPoolOptions {
  /** Default: one for each core that this process may use. */
  readonly threads?: number;
}

/** Enough of piscina for pipelines; a Piscina of one's own serves as well. */
export interface CpuThreads extends AsyncDisposable {
  readonly threads: number;
  /**
   * Calls an export of the module on one of the threads. Rejects with what the function throws, with UnavailableError while the
   * module is not there, and with StateError after `close`.
   */
  run(task: unknown, opts?: { readonly name?: string; readonly signal?: AbortSignal }): Promise<unknown>;
  /** Takes no further tasks, lets those that it took finish, then stops the threads. */
  close(): Promise<void>;
}

/**
 * `filename`: the module that the threads run, JavaScript, as a path or a `file:` URL. Threads start with the first tasks. Throws
 * ArgumentError for another filename and for `threads` that is no whole number from 1 on.
 */
export function createCpuPool(filename: string | URL, opts: CpuPoolOptions = {}): CpuThreads {
  const { Piscina } = createRequire(import.meta.url)('piscina') as typeof PiscinaModule;
  const path = pathOf(filename);
  const { threads = availableParallelism() } = opts;
  if (!Number.isInteger(threads) || threads < 1) {
    throw badArgument('threads', threads, `The threads (${String(threads)}) are no whole number from 1 on.`, 1);
  }
  const pool = new Piscina({
    // The module is named by each task: one that is named here and does not load ends the thread, and the tasks never settle.
    minThreads: 0,
    maxThreads: threads,
    // Stages come in bursts; a thread that loaded a codec is worth keeping between them.
    idleTimeout: 10_000,
    // With piscina's default an idle thread sleeps outside its event loop: timers and native callbacks of the modules it
    // loaded do not run, and it cannot be stopped cleanly. The few microseconds it saves are nothing beside a stage.
    atomics: 'disabled',
  });
  // A thread that fails between tasks, in a timer of its module. The next task gets another thread.
  pool.on('error', (error: Error) => {
    process.emitWarning(`A thread of the pool for ${path} failed outside of a task: ${error.message}`, {
      type: 'MillraceWarning',
      code: 'ERR_MILLRACE_STATE',
    });
  });
  let isThere = false;
  let closed: Promise<void> | undefined;
  const running: Set<Promise<unknown>> = new Set();
  // On its own piscina rejects what waits for a thread.
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

function checkThere(path: string): void {
  let reason = 'it is no file';
  try {
    if (statSync(path).isFile()) return;
  } catch (error) {
    reason = (error as Error).message;
  }
  throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `The module of the pool is not there: ${path} (${reason}).`, [
    'Threads run JavaScript: name the built file.',
  ]);
}

function badArgument(argument: string, value: unknown, message: string, limit?: number): ArgumentError {
  return new ArgumentError('ERR_MILLRACE_ARGUMENT', message, limit === undefined ? { argument, value } : { argument, value, limit });
}
