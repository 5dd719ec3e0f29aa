// Items of a JetStream stream, by a durable pull consumer.
//
// One request of one message at a time, so nothing is delivered that no lane waits for. Acknowledgements are confirmed by the server: without that, the
// next request could overtake one, and the server would count an item more than there are lanes.
import type { Consumer, ConsumerInfo, JsMsg } from '@nats-io/jetstream';
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { StateError } from '../core/base/errors.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { checkMilliseconds } from '../reactive/error-policy.js';
import type { OpenedSource, QueueDelivery, QueueSource } from './adapter.js';
import type { NatsConnection } from './connections.js';
import { errorText } from './error-text.js';
import { asked, checkNatsConnection, type NatsClient, noStream, openNats, streamOf } from './nats-client.js';

/** Options of `natsSource`. */
export interface NatsSourceOptions<T = Uint8Array> {
  /** A connection of `@nats-io/transport-node`, which stays open, or the options of its `connect`. */
  readonly connection: NatsConnection;
  /** The stream with the items. It exists already. */
  readonly stream: string;
  /** The durable consumer that all workers share. It is made if it is not there. */
  readonly consumer: string;
  /** The subject for items that fail to the end. A stream keeps it already. */
  readonly deadLetter: string;
  /** The subject of the items, where the consumer is made and takes only a part of the stream. */
  readonly subject?: string;
  /** The milliseconds after which the items of a dead worker are delivered again, where the consumer is made. Default 30,000. */
  readonly ackWaitMs?: number;
  /** Makes an item of a message's bytes. Default: the bytes. */
  readonly decode?: (bytes: Uint8Array) => T;
}

/** The server's expiry of a request. The client takes no shorter one. */
const EXPIRES_MS = 1000;
const NS_PER_MS = 1e6;
const NAMES = ['connection', 'stream', 'consumer', 'deadLetter', 'subject', 'ackWaitMs', 'decode'];

/**
 * Items of a stream of NATS JetStream, for `overlapQueue`. Items that the server still counts as unacknowledged are at most as many as the lanes of all
 * workers. Throws ArgumentError for a bad option. The run rejects with an UnavailableError without `@nats-io/jetstream` and
 * `@nats-io/transport-node`, without a server, a stream or a stream for the dead letters, and with a StateError for a consumer that cannot serve.
 * @example natsSource({ connection: { servers: '127.0.0.1:4222' }, stream: 'pictures', consumer: 'resize', deadLetter: 'dead.pictures' })
 */
export function natsSource(opts: NatsSourceOptions): QueueSource<Uint8Array>;
export function natsSource<T>(opts: NatsSourceOptions<T> & Required<Pick<NatsSourceOptions<T>, 'decode'>>): QueueSource<T>;
export function natsSource<T>(opts: NatsSourceOptions<T>): QueueSource<T> {
  if (arguments.length > 1) refuseSurplus('natsSource', arguments, 1);
  checkOptionNames(opts, NAMES);
  const { connection, ackWaitMs = 30_000 } = opts;
  checkNatsConnection(connection);
  for (const name of ['stream', 'consumer', 'deadLetter'] as const)
    if (typeof opts[name] !== 'string' || opts[name] === '')
      throw badArgument(name, opts[name], `The option ${name} (${show(opts[name])}) is not a name.`);
  checkMilliseconds('ackWaitMs', ackWaitMs);
  return {
    open: async () => {
      const client = await openNats(connection);
      try {
        await streamOf(client, opts.deadLetter);
        const { config } = await consumerOf(client, opts, ackWaitMs);
        const consumer = await client.js.consumers.get(opts.stream, opts.consumer);
        return new NatsItems<T>(client, consumer, opts, (config.ack_wait ?? ackWaitMs * NS_PER_MS) / NS_PER_MS);
      } catch (error) {
        await client.close();
        throw error;
      }
    },
  };
}

type ConsumerNames = Pick<NatsSourceOptions, 'stream' | 'consumer' | 'subject'>;

