// Items that are jobs of a queue of BullMQ.
//
// BullMQ's worker is used without its own loop: the run asks for a job when a lane is free, extends its lock and finishes it. The worker looks for jobs
// whose lock has expired, those of dead workers, and makes them wait again.
import { refuseSurplus } from '../core/base/arguments.js';
import { randomUUID } from 'node:crypto';
import type { Job, Queue, Worker } from 'bullmq';
import { checkOptionNames } from '../core/base/option-names.js';
import { Date } from '../core/base/timers.js';
import { checkMilliseconds } from '../reactive/error-policy.js';
import type { OpenedSource, QueueDelivery, QueueSource } from './adapter.js';
import type { BullmqConnection } from './connections.js';
import { asked, bullmq, checkBullmqOptions, closeSoon, ready } from './bullmq-client.js';
import { errorFacts } from './error-text.js';
import { CLOSE_MS, withinMs } from './client.js';

/** Options of `bullmqSource`. */
export interface BullmqSourceOptions<T = unknown> {
  /** An instance of ioredis, which stays open, or its options, as BullMQ's `connection`. */
  readonly connection: BullmqConnection;
  /** The queue with the jobs. */
  readonly name: string;
  /** BullMQ's prefix of keys. Default 'bull'. */
  readonly prefix?: string;
  /** A queue that gets items that fail to the end, with their error. The failed job stays in its queue with the error as well. Default: none. */
  readonly deadLetter?: string;
  /** The milliseconds after which the items of a dead worker are delivered again (BullMQ's `lockDuration` and `stalledInterval`). Default 30,000. */
  readonly ackWaitMs?: number;
  /** Makes an item of a job's data. Default: the data. */
  readonly decode?: (data: unknown) => T;
}

const NAMES = ['connection', 'name', 'prefix', 'deadLetter', 'ackWaitMs', 'decode'];
/** How long a request waits for a job, in seconds. */
const WAIT_S = 1;
/** BullMQ counts the deaths of a job's workers and fails it in silence. The run counts deliveries instead. */
const NO_LIMIT = 1_000_000_000;

/**
 * Jobs of a queue of BullMQ, for `overlapQueue`. Throws ArgumentError for a bad option. The run rejects with an UnavailableError without `bullmq` and
 * `ioredis`, and without a Redis server.
 * @example bullmqSource({ connection: { host: '127.0.0.1', port: 6379 }, name: 'pictures' })
 */
export function bullmqSource<T = unknown>(opts: BullmqSourceOptions<T>): QueueSource<T> {
  if (arguments.length > 1) refuseSurplus('bullmqSource', arguments, 1);
  checkOptionNames(opts, NAMES);
  checkBullmqOptions(opts);
  const { connection, name, prefix = 'bull', deadLetter, ackWaitMs = 30_000 } = opts;
  checkMilliseconds('ackWaitMs', ackWaitMs);
  if (deadLetter !== undefined) checkBullmqOptions({ connection, name: deadLetter });
  return {
    open: async () => {
      const { Queue, Worker } = bullmq();
      const limits = { lockDuration: ackWaitMs, stalledInterval: ackWaitMs, maxStalledCount: NO_LIMIT, drainDelay: WAIT_S };
      const worker = await ready(new Worker(name, null, { connection, prefix, autorun: false, ...limits }));
      try {
        const dead = deadLetter === undefined ? undefined : await ready(new Queue(deadLetter, { connection, prefix }));
        await worker.startStalledCheckTimer();
        return new BullmqItems<T>(worker, dead, opts, ackWaitMs);
      } catch (error) {
        await worker.close(true);
        throw error;
      }
    },
  };
}

class BullmqItems<T> implements OpenedSource<T> {
  readonly ackWaitMs: number;
  readonly #worker: Worker;
  readonly #dead: Queue | undefined;
  readonly #opts: BullmqSourceOptions<T>;
  readonly #token: string = randomUUID();

  constructor(worker: Worker, dead: Queue | undefined, opts: BullmqSourceOptions<T>, ackWaitMs: number) {
    this.#worker = worker;
    this.#dead = dead;
    this.#opts = opts;
    this.ackWaitMs = ackWaitMs;
  }

  async next(): Promise<QueueDelivery<T> | undefined> {
    const job = await asked(() => this.#worker.getNextJob(this.#token));
    if (!job) return undefined;
    return new BullmqItem(job, this.#token, this.ackWaitMs, this.#dead, this.#opts);
  }

  async close(): Promise<void> {
    await Promise.all([withinMs(CLOSE_MS, this.#worker.close(true)), closeSoon(this.#dead)]);
  }
}

class BullmqItem<T> implements QueueDelivery<T> {
  readonly id: string;
  readonly deliveries: number;
  readonly message: Job;
  readonly #token: string;
  readonly #ackWaitMs: number;
  readonly #dead: Queue | undefined;
  readonly #opts: BullmqSourceOptions<T>;

  constructor(job: Job, token: string, ackWaitMs: number, dead: Queue | undefined, opts: BullmqSourceOptions<T>) {
    const id = String(job.id);
    // A number is BullMQ's own, and another queue has the same ones.
    this.id = /^\d+$/.test(id) ? `${opts.name}-${id}` : id;
    this.deliveries = job.attemptsStarted;
    this.message = job;
    this.#token = token;
    this.#ackWaitMs = ackWaitMs;
    this.#dead = dead;
    this.#opts = opts;
  }

  get data(): T {
    const { decode } = this.#opts;
    const data: unknown = this.message.data;
    return decode === undefined ? (data as T) : decode(data);
  }

  async working(): Promise<void> {
    await asked(() => this.message.extendLock(this.#token, this.#ackWaitMs));
  }

  async ack(): Promise<void> {
    await asked(() => this.message.moveToCompleted(null, this.#token, false));
  }

  async nak(delayMs: number): Promise<void> {
    const job = this.message;
    await asked<unknown>(() => (delayMs > 0 ? job.moveToDelayed(Date.now() + delayMs, this.#token) : job.moveToWait(this.#token)));
  }

  async deadLetter(error: Error): Promise<void> {
    const { name, data } = this.message;
    const letter = { item: this.id, data: data as unknown, error: errorFacts(error), deliveries: this.deliveries };
    if (this.#dead) await asked(() => (this.#dead as Queue).add(name, letter, { jobId: `dead-${this.id.replaceAll(':', '%3A')}` }));
    const { UnrecoverableError } = bullmq();
    // BullMQ tries no further for this class of errors.
    const final = Object.assign(new UnrecoverableError(error.message), { stack: error.stack ?? error.message });
    await asked(() => this.message.moveToFailed(final, this.#token, false));
  }
}
