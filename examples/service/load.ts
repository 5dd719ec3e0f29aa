// Loads the service at half, one and two times what it can do, for each engine, and prints the table of README.md:
//   node build/js/examples/service/load.js --help
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { Piscina } from 'piscina';
import sharp from 'sharp';
import { parseOrRefuse, run, whole } from '../command-line.js';
import { PIXELS, SIDE } from '../training/shape.js';
import { type Answers, type Order, send, type Sent } from './send.js';

const HELP = `Usage: load [options]

Loads the service at half, one and two times what it can do, for each engine, and prints a table. Requests come at
random moments, as those of many independent clients, on 400 connections: while all of them wait, none is sent.

  --seconds N     of each load (default: 10)
  --device NAME   auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --workers N     threads that serve (default: 1)
  --engines LIST  of batched, single and plain (default: all)
  --url URL       of a service that runs already, in place of starting one
  --senders N     threads that send (default: one for two cores)
  --faces         sends a picture to /faces, not digits to /digit
  --soak N        minutes in which the batched service then has twice its capacity (default: 0)
  --help
`;

const OPTIONS = {
  seconds: { type: 'string', default: '10' },
  device: { type: 'string', default: 'auto' },
  workers: { type: 'string', default: '1' },
  engines: { type: 'string', default: 'batched,single,plain' },
  url: { type: 'string' },
  senders: { type: 'string', default: String(Math.max(1, cpus().length >> 1)) },
  faces: { type: 'boolean', default: false },
  soak: { type: 'string', default: '0' },
  help: { type: 'boolean', default: false },
} as const;

/** With these the service is never idle, and refuses nothing. */
const BUSY_CONNECTIONS = 64;
/** Of the senders together: a balancer before the service has so many. */
const CONNECTIONS = 400;
/** The load in parts of the capacity. */
const LOADS = [0.5, 1, 2];

interface Service {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

async function start(engine: string, device: string, workers: number, hasFaces: boolean): Promise<Service> {
  const file = fileURLToPath(new URL('./main.js', import.meta.url));
  const args = ['--port', '0', '--engine', engine, '--device', device, '--workers', String(workers), ...(hasFaces ? [] : ['--no-faces'])];
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const [code] = (await ended) as [number | null];
    if (code !== 0) throw new Error(`The service ended with ${code}.`);
  };
  return { url: /http:\S+/.exec(line)![0], stop };
}

interface Run {
  readonly answersPerSecond: number;
  readonly refusedPerSecond: number;
  /** All connections waited for answers at their moments. */
  readonly unsentPerSecond: number;
  /** Milliseconds to the answers, without those that were refused. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly otherErrors: number;
}

/** Requests a second that are answered when each connection sends one as soon as it has its last answer. */
async function capacityOf(url: string, { path, type, body }: Sent, duration: number): Promise<number> {
  const options = {
    url: url + path,
    method: 'POST',
    headers: { 'content-type': type },
    body: Buffer.from(body),
    duration,
    connections: BUSY_CONNECTIONS,
  } as const;
  const result = await autocannon(options);
  return result['2xx'] / result.duration;
}

/** Sends `rate` requests a second from all threads of the pool. */
async function load(pool: Piscina, url: string, sent: Sent, seconds: number, rate: number): Promise<Run> {
  const { threads } = pool;
  const orders = threads.map(
    (): Order => ({ ...sent, url, seconds, rate: rate / threads.length, connections: Math.ceil(CONNECTIONS / threads.length) }),
  );
  const runs = (await Promise.all(orders.map((order) => pool.run(order, { name: send.name })))) as Answers[];
  const times = Float64Array.from(runs.flatMap((one) => [...one.times])).toSorted();
  const at = (part: number): number => times[Math.min(times.length - 1, Math.floor(part * times.length))] ?? Number.NaN;
  const sum = (of: (one: Answers) => number): number => runs.reduce((total, one) => total + of(one), 0);
  return {
    answersPerSecond: times.length / seconds,
    refusedPerSecond: sum(({ refused }) => refused) / seconds,
    unsentPerSecond: sum(({ unsent }) => unsent) / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    otherErrors: sum(({ otherErrors }) => otherErrors),
  };
}

async function memoryMiB(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^service_memory_bytes (\d+)/m.exec(text)![1]) / 2 ** 20;
}

