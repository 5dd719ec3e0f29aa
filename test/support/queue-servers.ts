// Servers of queues for tests, on free ports of the loopback address, and what tests ask of each: the same for NATS JetStream and BullMQ.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectSocket, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { Queue } from 'bullmq';
import type { QueueSink, QueueSource } from 'millrace/queue';
import { bullmqSink, bullmqSource, natsSink, natsSource } from 'millrace/queue';

/** A server with a queue of items `i0`, `i1` and so on, whose data are their numbers as text. */
export interface TestQueue {
  readonly port: number;
  readonly source: (ackWaitMs?: number) => QueueSource<string>;
  readonly sink: () => QueueSink<string>;
  readonly publish: (count: number, from?: number) => Promise<void>;
  /** The results by their items' ids: each text as often as it was stored. */
  readonly results: () => Promise<Map<string, string[]>>;
  readonly dead: () => Promise<
    readonly { readonly item: string; readonly data: string; readonly message: string; readonly deliveries: number }[]
  >;
  /** What the server has delivered and no acknowledgement of, and what it has to deliver. */
  readonly counts: () => Promise<{ readonly unacknowledged: number; readonly waiting: number }>;
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface QueueCase {
  readonly name: 'nats' | 'bullmq';
  /** Why it is not tested here. */
  readonly absent: string | undefined;
  readonly open: () => Promise<TestQueue>;
}

const absent = (program: string): string | undefined =>
  spawnSync(program, ['--version'], { env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` } }).status === 0
    ? undefined
    : `this machine has no ${program}`;

export const queueCases: readonly QueueCase[] = [
  { name: 'nats', absent: absent('nats-server'), open: openNats },
  { name: 'bullmq', absent: absent('redis-server'), open: openBullmq },
];

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function isAnswering(port: number): Promise<boolean> {
  const socket = connectSocket(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** A server that ends with this process, however this process ends: the shell kills it when its input closes. */
class ServerProcess {
  readonly folder: string = mkdtempSync(path.join(tmpdir(), 'millrace-queue-'));
  readonly #command: string;
  readonly #port: number;
  #child: ChildProcess | undefined;

  constructor(command: (folder: string) => string, port: number) {
    this.#command = command(this.folder);
    this.#port = port;
  }

  readonly start = async (): Promise<void> => {
    const script = `PATH=$PATH:/usr/sbin; ${this.#command} >/dev/null 2>&1 & read -r _; kill -9 $!; wait`;
    this.#child = spawn('sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'] });
    for (const end = performance.now() + 20_000; !(await isAnswering(this.#port)); ) {
      if (performance.now() > end) throw new Error(`Not within 20 s: ${this.#command}`);
      await new Promise((resolve) => void setTimeout(resolve, 20));
    }
  };

  readonly stop = async (): Promise<void> => {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    child.stdin!.end();
    if (child.exitCode === null) await once(child, 'exit');
  };

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Calls with 0 to `count` - 1, some hundred at a time. */
async function inParts<V>(count: number, call: (n: number) => Promise<V>): Promise<V[]> {
  const all: V[] = [];
  while (all.length < count) {
    const from = all.length;
    all.push(...(await Promise.all(Array.from({ length: Math.min(200, count - from) }, (_, n) => call(from + n)))));
  }
  return all;
}

const text = new TextDecoder();
const decode = (bytes: Uint8Array): string => text.decode(bytes);

async function openNats(): Promise<TestQueue> {
  const port = await freePort();
  const server = new ServerProcess((folder) => `nats-server -js -sd ${folder} -a 127.0.0.1 -p ${port}`, port);
  await server.start();
  const options = { servers: `127.0.0.1:${port}`, reconnectTimeWait: 50 };
  const connection = await connect({ ...options, maxReconnectAttempts: -1 });
  const manager = await jetstreamManager(connection);
  const client = jetstream(connection);
  await manager.streams.add({ name: 'items', subjects: ['items'], retention: 'workqueue' });
  await manager.streams.add({ name: 'results', subjects: ['results.*'] });
  await manager.streams.add({ name: 'dead', subjects: ['dead.*'] });
  const messagesOf = async (stream: string) => {
    const { state } = await manager.streams.info(stream);
    return inParts(state.messages, (n) => manager.streams.getMessage(stream, { seq: state.first_seq + n }));
  };
  return {
    port,
    source: (ackWaitMs = 30_000) =>
      natsSource({ connection: options, stream: 'items', consumer: 'workers', deadLetter: 'dead.items', ackWaitMs, decode }),
    sink: () => natsSink<string>({ connection: options, subject: 'results.{id}', once: 'subject' }),
    publish: async (count, from = 0) => {
      await inParts(count, (n) => client.publish('items', String(from + n), { msgID: `i${from + n}` }));
    },
    results: async () => {
      const found = new Map<string, string[]>();
      for (const message of await messagesOf('results')) {
        const id = message!.header.get('Nats-Msg-Id');
        found.set(id, [...(found.get(id) ?? []), text.decode(message!.data)]);
      }
      return found;
    },
    dead: async () =>
      (await messagesOf('dead')).map((message) => ({
        item: message!.header.get('Millrace-Item'),
        data: text.decode(message!.data),
        message: (JSON.parse(message!.header.get('Millrace-Error')) as Error).message,
        deliveries: Number(message!.header.get('Millrace-Deliveries')),
      })),
    counts: async () => {
      const { num_ack_pending, num_pending } = await manager.consumers.info('items', 'workers');
      return { unacknowledged: num_ack_pending, waiting: num_pending };
    },
    stop: server.stop,
    start: server.start,
    close: async () => {
      await connection.close();
      await server.remove();
    },
  };
}

async function openBullmq(): Promise<TestQueue> {
  const port = await freePort();
  // A restart finds what was written; no disk is waited for.
  const durable = '--appendonly yes --appendfsync no';
  const server = new ServerProcess((folder) => `redis-server --bind 127.0.0.1 --port ${port} --dir ${folder} --save '' ${durable}`, port);
  await server.start();
  const connection = { host: '127.0.0.1', port };
  const [items, results, dead] = ['items', 'results', 'dead'].map((name) => new Queue(name, { connection })) as [Queue, Queue, Queue];
  for (const queue of [items, results, dead]) queue.on('error', () => undefined);
  return {
    port,
    source: (ackWaitMs = 30_000) => bullmqSource<string>({ connection, name: 'items', deadLetter: 'dead', ackWaitMs }),
    sink: () => bullmqSink<string>({ connection, name: 'results' }),
    publish: async (count, from = 0) => {
      const opts = (n: number) => ({ jobId: `i${n}`, removeOnComplete: true });
      await items.addBulk(Array.from({ length: count }, (_, n) => ({ name: 'n', data: String(from + n), opts: opts(from + n) })));
    },
    results: async () => new Map((await results.getJobs(['waiting'])).map((job) => [job.id!, [String(job.data)]])),
    dead: async () =>
      (await dead.getJobs(['waiting'])).map(({ data }) => {
        const letter = data as { item: string; data: string; error: Error; deliveries: number };
        return { item: letter.item, data: letter.data, message: letter.error.message, deliveries: letter.deliveries };
      }),
    counts: async () => {
      const { active = 0, waiting = 0, delayed = 0 } = await items.getJobCounts();
      return { unacknowledged: active, waiting: waiting + delayed };
    },
    stop: server.stop,
    start: server.start,
    close: async () => {
      await Promise.all([items, results, dead].map((queue) => queue.close()));
      await server.remove();
    },
  };
}
