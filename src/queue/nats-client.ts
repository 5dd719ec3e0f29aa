// The connection to NATS, and what its errors mean.
import type * as JetStream from '@nats-io/jetstream';
import type * as Transport from '@nats-io/transport-node';
import { badArgument, show } from '../core/base/arguments.js';
import { UnavailableError } from '../core/base/errors.js';
import type { NatsConnection } from './connections.js';
import { CLOSE_MS, loadPackage, unanswered, withinMs } from './client.js';

const INSTALL = '@nats-io/jetstream @nats-io/transport-node';

/** A client of JetStream over an open connection. */
export interface NatsClient {
  readonly js: JetStream.JetStreamClient;
  readonly manager: JetStream.JetStreamManager;
  readonly connection: Transport.NatsConnection;
  /** Makes headers of a message. */
  readonly headers: () => Transport.MsgHdrs;
  readonly close: () => Promise<void>;
}

/** Throws ArgumentError for what is neither a connection nor options. */
export function checkNatsConnection(value: unknown): void {
  if (typeof value === 'object' && value !== null) return;
  const message = `The connection (${show(value)}) is neither a connection of NATS nor options such as { servers: '127.0.0.1:4222' }.`;
  throw badArgument('connection', value, message);
}

/** Connects, unless the connection is the user's. Rejects with an UnavailableError without the packages, without a server and without JetStream. */
export async function openNats(connection: NatsConnection): Promise<NatsClient> {
  const { jetstream, jetstreamManager } = loadPackage<typeof JetStream>('@nats-io/jetstream', INSTALL);
  const { headers } = transport();
  const isOwn = typeof connection.publish !== 'function';
  const opened = isOwn ? await connectTo(connection) : (connection as unknown as Transport.NatsConnection);
  try {
    const manager = await jetstreamManager(opened);
    return { js: jetstream(opened), manager, connection: opened, headers, close: () => (isOwn ? closeSoon(opened) : Promise.resolve()) };
  } catch (cause) {
    if (isOwn) await opened.close();
    const help = ['Start it with JetStream: nats-server -js'];
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', 'The NATS server has no JetStream.', help, { cause });
  }
}

/** A server that is away would hold up `drain` for ever. */
async function closeSoon(connection: Transport.NatsConnection): Promise<void> {
  await withinMs(
    CLOSE_MS,
    connection.drain().catch(() => undefined),
  );
  await connection.close();
}

function transport(): typeof Transport {
  return loadPackage<typeof Transport>('@nats-io/transport-node', INSTALL);
}

async function connectTo(options: object): Promise<Transport.NatsConnection> {
  const { connect } = transport();
  try {
    // A worker waits for its server. NATS would give up after ten attempts.
    return await connect({ name: 'millrace', maxReconnectAttempts: -1, ...options });
  } catch (cause) {
    const { servers = '127.0.0.1:4222' } = options as { readonly servers?: unknown };
    const help = ['Start nats-server -js there, or name its address in connection.servers.'];
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `No NATS server answers at ${String(servers)}.`, help, { cause });
  }
}

/** The stream that keeps what is published to the subject. Rejects with an UnavailableError if there is none. */
export async function streamOf({ manager }: NatsClient, subject: string): Promise<JetStream.StreamInfo> {
  const [, info] = await asked(async () => {
    const stream = await manager.streams.find(subject).catch((error: Error) => error);
    if (stream instanceof Error) {
      if (!/no stream matches/.test(stream.message)) throw stream;
      throw noStream(`No stream of the NATS server keeps the subject ${subject}.`, stream);
    }
    return [stream, await manager.streams.info(stream)] as const;
  });
  return info;
}

export function noStream(message: string, cause: unknown): UnavailableError {
  return new UnavailableError(
    'ERR_MILLRACE_UNAVAILABLE',
    message,
    ["Add it with jetstreamManager(connection), or with the tool nats: nats stream add NAME --subjects 'SUBJECT'"],
    { cause },
  );
}

/** Errors of requests that the server has answered, or that no server would take. */
const FINAL = [
  'JetStreamApiError',
  'ConsumerNotFoundError',
  'StreamNotFoundError',
  'InvalidArgumentError',
  'InvalidSubjectError',
  'PermissionViolationError',
  'JetStreamStatusError',
];

/** Calls, and turns what says that the server does not answer now into an UnavailableError. */
export async function asked<V>(call: () => Promise<V>): Promise<V> {
  try {
    return await call();
  } catch (error) {
    const { name } = error as Error;
    if (FINAL.includes(name) || error instanceof UnavailableError) throw error;
    throw unanswered('NATS', error);
  }
}
