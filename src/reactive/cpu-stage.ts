// A stage on a pool of CPU threads, as an operator: piscina's, or what `createCpuPool` returns.
import type { Observable, OperatorFunction } from 'rxjs';
import { badArgument, checkInteger, show } from '../core/base/arguments.js';
import type { Lane } from './lane.js';
import { observable, rx } from './observe.js';

/** A pool of threads, by its structure: a Piscina fits, and so does what `createCpuPool` returns. */
export interface CpuPool {
  /** Runs the export `name` on a thread with `task` as its argument. Resolves to its result, rejects with what it throws. */
  run(task: unknown, opts?: { readonly name?: string; readonly signal?: AbortSignal }): Promise<unknown>;
  /** How many threads it has at most, of `createCpuPool`. */
  readonly threads?: number | object;
  /** The options of a Piscina. */
  readonly options?: { readonly maxThreads?: number };
}

type TaskName<M extends object> = { [K in keyof M & string]: M[K] extends (arg: never) => unknown ? K : never }[keyof M & string];
type TaskArg<M extends object, K extends TaskName<M>> = M[K] extends (arg: infer A) => unknown ? A : never;
type TaskResult<M extends object, K extends TaskName<M>> = M[K] extends (arg: never) => infer R ? Awaited<R> : never;

/** A pool, typed by the module whose exports its threads run. */
export interface CpuTasks<M extends object> {
  /** Tasks that run at once at most: the pool's number of threads, 1 when the pool does not say. */
  readonly threads: number;
  /** Calls the export `name` on a thread. Pinned `data` in the argument is not copied. Aborting stops the thread of a task that runs. */
  run<K extends TaskName<M>>(name: K, arg: TaskArg<M, K>, opts?: { readonly signal?: AbortSignal }): Promise<TaskResult<M, K>>;
}

/**
 * Types a pool by the module that its threads run, after `import type * as stages`.
 * @example const tasks = cpuTasks<typeof stages>(pool);
 */
export function cpuTasks<M extends object>(pool: CpuPool): CpuTasks<M> {
  if (typeof (pool as Partial<CpuPool> | undefined)?.run !== 'function')
    throw badArgument('pool', pool, `The pool (${show(pool)}) has no method run.`);
  return {
    get threads() {
      return typeof pool.threads === 'number' ? pool.threads : (pool.options?.maxThreads ?? 1);
    },
    run: async <K extends TaskName<M>>(name: K, arg: TaskArg<M, K>, opts: { readonly signal?: AbortSignal } = {}) =>
      (await pool.run(arg, { ...opts, name })) as TaskResult<M, K>,
  };
}

/** Options of `cpuStage`. */
export interface CpuStageOptions {
  /** Tasks at once. Default: as many as the pool has threads. */
  readonly concurrency?: number;
  /** True (default): results in the order of the values. False: as they are ready. */
  readonly ordered?: boolean;
  /** The lane that the stage runs on: its signal aborts the tasks, and `report()` counts them as 'cpu <name>'. */
  readonly lane?: Lane;
}

/**
 * Runs a task of the pool for every value. A task that throws, a thread that crashes, a module that does not load and a closed pool error
 * the Observable. Unsubscribing aborts the tasks that are not done.
 * @example frames$.pipe(cpuStage(tasks, 'decode', (frame) => frame.bytes))
 */
export function cpuStage<T, M extends object, K extends TaskName<M>>(
  tasks: CpuTasks<M>,
  name: K,
  arg: (value: T) => TaskArg<M, K>,
  opts: CpuStageOptions = {},
): OperatorFunction<T, TaskResult<M, K>> {
  const { ordered = true, lane } = opts;
  const concurrency = checkInteger('concurrency', opts.concurrency ?? tasks.threads, 1);
  const { defer, mergeMap } = rx();
  const run = (value: T): Observable<TaskResult<M, K>> => runTask(tasks, name, arg(value), lane);
  if (!ordered) return mergeMap(run, concurrency);
  return (values) =>
    defer(() => {
      // mergeMap emits as tasks finish; each result waits for the one before it.
      let before: Promise<unknown> = Promise.resolve();
      return values.pipe(
        mergeMap((value) => {
          const { promise, resolve } = gate();
          const turn = before;
          before = promise;
          return observable<TaskResult<M, K>>((sink) => {
            const subscription = run(value).subscribe({
              next: (result) => void turn.then(() => sink.next(result)),
              error: (error: unknown) => void turn.then(() => sink.error(error)),
              complete: () =>
                void turn.then(() => {
                  sink.complete();
                  resolve();
                }),
            });
            return () => subscription.unsubscribe();
          });
        }, concurrency),
      );
    });
}

function gate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

function runTask<M extends object, K extends TaskName<M>>(
  tasks: CpuTasks<M>,
  name: K,
  arg: TaskArg<M, K>,
  lane: Lane | undefined,
): Observable<TaskResult<M, K>> {
  return observable((sink) => {
    const abort = new AbortController();
    const onAbort = (): void => abort.abort(lane?.signal.reason);
    if (lane?.signal.aborted === true) onAbort();
    lane?.signal.addEventListener('abort', onAbort);
    const task = tasks.run(name, arg, { signal: abort.signal });
    (lane ? lane.time(`cpu ${name}`, task) : task)
      .then(
        (result) => {
          sink.next(result);
          sink.complete();
        },
        (error: unknown) => sink.error(error),
      )
      .finally(() => lane?.signal.removeEventListener('abort', onAbort));
    return () => abort.abort();
  });
}
