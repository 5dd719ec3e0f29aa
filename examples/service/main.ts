// Opens the device, starts the threads that serve, and ends all in order at SIGTERM or SIGINT. See README.md beside this file.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { openDevice } from 'millrace';
import { readDigits } from './digits.js';
import { readFaceParameters } from './faces.js';
import { openFront } from './front.js';
import { Metrics } from './metrics.js';
import { Refusal, run } from '../command-line.js';
import { readOptions } from './options.js';
import type { Learnt, WorkerTask } from './worker.js';

// On a CPU device, answers are what this process is for: refusals, or other programs, must not take the cores from kernels.
process.env['MILLRACE_CPU_NICE'] ??= '0';

/** How long requests may take after the signal to stop. */
const STOP_MS = 10_000;

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  const stop = Promise.race(['SIGTERM', 'SIGINT'].map((signal) => once(process, signal)));
  const parameters = [await readDigits(options.parameters), ...(options.hasFaces ? [await readFaceParameters()] : [])];
  const device = options.engine === 'plain' ? undefined : await openDevice(options.device);
  const onDevice = parameters.map((one) => device?.from(one));
  const folder = await mkdtemp(join(tmpdir(), 'millrace-service-'));
  const paths = Array.from({ length: options.workers }, (_, thread) => join(folder, `${thread}.sock`));
  const metrics = Metrics.share(options.workers);
  const workers = paths.map((path, thread) => {
    const listen = options.workers === 1 ? { port: options.port, host: options.host } : { path };
    const [digits, faces] = parameters.map((one, n) => ({ parameters: one, onDevice: onDevice[n]?.share() })) as [Learnt, Learnt?];
    const task: WorkerTask = { options, thread, metrics, device: device?.share(), digits, faces, listen };
    return new Worker(new URL('./worker.js', import.meta.url), { workerData: task });
  });
  const ended = workers.map((worker) => once(worker, 'exit'));
  try {
    // A thread that fails ends the service: a supervisor starts it again.
    const failed = Promise.race(ended).then(() => Promise.reject(new Error('A thread has ended.')));
    failed.catch(() => undefined);
    const ready = await Promise.race([
      Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0] as number | undefined)),
      failed,
    ]);
    const front = options.workers === 1 ? undefined : await openFront(paths, options.port, options.host);
    console.log(
      `serving on http://${options.host}:${front?.port ?? ready[0]} (${device?.info.name ?? 'no device'}, threads: ${options.workers})`,
    );
    await Promise.race([stop, failed]);
    for (const worker of workers) worker.postMessage('drain');
    console.log('stopping');
    // Who sends requests here learns it from /ready; until then new connections are not refused.
    await Promise.race([delay(options.drainMs), failed]);
    const late = setTimeout(() => {
      process.stderr.write('Requests were still running when the time to stop was over.\n');
      process.exit(1);
    }, STOP_MS).unref();
    const closed = front?.close();
    for (const worker of workers) worker.postMessage('stop');
    await Promise.all([...ended, closed]);
    clearTimeout(late);
    console.log('stopped');
    return 0;
  } catch (error) {
    const { code, syscall, message, address, port } = error as NodeJS.ErrnoException & {
      readonly address?: string;
      readonly port?: number;
    };
    if (code === 'EADDRINUSE') throw new Refusal(`Port ${port} of ${address} is taken (--port).`);
    throw syscall === 'listen' ? new Refusal(message) : error;
  } finally {
    for (const array of onDevice) array?.[Symbol.dispose]();
    await device?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

await run(main);
// Threads that still serve would keep a process that has failed.
if (process.exitCode !== 0) process.exit();