async function aPicture(): Promise<Sent> {
  return { path: '/faces', type: 'image/png', body: await readFile('examples/photos/images/astronaut.png') };
}

async function aDigit(): Promise<Sent> {
  const sheet = await readFile('examples/training/data/digits-16.png');
  const body = await sharp(sheet).extract({ left: 0, top: 0, width: SIDE, height: SIDE }).toColourspace('b-w').raw().toBuffer();
  if (body.length !== PIXELS) throw new Error(`The digit has ${body.length} bytes.`);
  return { path: '/digit', type: 'application/octet-stream', body };
}

function row(cells: readonly (string | number)[]): void {
  console.log(`| ${cells.map((cell) => (typeof cell === 'number' ? cell.toFixed(cell < 100 ? 1 : 0) : cell)).join(' | ')} |`);
}

await run(async (args) => {
  const { values } = parseOrRefuse(HELP, { args: [...args], options: OPTIONS });
  const { device } = values;
  const seconds = whole('seconds', values.seconds, 1, 3600);
  const soak = whole('soak', values.soak, 0, 1440);
  const workers = whole('workers', values.workers, 1, 64);
  const senders = whole('senders', values.senders, 1, 64);
  const pool = new Piscina({ filename: fileURLToPath(new URL('./send.js', import.meta.url)), minThreads: senders, maxThreads: senders });
  const sent = values.faces ? await aPicture() : await aDigit();
  const open = async (engine: string): Promise<Service> => {
    if (values.url !== undefined) return { url: values.url, stop: async () => undefined };
    return start(engine, device, workers, values.faces);
  };
  console.log(`${cpus().length} cores of ${cpus()[0]!.model}, load average ${loadavg()[0]!.toFixed(1)}, Node ${process.version}\n`);
  row(['engine', 'load', 'answers/s', '503/s', 'unsent/s', 'p50 ms', 'p99 ms', 'other errors', 'MiB after']);
  row(Array.from({ length: 9 }, () => '---'));
  const engines = values.url === undefined ? values.engines.split(',').filter((name) => name !== '') : ['of the URL'];
  for (const engine of engines) {
    const { url, stop } = await open(engine);
    await capacityOf(url, sent, Math.min(seconds, 5)); // JavaScript is compiled, memory has grown
    const capacity = await capacityOf(url, sent, seconds);
    for (const times of LOADS) {
      const { answersPerSecond, refusedPerSecond, unsentPerSecond, p50Ms, p99Ms, otherErrors } = await load(
        pool,
        url,
        sent,
        seconds,
        times * capacity,
      );
      const cells = [answersPerSecond, refusedPerSecond, unsentPerSecond, p50Ms, p99Ms, String(otherErrors), await memoryMiB(url)];
      row([engine, `${times} x ${capacity.toFixed(0)}/s`, ...cells]);
    }
    await stop();
  }
  if (soak > 0) {
    const { url, stop } = await open('batched');
    await load(pool, url, sent, Math.min(seconds, 5), 2 * (await capacityOf(url, sent, 5)));
    const before = await memoryMiB(url);
    let errors = 0;
    // What the service can do depends on what else the machine does, so it is measured again before each minute of overload.
    for (let minute = 1; minute <= soak; minute++) {
      const capacity = await capacityOf(url, sent, 2);
      const half = await load(pool, url, sent, 5, 0.5 * capacity);
      const twice = await load(pool, url, sent, 60, 2 * capacity);
      errors += half.otherErrors + twice.otherErrors;
      const ms = `p99 ${half.p99Ms.toFixed(1)} ms at half, ${twice.p99Ms.toFixed(1)} ms at twice`;
      console.log(
        `minute ${minute}: capacity ${capacity.toFixed(0)}/s, ${ms}, ${twice.answersPerSecond.toFixed(0)} answers/s, ${twice.refusedPerSecond.toFixed(0)} refused/s, ${twice.unsentPerSecond.toFixed(0)} unsent/s, load average ${loadavg()[0]!.toFixed(1)}`,
      );
    }
    console.log(`errors other than 503: ${errors}; memory ${before.toFixed(0)} MiB before, ${(await memoryMiB(url)).toFixed(0)} MiB after`);
    await stop();
  }
  await pool.destroy();
  return 0;
});
