// The connection to Redis by BullMQ, and what its errors mean.
import type * as Bullmq from 'bullmq';
import { badArgument, show } from '../core/base/arguments.js';
import { UnavailableError } from '../core/base/errors.js';
import { CLOSE_MS, loadPackage, unanswered, withinMs } from './client.js';

export function checkBullmqOptions(opts: { readonly connection: unknown; readonly name: unknown }): void {
  const { connection, name } = opts;
  if (typeof connection !== 'object' || connection === null) {
    const example = "{ host: '127.0.0.1', port: 6379 }";
    const message = `The connection (${show(connection)}) is neither an instance of ioredis nor its options, such as ${example}.`;
    throw badArgument('connection', connection, message);
  }
  if (typeof name !== 'string' || name === '' || name.includes(':'))
    throw badArgument('name', name, `The name (${show(name)}) is not a name of a queue of BullMQ, which has no colon.`);
}

/** Throws UnavailableError without the package. */
export function bullmq(): typeof Bullmq {
  return loadPackage<typeof Bullmq>('bullmq', 'bullmq ioredis');
}

/** Waits for the connections of a queue or worker. Rejects with an UnavailableError at the first error of them, which closes it. */
export async function ready<Q extends Bullmq.Queue | Bullmq.Worker>(queue: Q): Promise<Q> {
  const emitter = queue as unknown as NodeJS.EventEmitter;
  const failed = new Promise<never>((_, reject) => void emitter.once('error', reject));
  try {
    await Promise.race([queue.waitUntilReady(), failed]);
  } catch (cause) {
    await queue.close().catch(() => undefined);
    const message = `BullMQ cannot reach its Redis server: ${(cause as Error).message || String((cause as { code?: string }).code)}.`;
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, ['Start redis-server there, or name its address in connection.'], {
      cause,
    });
  }
  failed.catch(() => undefined);
  // Without a listener, an error of the connection would end the process. Calls report it.
  emitter.on('error', () => undefined);
  return queue;
}

/** Calls, and turns what says that the server does not answer now into an UnavailableError. */
export async function asked<V>(call: () => Promise<V>): Promise<V> {
  try {
    return await call();
  } catch (error) {
    const { name, message, code } = error as NodeJS.ErrnoException;
    const isOfConnection =
      name === 'MaxRetriesPerRequestError' || /^E[A-Z]+$/.test(code ?? '') || /Connection is closed|ECONN|LOADING/.test(message);
    if (!isOfConnection) throw error;
    throw unanswered('Redis', error);
  }
}

/** Closes a queue; a server that is away does not hold it up. */
export async function closeSoon(queue: Bullmq.Queue | undefined): Promise<void> {
  if (queue === undefined) return;
  await withinMs(CLOSE_MS, queue.close());
  await withinMs(CLOSE_MS, queue.disconnect());
}
