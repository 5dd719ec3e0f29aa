// The process that hosts a device, as its owner sees it: what a Worker is for a device of this process.
// Thread: owner.
import { type ChildProcess, fork, type ForkOptions } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { fileURLToPath } from 'node:url';
import { checkPackage } from '../native/addon-place.js';
import type { ToWorker } from './messages.js';

/** What hosts a device: a Worker, or a process. It emits 'message', 'error', and 'exit' as its last event. */
export interface HostHandle extends EventEmitter {
  postMessage(message: ToWorker, moved?: readonly ArrayBuffer[]): void;
  ref(): void;
  unref(): void;
  terminate(): unknown;
}

const PROGRAM = fileURLToPath(new URL('./device-process.cjs', import.meta.url));
/** Of the memory that is shared with it; 3 is the way of messages. */
export const SHARED_FILE = 4;

/** How a process of a device ended. */
export interface ProcessEnd {
  readonly pid: number | undefined;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class DeviceProcess extends EventEmitter implements HostHandle {
  readonly #child: ChildProcess;
  /** The process, and the way of its messages: what it sent last arrives after it has ended. */
  #open = 2;
  end: ProcessEnd | undefined = undefined;
  /** Resolves when it has ended. */
  readonly gone: Promise<unknown> = new Promise((resolve) => this.once('exit', resolve));

  /** `file`: the descriptor of the memory that the process is to inherit. */
  constructor(file: number) {
    super();
    checkPackage();
    this.#child = fork(PROGRAM, options(file));
    this.#child.on('message', (message) => this.emit('message', message));
    this.#child.on('error', (error) => {
      this.emit('error', error);
      // A process that did not start has no end.
      if (this.#child.pid === undefined) this.#ended(2);
    });
    this.#child.once('exit', (code, signal) => {
      this.end = { pid: this.#child.pid, code, signal };
      this.#ended(1);
    });
    this.#child.once('disconnect', () => this.#ended(1));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  postMessage(message: ToWorker): void {
    // A process that has ended answers nothing; its end is told apart.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  ref(): void {
    this.#child.ref();
    this.#child.channel?.ref();
  }

  unref(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }

  terminate(): void {
    this.#child.kill('SIGKILL');
  }

  #ended(parts: number): void {
    this.#open -= parts;
    if (this.#open === 0) this.emit('exit', this.end?.code ?? 1);
  }
}

function options(file: number): ForkOptions {
  // Options of the owner's Node are not those of the device's, as with a worker.
  const { NODE_OPTIONS: _, ...env } = process.env;
  return { env, execArgv: [], serialization: 'advanced', stdio: ['ignore', 'inherit', 'inherit', 'ipc', file] };
}
