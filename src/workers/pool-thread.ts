// One thread of a CPU pool: a piscina of at most one thread, which starts another thread when its thread has ended.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, receiveMessageOnPort, type Transferable, type Worker } from 'node:worker_threads';
import type * as PiscinaModule from 'piscina';
import { AbortError, ArgumentError, UnavailableError } from '../core/base/errors.js';
import { clearTimeout, setTimeout } from '../core/base/timers.js';
import { onAbort } from '../core/waits/abort-listeners.js';
import { checkPackage } from '../native/addon-place.js';
import { decodeThrow, moved, type TaskAnswer, type TaskCall } from './task-messages.js';

/** How often a task is given to a thread that ends before the task begins. */
const MAX_ATTEMPTS = 3;
/** Stages run in bursts: a thread stays between them, with the modules that it loaded. */
const IDLE_MS = 10_000;
const WORKER = fileURLToPath(new URL('./cpu-task.cjs', import.meta.url));

/** A package of its own, also in a program that a bundler made: it starts its threads from a file. */
function loadPiscina(): typeof PiscinaModule {
  checkPackage();
  try {
    return createRequire(import.meta.url)('piscina') as typeof PiscinaModule;
  } catch (cause) {
    const help = ['Install it beside millrace: npm install piscina@5'];
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', 'CPU pools need the package piscina, which cannot be loaded.', help, { cause });
  }
}

export interface PoolCall {
  readonly path: string;
  readonly name: string | undefined;
  readonly task: unknown;
}

/** A task that was given to piscina. */
interface Attempt {
  /** Takes the task back: without a thread, piscina keeps it forever. */
  readonly stop: AbortController;
  readonly begun: Int32Array<SharedArrayBuffer>;
  /** Its thread ended. */
  isLost: boolean;
  /** Why its thread ended, as far as piscina says. */
  failure?: unknown;
}

