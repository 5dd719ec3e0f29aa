// A worker thread that shares a device: it runs a part of the program that the process tests run as well.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Device } from 'millrace';

const PROGRAM = new URL('../process/programs/sharing.mjs', import.meta.url);
/** Longer than anything here takes. */
const LIMIT_MS = 30_000;

interface Core {
  readonly channel: { stats(): { readonly streams: number; readonly liveMemory: number } };
  readonly timelines: ReadonlySet<unknown>;
}

export interface Sharer {
  readonly worker: Worker;
  /** The next message, or 'exit'. */
  next(): Promise<unknown>;
  readonly exited: Promise<unknown>;
}

/** `part` names a function of the program. */
export function startSharer(part: string, data: unknown): Sharer {
  const worker = new Worker(PROGRAM, { workerData: { part, data } });
  const messages: unknown[] = [];
  const waiting: ((message: unknown) => void)[] = [];
  const hear = (message: unknown): void => {
    const first = waiting.shift();
    if (first === undefined) messages.push(message);
    else first(message);
  };
  worker.on('message', hear);
  worker.on('error', (error: Error) => hear(error));
  const exited = once(worker, 'exit').then(() => hear('exit'));
  const next = (): Promise<unknown> =>
    messages.length > 0 ? Promise.resolve(messages.shift()) : new Promise((resolve) => waiting.push(resolve));
  return { worker, next, exited };
}

/** Waits until no other thread has a stream or memory of the device; `own`: what this thread has of it. */
export async function untilGivenBack(device: Device, own: { readonly blocks: number }): Promise<string> {
  const { channel, timelines } = (device as unknown as { core: Core }).core;
  const until = performance.now() + LIMIT_MS;
  for (;;) {
    await device.synchronize();
    const { streams, liveMemory } = channel.stats();
    const left = [streams - timelines.size, liveMemory - own.blocks];
    if (left.every((each) => each === 0)) return 'all given back';
    if (performance.now() > until) return `left: ${left[0]} streams, ${left[1]} blocks`;
    await new Promise(setImmediate);
  }
}
