// The owner's side of a device's worker before a device is open in it.
//
// A worker may fail or end at any moment, also while no promise waits for it: this class listens from the worker's start and
// rejects requests to a worker that has ended.
// Thread: owner.
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { decodeError, DeviceLostError, InternalError, type MillraceError, UnavailableError } from '../core/base/errors.js';
import type { Binding } from '../native/binding.js';
import { checkPackage } from '../native/addon-place.js';
import { RAISE_LIMITS } from '../native/load.js';
import type { Encoder } from '../protocol/encoder.js';
import type { BackendName, BackendReport, NativeDeviceInfo } from '../protocol/reports.js';
import { isOfSystem } from '../toolchain/system/environment-errors.js';
import { warnedOf } from '../toolchain/system/warn-once.js';
import { workerLink } from './control-link.js';
import type { FromWorker, OpenRequest, ToWorker } from './messages.js';
import { WorkerChannel } from './worker-channel.js';

interface Awaited {
  readonly type: FromWorker['type'];
  take(message: FromWorker): void;
  refuse(error: unknown): void;
}

/** A worker that enumerates the devices and then waits for the 'open' message. */
export class DeviceWorkerHandle {
  readonly #binding: Binding;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  #awaited: Awaited | undefined;
  /** Why the worker ended; undefined before that. */
  #ended: unknown;

  /** `worker`: for tests. */
  constructor(binding: Binding, worker: Worker = startWorker()) {
    this.#binding = binding;
    this.#worker = worker;
    worker.on('error', (error) => this.#end(notStarted(error)));
    this.#exited = new Promise((resolve) => {
      worker.once('exit', (code) => {
        const message = `The device's worker ended before the device was open (exit code ${code}).`;
        this.#end(new DeviceLostError('ERR_MILLRACE_LOST', message, 'worker-exit'));
        resolve();
      });
    });
    worker.on('message', this.#receive);
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** The devices that the worker found: its first message. */
  backends(): Promise<readonly BackendReport[]> {
    return this.#next('enumerated', ({ backends }) => backends);
  }

  /** Opens a device in the worker. The returned channel owns the worker from then on. */
  open(backend: BackendName, chosen: NativeDeviceInfo, request: OpenRequest, encoder: Encoder): Promise<WorkerChannel> {
    const { maxPending } = request;
    const opened = this.#next('opened', ({ channel, info, timeline, arena, address }) => {
      this.#worker.off('message', this.#receive);
      const link = workerLink(this.#worker);
      return new WorkerChannel(this.#binding, link, encoder, { id: channel, backend, info, maxPending, timeline, arena, address });
    });
    this.#post({ type: 'open', backend, info: chosen, request });
    return opened;
  }

  async close(): Promise<void> {
    this.#post({ type: 'close' });
    await this.#exited;
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  /** Calls `make` synchronously in the message handler, so that `make` can listen before the next message arrives. */
  #next<T extends FromWorker['type'], R>(type: T, make: (message: Extract<FromWorker, { readonly type: T }>) => R): Promise<R> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      this.#awaited = { type, take: (message) => resolve(make(message as Extract<FromWorker, { readonly type: T }>)), refuse: reject };
    });
  }

  readonly #receive = (message: FromWorker): void => {
    const awaited = this.#awaited;
    this.#awaited = undefined;
    if (message.type === 'openFailed') awaited?.refuse(decodeError(message.error));
    else if (message.type === awaited?.type) awaited.take(message);
    else if (awaited !== undefined) {
      const what = `The device's worker sent the message '${message.type}' instead of '${awaited.type}'.`;
      awaited.refuse(new InternalError('ERR_MILLRACE_INTERNAL', what));
    }
  };

  #end(error: unknown): void {
    this.#ended ??= error;
    this.#awaited?.refuse(error);
    this.#awaited = undefined;
  }
}

const WORKER = new URL('./device-worker.cjs', import.meta.url);
/**
 * `trackUnmanagedFds`: when the worker is terminated between `openSync` and `closeSync`, Node closes the descriptor. It is the default; the
 * toolchain relies on it (decision 0030).
 */
const OPTIONS: WorkerOptions = { name: 'millrace', execArgv: [], trackUnmanagedFds: true, workerData: { millraceWarned: warnedOf } };

function startWorker(): Worker {
  checkPackage();
  try {
    return new Worker(WORKER, OPTIONS);
  } catch (error) {
    throw notStarted(error);
  }
}

/** The error of a worker that the system, or Node for want of something, does not let start. */
export function notStarted(error: unknown, worker = "device's worker"): MillraceError {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  const what = `The ${worker} does not start: ${message}.`;
  const isGone = syscall === 'uv_cwd' || message.endsWith('uv_cwd');
  const isLimit = isGone || isOfSystem(error) || /^ERR_(?:WORKER|MILLRACE_UNAVAILABLE)/.test(code ?? '');
  if (!isLimit) return new InternalError('ERR_MILLRACE_INTERNAL', what, { cause: error });
  const help = isGone ? 'The working directory of the process is gone: call process.chdir() with one that exists.' : RAISE_LIMITS;
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', what, [help], { cause: error });
}