/** The consumer, which is made if it is not there. */
async function consumerOf({ manager }: NatsClient, opts: ConsumerNames, ackWaitMs: number): Promise<ConsumerInfo> {
  const { stream, consumer, subject } = opts;
  const info = await manager.consumers.info(stream, consumer).catch((error: Error) => error);
  if (!(info instanceof Error)) {
    const { ack_policy, max_deliver } = info.config;
    const wrong =
      ack_policy !== 'explicit'
        ? `has the acknowledgement policy ${ack_policy}: it has to be explicit`
        : (max_deliver ?? -1) > 0
          ? `has max_deliver ${max_deliver}: the server would stop to deliver an item without a dead letter, so it has to be -1`
          : undefined;
    if (wrong === undefined) return info;
    throw new StateError('ERR_MILLRACE_STATE', `The consumer ${consumer} of the stream ${stream} ${wrong}.`);
  }
  if (info.name === 'StreamNotFoundError') throw noStream(`The NATS server has no stream ${stream}.`, info);
  if (info.name !== 'ConsumerNotFoundError') throw info;
  const filter = subject === undefined ? {} : { filter_subject: subject };
  return manager.consumers.add(stream, {
    durable_name: consumer,
    ack_policy: 'explicit',
    ack_wait: ackWaitMs * NS_PER_MS,
    // The run counts deliveries, and the lanes bound what is unacknowledged.
    max_deliver: -1,
    max_ack_pending: -1,
    ...filter,
  });
}

class NatsItems<T> implements OpenedSource<T> {
  readonly ackWaitMs: number;
  readonly #client: NatsClient;
  readonly #consumer: Consumer;
  readonly #opts: NatsSourceOptions<T>;

  constructor(client: NatsClient, consumer: Consumer, opts: NatsSourceOptions<T>, ackWaitMs: number) {
    this.#client = client;
    this.#consumer = consumer;
    this.#opts = opts;
    this.ackWaitMs = ackWaitMs;
  }

  async next(): Promise<QueueDelivery<T> | undefined> {
    if (this.#client.connection.isClosed()) throw new StateError('ERR_MILLRACE_STATE', 'The connection to NATS is closed.');
    const message = await asked(() => this.#consumer.next({ expires: EXPIRES_MS }));
    return message === null ? undefined : new NatsItem(message, this.#client, this.#opts);
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

class NatsItem<T> implements QueueDelivery<T> {
  readonly id: string;
  readonly deliveries: number;
  readonly message: JsMsg;
  readonly #client: NatsClient;
  readonly #opts: NatsSourceOptions<T>;

  constructor(message: JsMsg, client: NatsClient, opts: NatsSourceOptions<T>) {
    const given = message.headers?.get('Nats-Msg-Id') ?? '';
    this.id = given === '' ? `${opts.stream}-${message.seq}` : given;
    this.deliveries = message.info.deliveryCount;
    this.message = message;
    this.#client = client;
    this.#opts = opts;
  }

  get data(): T {
    const { decode } = this.#opts;
    return decode === undefined ? (this.message.data as T) : decode(this.message.data);
  }

  async working(): Promise<void> {
    this.message.working();
  }

  async ack(): Promise<void> {
    await asked(() => this.message.ackAck());
  }

  async nak(delayMs: number): Promise<void> {
    this.message.nak(delayMs);
    await this.#client.connection.flush();
  }

  async deadLetter(error: Error): Promise<void> {
    const { js } = this.#client;
    const { deadLetter, stream } = this.#opts;
    const { data, seq, headers } = this.message;
    // Without an id of the item, whose results may be in the stream of the dead letters.
    const kept = [...(headers ?? [])].filter(([name]) => !name.startsWith('Nats-'));
    const made = this.#client.headers();
    for (const [name, values] of kept) for (const value of values) made.append(name, value);
    made.set('Millrace-Item', this.id);
    made.set('Millrace-Error', errorText(error));
    made.set('Millrace-Deliveries', String(this.deliveries));
    made.set('Millrace-Source', `${stream}/${seq}`);
    await asked(() => js.publish(deadLetter, data, { headers: made, msgID: `dead ${stream}/${seq}` }));
    await this.ack();
  }
}
