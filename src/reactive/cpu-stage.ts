// A stage on a pool of CPU threads, as an operator: piscina's, or what `createCpuPool` returns.
import type { OperatorFunction } from 'rxjs';
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { onAbort } from '../core/waits/abort-listeners.js';
import { type Lane, LaneTurn } from './lane.js';
import { observable, rx } from './observe.js';

/** A pool of threads. A Piscina has this structure, and so does the result of `createCpuPool`. */
export interface CpuPool {
  /** Runs the export `name` on a thread with `task` as its argument. Resolves to its result, rejects with what it throws. */
  run(task: unknown, opts?: { readonly name?: string; readonly signal?: AbortSignal }): Promise<unknown>;
  /** The most threads that the pool runs at once; `createCpuPool` sets it. */
  readonly threads?: number | object;
  /** The options of a Piscina. */
  readonly options?: { readonly maxThreads?: number };
}

type TaskName<M extends object> = { [K in keyof M & string]: M[K] extends (arg: never) => unknown ? K : never }[keyof M & string];
type TaskArg<M extends object, K extends TaskName<M>> = M[K] extends (arg: infer A) => unknown ? A : never;
type TaskResult<M extends object, K extends TaskName<M>> = M[K] extends (arg: never) => infer R ? Awaited<R> : never;

/** A pool, typed by the module whose exports its threads run. */
export interface CpuTasks<M extends object> {
  /** The most tasks that run at once: the pool's number of threads, or 1 if the pool has no such property. */
  readonly threads: number;
  /** Calls the export `name` on a thread. Pinned `data` in the argument is not copied. Aborting stops the thread of a task that runs. */
  run<K extends TaskName<M>>(name: K, arg: TaskArg<M, K>, opts?: { readonly signal?: AbortSignal }): Promise<TaskResult<M, K>>;
}

/**
 * Gives a pool the types of the module that its threads run (`import type * as stages`). Throws ArgumentError if `pool` has no method
 * `run`.
 * @example const tasks = cpuTasks<typeof stages>(pool);
 */
export function cpuTasks<M extends object>(pool: CpuPool): CpuTasks<M> {
  if (arguments.length > 1) refuseSurplus('cpuTasks', arguments, 1);
  if (typeof (pool as Partial<CpuPool> | undefined)?.run !== 'function')
    throw badArgument('pool', pool, `The pool (${show(pool)}) has no method run.`);
  return {
    get threads() {
      return typeof pool.threads === 'number' ? pool.threads : (pool.options?.maxThreads ?? 1);
    },
    run: async <K extends TaskName<M>>(name: K, arg: TaskArg<M, K>, opts: { readonly signal?: AbortSignal } = {}) => {
      checkOptionNames(opts, ['signal']);
      return (await pool.run(arg, { ...opts, name })) as TaskResult<M, K>;
    },
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
 * Runs a task of the pool for every value. The Observable errors if a task throws, a thread crashes, the module does not load, or the pool
 * is closed. Unsubscribing aborts the tasks that have not ended.
 * @example frames$.pipe(cpuStage(tasks, 'decode', (frame) => frame.bytes))
 */
export function cpuStage<T, M extends object, K extends TaskName<M>>(
  tasks: CpuTasks<M>,
  name: K,
  arg: (value: T) => TaskArg<M, K>,
  opts: CpuStageOptions = {},
): OperatorFunction<T, TaskResult<M, K>> {
  if (arguments.length > 4) refuseSurplus('cpuStage', arguments, 4);
  if (typeof (tasks as Partial<CpuTasks<M>> | undefined | null)?.run !== 'function')
    throw badArgument('tasks', tasks, `The tasks (${show(tasks)}) are not a result of cpuTasks.`);
  const { ordered = true, lane } = opts;
  const concurrency = checkInteger('concurrency', opts.concurrency ?? tasks.threads, 1);
  const { defer, mergeMap } = rx();
  return (values) =>
    defer(() => {
      // Tasks finish in any order; an ordered result waits for the result before it.
      let before: Promise<unknown> = Promise.resolve();
      return values.pipe(
        mergeMap((value) => {
          const abort = new AbortController();
          const task = runTask(tasks, name, arg(value), abort, lane);
          const result = ordered ? before.then(() => task) : task;
          // The task may fail before its result is awaited.
          task.catch(() => undefined);
          before = result.catch(() => undefined);
          return observable<TaskResult<M, K>>((sink) => {
            result.then(
              (answer) => {
                sink.next(answer);
                sink.complete();
              },
              (error: unknown) => sink.error(error),
            );
            return () => abort.abort();
          });
        }, concurrency),
      );
    });
}

/** Runs one task. The lane's signal aborts it too. */
async function runTask<M extends object, K extends TaskName<M>>(
  tasks: CpuTasks<M>,
  name: K,
  arg: TaskArg<M, K>,
  abort: AbortController,
  lane: Lane | undefined,
): Promise<TaskResult<M, K>> {
  const { signal } = abort;
  if (lane === undefined) return tasks.run(name, arg, { signal });
  if (lane.signal.aborted) abort.abort(lane.signal.reason);
  const stopListening = onAbort(lane.signal, () => abort.abort(lane.signal.reason));
  try {
    const task = tasks.run(name, arg, { signal });
    if (lane instanceof LaneTurn) lane.addTask(task, () => abort.abort());
    return await lane.time(`cpu ${name}`, task);
  } finally {
    stopListening();
  }
}