export class PoolThread {
  readonly #path: string;
  /** While it has a thread or a call. */
  #piscina: PiscinaModule.Piscina | undefined;
  #idle: NodeJS.Timeout | undefined;
  #attempt: Attempt | undefined;
  /** The thread of the last call. */
  #worker: Worker | undefined;
  /** The last thread that has the other end of `answers`. */
  #connected: Worker | undefined;
  #answers: MessagePort | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  #start(): PiscinaModule.Piscina {
    const { Piscina } = loadPiscina();
    const piscina = new Piscina({
      filename: WORKER,
      name: 'runTask',
      minThreads: 0,
      maxThreads: 1,
      // Piscina's timer is the global one, which fake timers of tests replace.
      idleTimeout: Infinity,
      // With piscina's default an idle thread sleeps outside its event loop: timers and native callbacks of the modules it
      // loaded do not run, and it cannot be stopped cleanly. It would save a few microseconds per task.
      atomics: 'disabled',
      recordTiming: false,
    });
    piscina.on('workerDestroy', () => {
      const attempt = this.#attempt;
      if (attempt === undefined || piscina !== this.#piscina) return;
      attempt.isLost = true;
      // Piscina first rejects what it gave to the thread, in this turn.
      void Promise.resolve().then(() => attempt.stop.abort(attempt.failure ?? this.#endsFirst()));
    });
    // A thread can fail between tasks, in a timer of the module. The next task gets a new thread.
    piscina.on('error', (error: unknown) => {
      if (this.#attempt === undefined || piscina !== this.#piscina) this.#warn(error);
      else this.#attempt.failure = error;
    });
    return piscina;
  }

  /** Runs a call while no other one runs. */
  async run(call: PoolCall, signal: AbortSignal | undefined): Promise<unknown> {
    clearTimeout(this.#idle);
    try {
      return await this.#run(call, signal);
    } finally {
      this.#idle = setTimeout(() => void this.#stop(), IDLE_MS).unref();
    }
  }

  async #run(call: PoolCall, signal: AbortSignal | undefined): Promise<unknown> {
    const { value, transferList } = moved(call.task);
    const taken = { ...call, task: value };
    for (let attempts = 1; ; attempts++) {
      const isLast = attempts === MAX_ATTEMPTS || transferList.length > 0;
      const answer = await this.#try(taken, transferList, signal, isLast);
      if (answer !== undefined) return resultOf(answer, call);
      await this.ended();
    }
  }

  /** Resolves to nothing if the thread ended before the call began, unless it is the last attempt. */
  async #try(
    call: PoolCall,
    transferList: readonly Transferable[],
    signal: AbortSignal | undefined,
    isLast: boolean,
  ): Promise<TaskAnswer | undefined> {
    const attempt: Attempt = { stop: new AbortController(), begun: new Int32Array(new SharedArrayBuffer(4)), isLost: false };
    const { begun, stop } = attempt;
    const stopListening = signal && onAbort(signal, () => stop.abort());
    this.#attempt = attempt;
    try {
      await this.#post(call, transferList, attempt);
      // The thread posted its answer before piscina's.
      return this.#answer();
    } catch (error) {
      if (signal?.aborted) {
        // Until then the thread may write to memory that the caller shares with it.
        await this.ended();
        throw new AbortError(signal);
      }
      const isTakenBack = stop.signal.aborted && (error as Error | null)?.cause === stop.signal.reason;
      // If the start of a thread throws, the task is in piscina's queue.
      stop.abort();
      // A thread may end right after its answer.
      const answer = this.#answer();
      if (answer === undefined && (isLast || !attempt.isLost || begun[0] === 1)) throw isTakenBack ? stop.signal.reason : error;
      if (!isTakenBack) this.#warn(error);
      return answer;
    } finally {
      stopListening?.();
      this.#attempt = undefined;
      if (begun[0] === 1) this.#connected = this.#worker;
    }
  }

  #post({ path, name = 'default', task }: PoolCall, transferList: readonly Transferable[], { begun, stop }: Attempt): Promise<void> {
    let channel: MessageChannel | undefined;
    const piscina = (this.#piscina ??= this.#start());
    if (this.#connected === undefined || piscina.threads[0] !== this.#connected) {
      channel = new MessageChannel();
      this.#answers?.close();
      this.#answers = channel.port1;
    }
    const call: TaskCall = { path, name, task, begun, answers: channel?.port2 };
    const list = channel === undefined ? [...transferList] : [...transferList, channel.port2];
    const run = piscina.run(call, { transferList: list, signal: stop.signal });
    [this.#worker] = piscina.threads;
    return run;
  }

  #answer(): TaskAnswer | undefined {
    return this.#answers && (receiveMessageOnPort(this.#answers)?.message as TaskAnswer | undefined);
  }

  /** Resolves once no ended thread uses memory of its task. */
  async ended(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined || this.#piscina?.threads.includes(worker) === true || worker.threadId === -1) return;
    worker.ref();
    await new Promise((resolve) => {
      worker.once('exit', resolve);
    });
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#stop();
    await this.ended();
  }

  async #stop(): Promise<void> {
    const piscina = this.#piscina;
    this.#piscina = undefined;
    this.#answers?.close();
    await piscina?.destroy();
  }

  #endsFirst(): UnavailableError {
    const message = `The threads of the pool for ${this.#path} end before they run a task.`;
    return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, ['Modules that they load first (--import, --require) may end them.']);
  }

  #warn(error: unknown): void {
    process.emitWarning(`A thread of the pool for ${this.#path} failed between two tasks: ${(error as Error).message}`, {
      type: 'MillraceWarning',
      code: 'ERR_MILLRACE_STATE',
    });
  }
}

function resultOf(answer: TaskAnswer, { path, name = 'default' }: PoolCall): unknown {
  if (answer.kind === 'result') return answer.value;
  if (answer.kind === 'thrown') throw decodeThrow(answer.thrown);
  throw new ArgumentError('ERR_MILLRACE_ARGUMENT', `${path} exports no function '${name}'.`, { argument: 'name', value: name });
}
