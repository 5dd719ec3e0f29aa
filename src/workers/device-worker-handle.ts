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
import { DeviceProcess, type HostHandle, SHARED_FILE } from './device-process-handle.js';
import { ARENA_BYTES, freshPages, type Pages } from './fresh-pages.js';
import type { FromWorker, OpenRequest, ToWorker } from './messages.js';
import { ProcessChannel } from './process-channel.js';
import { type Opened, WorkerChannel } from './worker-channel.js';

type Make = (opened: Opened) => WorkerChannel;

interface Awaited {
  readonly type: FromWorker['type'];
  take(message: FromWorker): void;
  refuse(error: unknown): void;
}

/** A worker that enumerates the devices and then waits for the 'open' message. */
export class DeviceWorkerHandle {
  readonly #binding: Binding;
  readonly #worker: HostHandle;
  readonly #exited: Promise<void>;
  #awaited: Awaited | undefined;
  /** Why the worker ended; undefined before that. */
  #ended: unknown;

  /** `worker`: for tests. */
  constructor(binding: Binding, worker: HostHandle = startWorker()) {
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
    const make = (opened: Opened): WorkerChannel => new WorkerChannel(this.#binding, workerLink(this.#worker), encoder, opened);
    return this.#open({ type: 'open', backend, info: chosen, request }, {}, make);
  }

  /** Opens a device in a process of its own. */
  static async openApart(
    binding: Binding,
    backend: BackendName,
    chosen: NativeDeviceInfo,
    request: OpenRequest,
    encoder: Encoder,
  ): Promise<WorkerChannel> {
    const { views, ...pages } = freshPages();
    const { channel, file } = binding.remoteOpen(...views, ARENA_BYTES, request.maxPending);
    try {
      const child = startProcess(file);
      const handle = new DeviceWorkerHandle(binding, child);
      await handle.backends();
      binding.remoteWatch(channel, child.pid as number, request.launchTimeoutMs);
      const remote = { file: SHARED_FILE, channel };
      const make = (opened: Opened): WorkerChannel => new ProcessChannel(binding, child, encoder, opened, request.launchTimeoutMs);
      return await handle.#open({ type: 'open', backend, info: chosen, request, remote }, pages, make);
    } catch (error) {
      binding.remoteEnd(channel);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#post({ type: 'close' });
    await this.#exited;
  }

  #open(message: Extract<ToWorker, { readonly type: 'open' }>, own: Partial<Pages>, make: Make): Promise<WorkerChannel> {
    const { backend, request } = message;
    const opened = this.#next('opened', ({ channel: id, info, timeline, arena, address }) => {
      this.#worker.off('message', this.#receive);
      return make({ id, backend, info, maxPending: request.maxPending, timeline, arena, address, ...own });
    });
    this.#post(message);
    return opened;
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

function startProcess(file: number): DeviceProcess {
  try {
    return new DeviceProcess(file);
  } catch (error) {
    throw notStarted(error, "device's process");
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
