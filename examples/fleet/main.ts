// Publishes pictures, lets a fleet of workers resize them, kills one of the workers every ten seconds, and counts the results.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { jetstream, jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

const { values } = parseArgs({
  options: {
    server: { type: 'string' },
    in: { type: 'string', default: 'examples/photos/images' },
    out: { type: 'string', default: 'out/fleet' },
    pictures: { type: 'string', default: '2000' },
    workers: { type: 'string', default: '2' },
    'kill-every-ms': { type: 'string', default: '10000' },
    device: { type: 'string', default: 'auto' },
  },
});
const [count, size, killEveryMs] = [values.pictures, values.workers, values['kill-every-ms']].map(Number) as [number, number, number];

/** A server of this program's own, if no other one is named. */
async function startServer(): Promise<{ readonly address: string; readonly stop: () => Promise<void> }> {
  if (values.server !== undefined) return { address: values.server, stop: async () => undefined };
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const address = `127.0.0.1:${(free.address() as AddressInfo).port}`;
  free.close();
  const folder = await mkdtemp(join(tmpdir(), 'fleet-'));
  const path = `${process.env['PATH'] ?? ''}:/usr/sbin`;
  const child = spawn(
    'nats-server',
    ['-js', '-sd', folder, '-a', ...address.split(':').flatMap((part, at) => (at === 0 ? [part] : ['-p', part]))],
    {
      stdio: 'ignore',
      env: { ...process.env, PATH: path },
    },
  );
  const stop = async (): Promise<void> => {
    child.kill();
    if (child.exitCode === null) await once(child, 'exit');
    await rm(folder, { recursive: true, force: true });
  };
  return { address, stop };
}

function startWorker(address: string): ChildProcess {
  const file = fileURLToPath(new URL('./worker.js', import.meta.url));
  return spawn(process.execPath, [file, address, values.device], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Starts a fleet, and kills one of it now and then, until the results are there. Returns the number of kills. */
async function work(address: string, manager: JetStreamManager): Promise<number> {
  const fleet = Array.from({ length: size }, () => startWorker(address));
  let kills = 0;
  let killAtMs = performance.now() + killEveryMs;
  /** The results at the last kill: a fleet that is not given time to work would never end. */
  let done = 0;
  try {
    for (;;) {
      const [{ state }, dead] = await Promise.all([manager.streams.info('thumbnails'), manager.streams.info('dead')]);
      console.log(`${state.messages} of ${count} pictures, ${kills} workers killed`);
      if (state.messages + dead.state.messages >= count) break;
      await pause(Math.min(500, killEveryMs));
      if (performance.now() < killAtMs || state.messages === done) continue;
      killAtMs = performance.now() + killEveryMs;
      done = state.messages;
      const victim = kills++ % size;
      fleet[victim]!.kill('SIGKILL');
      fleet[victim] = startWorker(address);
    }
  } finally {
    for (const worker of fleet) worker.kill('SIGTERM');
    await Promise.all(fleet.map(async (worker) => worker.exitCode ?? worker.signalCode ?? (await once(worker, 'exit'))));
  }
  return kills;
}

const server = await startServer();
const connection = await connect({ servers: server.address, waitOnFirstConnect: true, reconnectTimeWait: 100 });
try {
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: 'pictures', subjects: ['pictures'], retention: 'workqueue' });
  await manager.streams.add({ name: 'thumbnails', subjects: ['thumbnails.*'] });
  await manager.streams.add({ name: 'dead', subjects: ['dead.*'] });

  const folder = resolve(values.in);
  const files = (await readdir(folder)).filter((name) => /\.(?:png|jpe?g)$/i.test(name)).toSorted();
  const client = jetstream(connection);
  // Names, not pictures: a message of NATS has 1 MiB by default, and the workers can read the folder.
  for (let n = 0; n < count; n++) await client.publish('pictures', join(folder, files[n % files.length]!), { msgID: `picture-${n}` });
  const kills = await work(server.address, manager);

  const { state } = await manager.streams.info('thumbnails', { subjects_filter: '>' });
  const dead = (await manager.streams.info('dead')).state.messages;
  const isOnce = Object.values(state.subjects ?? {}).every((stored) => stored === 1);
  await mkdir(values.out, { recursive: true });
  for (let n = 0; n < Math.min(count, files.length); n++) {
    const message = await manager.streams.getMessage('thumbnails', { last_by_subj: `thumbnails.picture-${n}` });
    if (message) await writeFile(join(values.out, `${files[n]}.jpg`), message.data);
  }
  console.log(
    `${Object.keys(state.subjects ?? {}).length} of ${count} pictures, ${isOnce ? 'each once' : 'some twice'}, ${dead} dead letters, ${kills} kills`,
  );
} finally {
  await connection.close();
  await server.stop();
}
