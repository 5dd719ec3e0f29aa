// Results as jobs of a queue of BullMQ, each id once: adding a job whose id is there does nothing, in one step of Redis.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { OpenedSink, QueueSink } from './adapter.js';
import type { BullmqConnection } from './connections.js';
import { asked, bullmq, checkBullmqOptions, closeSoon, ready } from './bullmq-client.js';

/** Options of `bullmqSink`. */
export interface BullmqSinkOptions<R = unknown> {
  /** An instance of ioredis, which stays open, or its options, as BullMQ's `connection`. */
  readonly connection: BullmqConnection;
  /** The queue that gets a job for each result. Its id is the item's, with %3A for a colon. */
  readonly name: string;
  /** BullMQ's prefix of keys. Default 'bull'. */
  readonly prefix?: string;
  /** The name of the jobs. Default 'result'. */
  readonly jobName?: string;
  /** Makes a job's data, which BullMQ keeps as JSON, of a result. Needed for bytes. Default: the result. */
  readonly encode?: (result: R) => unknown;
}

const NAMES = ['connection', 'name', 'prefix', 'jobName', 'encode'];

/**
 * Stores results as jobs of a queue of BullMQ, for `overlapQueue`. An id is known for as long as its job exists: keep the jobs (`removeOnComplete`) for
 * longer than an item may be delivered again. Throws ArgumentError for a bad option. The run rejects with an UnavailableError without `bullmq` and
 * `ioredis`, and without a Redis server.
 * @example bullmqSink({ connection: { host: '127.0.0.1', port: 6379 }, name: 'thumbnails', encode: (bytes) => Buffer.from(bytes).toString('base64') })
 */
export function bullmqSink<R = unknown>(opts: BullmqSinkOptions<R>): QueueSink<R> {
  if (arguments.length > 1) refuseSurplus('bullmqSink', arguments, 1);
  checkOptionNames(opts, NAMES);
  checkBullmqOptions(opts);
  const { connection, name, prefix = 'bull', jobName = 'result', encode = asJson } = opts;
  return {
    open: async (): Promise<OpenedSink<R>> => {
      const { Queue } = bullmq();
      const queue = await ready(new Queue(name, { connection, prefix }));
      return {
        remembersMs: Number.POSITIVE_INFINITY,
        store: async (id, result, isRedelivered) => {
          const jobId = jobIdOf(id);
          // Only for the count: `add` is what makes it once.
          if (isRedelivered && (await asked(() => queue.getJob(jobId)))) return false;
          const data = encode(result);
          await asked(() => queue.add(jobName, data, { jobId }));
          return true;
        },
        close: () => closeSoon(queue),
      };
    },
  };
}

/** BullMQ refuses colons, and numbers, which it gives itself. */
function jobIdOf(id: string): string {
  return /^\d+$/.test(id) ? `item-${id}` : id.replaceAll(':', '%3A');
}

function asJson(result: unknown): unknown {
  if (!ArrayBuffer.isView(result)) return result;
  throw badArgument(
    'encode',
    result,
    `The result (${show(result)}) is bytes, which JSON does not have: give bullmqSink an encode, for example to base64.`,
  );
}
