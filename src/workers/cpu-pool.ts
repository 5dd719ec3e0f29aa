// A pool of threads for the CPU stages of a pipeline: a queue of its own before threads of piscina.
//
// Tasks are calls of a module's named exports. They get pinned arrays without a copy: `pinned.data` is a typed array over a
// SharedArrayBuffer, which postMessage passes by reference, so the task reads and writes the pages that the device uses.
import { statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { AbortError, StateError, UnavailableError } from '../core/base/errors.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { setImmediate } from '../core/base/timers.js';
import { isAbortSignal, onAbort } from '../core/waits/abort-listeners.js';
import { PoolThread } from './pool-thread.js';

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
   * Calls an export of the module on one of the threads; tasks begin in the order of the calls. `task` is the function's argument,
   * `opts.name` the export. Rejects with what the function throws: the class of built-in errors, DOMExceptions and errors of the library,
   * `code`, `cause` and `stack` stay. Rejects with a DataCloneError if the argument or the result cannot be sent between threads, with the
   * error that ended the thread during the call, with AbortError when `opts.signal` aborts, with UnavailableError while the module's file
   * does not exist, and with StateError after `close`. The end of a thread loses no other task.
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
  if (arguments.length > 2) refuseSurplus('createCpuPool', arguments, 2);
  const path = pathOf(filename);
  checkOptionNames(opts, ['threads']);
  const { threads = availableParallelism() } = opts;
  if (!Number.isInteger(threads) || threads < 1) {
    throw badArgument('threads', threads, `The number of threads (${show(threads)}) is not a positive whole number.`, 1);
  }
  const pool = new Queue(path, threads);
  let isThere = false;
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= pool.close());
  return {
    threads,
    run: async (task, given = {}) => {
      checkOptionNames(given, ['name', 'signal']);
      const { name, signal } = given;
      if (name !== undefined && typeof name !== 'string') throw badArgument('name', name, `The name (${show(name)}) is not a string.`);
      if (closed !== undefined) throw new StateError('ERR_MILLRACE_STATE', `The pool for ${path} is closed.`);
      if (!isThere) checkThere(path);
      isThere = true;
      if (signal !== undefined && !isAbortSignal(signal)) throw badArgument('signal', signal, 'The signal is not an AbortSignal.');
      return pool.run(task, name, signal);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Hands each thread one task at a time. Piscina's own queue is not used: with no thread to spare it waits for the end of a task, which never
 * comes once the thread of that task was stopped or has ended.
 */
class Queue {
  readonly #path: string;
  readonly #threads: PoolThread[] = [];
  readonly #maxThreads: number;
  /** Those that ran a task last are at the end. */
  readonly #idle: PoolThread[] = [];
  /** Calls that wait for a thread. */
  readonly #waiting: Set<(thread: PoolThread) => void> = new Set();
  readonly #running: Set<Promise<unknown>> = new Set();
  /** This turn of the event loop has started a thread. */
  #isStarting = false;

  constructor(path: string, maxThreads: number) {
    this.#path = path;
    this.#maxThreads = maxThreads;
  }

  run(task: unknown, name: string | undefined, signal: AbortSignal | undefined): Promise<unknown> {
    const running = this.#run(task, name, signal);
    this.#running.add(running);
    const remove = (): void => void this.#running.delete(running);
    running.then(remove, remove);
    return running;
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#running);
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  async #run(task: unknown, name: string | undefined, signal: AbortSignal | undefined): Promise<unknown> {
    const thread = await this.#threadFor(signal);
    try {
      return await thread.run({ path: this.#path, name, task }, signal);
    } finally {
      void thread.ended().then(() => this.#give(thread));
    }
  }

  async #threadFor(signal: AbortSignal | undefined): Promise<PoolThread> {
    if (signal?.aborted) throw new AbortError(signal);
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    return new Promise((take, refuse) => {
      const stopListening =
        signal &&
        onAbort(signal, () => {
          this.#waiting.delete(given);
          refuse(new AbortError(signal));
        });
      const given = (thread: PoolThread): void => {
        stopListening?.();
        take(thread);
      };
      this.#waiting.add(given);
      this.#start();
    });
  }

  /** Starts one thread, and the next turns of the event loop the others that calls wait for: each takes it a millisecond. */
  #start(): void {
    if (this.#isStarting || this.#threads.length === this.#maxThreads) return;
    this.#isStarting = true;
    setImmediate(() => {
      this.#isStarting = false;
      if (this.#waiting.size > 0) this.#start();
    });
    const thread = new PoolThread(this.#path);
    this.#threads.push(thread);
    this.#give(thread);
  }

  #give(thread: PoolThread): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#idle.push(thread);
      return;
    }
    this.#waiting.delete(next);
    next(thread);
  }
}

function pathOf(filename: unknown): string {
  if (typeof filename === 'string' && !filename.startsWith('file:') && filename !== '') {
    try {
      return resolve(filename);
    } catch {
      // Without a working directory, no relative path exists.
      return filename;
    }
  }
  try {
    return fileURLToPath(filename as string | URL);
  } catch {
    throw badArgument('filename', filename, `The filename (${show(filename)}) is neither a path nor a file: URL.`);
  }
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
