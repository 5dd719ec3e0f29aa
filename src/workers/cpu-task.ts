// The module that each thread of a pool runs: it calls the user's export, and posts its result or what it throws to the owner.
//
// Piscina's own answers lose the class of an error, end the thread if a result cannot be copied, take an error `null` for success, and are
// lost if the thread ends at once. So its answer only says that the call has ended.
// Thread: the pool's.
import { pathToFileURL } from 'node:url';
import { types } from 'node:util';
import type { MessagePort, Transferable } from 'node:worker_threads';
import { encodeThrow, moved, type TaskAnswer, type TaskCall } from './task-messages.js';

type Exports = Readonly<Record<string, unknown>> & { readonly default?: Readonly<Record<string, unknown>> };
/** Of the pool's one module; importing it again for each call would cost more than the rest of the call. */
let exports: Exports | undefined;

const isFunction = (value: unknown): value is (task: unknown) => unknown => typeof value === 'function';

let port: MessagePort | undefined;

export async function runTask({ path, name, task, begun, answers = port }: TaskCall): Promise<void> {
  Atomics.store(begun, 0, 1);
  port = answers;
  const answer = (message: TaskAnswer, transferList?: readonly Transferable[]): void => port?.postMessage(message, transferList);
  try {
    exports ??= (await import(pathToFileURL(path).href)) as Exports;
    // The exports of a CommonJS module are the properties of its default export.
    const call = [exports, Object(exports.default) as Exports].map((from) => Object.hasOwn(from, name) && from[name]).find(isFunction);
    if (call === undefined) {
      answer({ kind: 'no such export' });
      return;
    }
    const { value, transferList } = moved(await call(task));
    try {
      answer({ kind: 'result', value }, transferList);
    } catch (error) {
      const message = `The result of '${name}' cannot be sent from its thread: ${(error as Error).message}`;
      throw new DOMException(message, 'DataCloneError');
    }
  } catch (error) {
    answer({ kind: 'thrown', thrown: encodeThrow(error) });
  }
}

// What is thrown outside of a call ends the thread. Node sends errors to the owner, and loses other values and, before Node 22, DOMExceptions.
process.on('uncaughtExceptionMonitor', (error: unknown) => {
  if (types.isNativeError(error) || process.listenerCount('uncaughtException') > 0) return;
  const { name = 'Error', message = String(error), stack } = (error ?? {}) as Partial<Error>;
  process.once('uncaughtException', () => {
    throw Object.assign(new Error(message), { name, ...(stack !== undefined && { stack }) });
  });
});
