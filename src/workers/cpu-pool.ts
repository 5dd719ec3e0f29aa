// A piscina pool for the CPU stages of a pipeline, set up so that it goes well with devices.
//
// Tasks are calls of a module's named exports. Pinned arrays go to them without a copy: `pinned.data` is a typed array
// over a SharedArrayBuffer, which a message carries by reference, so the task sees and writes the device's own pages.
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import type * as PiscinaModule from 'piscina';

export interface CpuPoolOptions {
  /** Default: one for each core that this process may use. */
  readonly threads?: number;
}

/** Enough of piscina for pipelines; a Piscina of one's own serves as well. */
export interface CpuThreads extends AsyncDisposable {
  readonly threads: number;
  run(task: unknown, opts?: { readonly name?: string; readonly signal?: AbortSignal }): Promise<unknown>;
  /** Lets what runs finish, then stops the threads. */
  close(): Promise<void>;
}

/** `filename`: the module that the threads run, JavaScript, as a URL or path. Threads start with the first tasks. */
export function createCpuPool(filename: string | URL, opts: CpuPoolOptions = {}): CpuThreads {
  const { Piscina } = createRequire(import.meta.url)('piscina') as typeof PiscinaModule;
  const threads = opts.threads ?? availableParallelism();
  const pool = new Piscina({
    filename: filename instanceof URL ? filename.href : filename,
    minThreads: 0,
    maxThreads: threads,
    // Stages come in bursts; a thread that loaded a codec is worth keeping between them.
    idleTimeout: 10_000,
    // With piscina's default an idle thread sleeps outside its event loop: timers and native callbacks of the modules it
    // loaded do not run, and it cannot be stopped cleanly. The few microseconds it saves are nothing beside a stage.
    atomics: 'disabled',
  });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= pool.close());
  return {
    threads,
    run: (task, runOptions) => pool.run(task, runOptions),
    close,
    [Symbol.asyncDispose]: close,
  };
}
