// How a thread reaches what controls a device: the thread that opened it by the Worker or the process itself, a thread that shares
// it by a MessagePort of its own.
// Thread: owner.
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { HostHandle } from './device-process-handle.js';
import type { FromWorker, ToWorker } from './messages.js';

export interface ControlLink {
  /** Another thread opened the device and closes it. */
  readonly isShared: boolean;
  post(message: ToWorker, moved: readonly ArrayBuffer[]): void;
  /** Keeps this thread's loop alive, or lets it go. */
  ref(): void;
  unref(): void;
  /** `ended` is called once, when nothing answers any more. */
  listen(receive: (message: FromWorker) => void, failed: (error: unknown) => void, ended: () => void): void;
  /** Messages that have arrived and were not read yet. */
  waiting(): Iterable<FromWorker>;
  /** Gives up what is at the other end. */
  stop(): void;
}

export function workerLink(worker: HostHandle): ControlLink {
  return {
    isShared: false,
    post: (message, moved) => worker.postMessage(message, moved),
    ref: () => worker.ref(),
    unref: () => worker.unref(),
    listen: (receive, failed, ended) => {
      worker.on('message', receive);
      worker.on('error', failed);
      worker.once('exit', ended);
    },
    waiting: () => [],
    stop: () => void worker.terminate(),
  };
}

export function portLink(port: MessagePort): ControlLink {
  return {
    isShared: true,
    post: (message, moved) => port.postMessage(message, moved),
    ref: () => port.ref(),
    unref: () => port.unref(),
    listen: (receive, _failed, ended) => {
      port.on('message', receive);
      port.once('close', ended);
    },
    *waiting() {
      for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) yield next.message as FromWorker;
    },
    stop: () => port.close(),
  };
}
