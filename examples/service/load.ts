// Loads the service at half, one and two times what it can do, for each engine, and prints the table of README.md:
//   node build/js/examples/service/load.js --help
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import sharp from 'sharp';
import { parseOrRefuse, run, whole } from '../command-line.js';
import { PIXELS, SIDE } from '../training/shape.js';

const HELP = `Usage: load [options]

Loads the service at half, one and two times what it can do, for each engine, and prints a table.

  --seconds N     of each load (default: 10)
  --device NAME   auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --workers N     threads that serve (default: 1)
  --engines LIST  of batched, single and plain (default: all)
  --soak N        minutes in which the batched service then has twice its capacity (default: 0)
  --help
`;

const OPTIONS = {
  seconds: { type: 'string', default: '10' },
  device: { type: 'string', default: 'auto' },
  workers: { type: 'string', default: '1' },
  engines: { type: 'string', default: 'batched,single,plain' },
  soak: { type: 'string', default: '0' },
  help: { type: 'boolean', default: false },
} as const;

/** As many as fill the batches of both lanes, and wait for the next ones. */
const BUSY_CONNECTIONS = 192;
/** The load in parts of the capacity, and the connections that bring it. autocannon sends in bursts of all connections, so few of them bring half a load. */
const LOADS = [
  [0.5, 48],
  [1, BUSY_CONNECTIONS],
  [2, 400],
] as const;

interface Service {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

async function start(engine: string, device: string, workers: number): Promise<Service> {
  const file = fileURLToPath(new URL('./main.js', import.meta.url));
  const args = ['--port', '0', '--engine', engine, '--device', device, '--workers', String(workers), '--no-faces'];
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
  /** Milliseconds to the answers, without those that were refused. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly otherErrors: number;
}

/** `rate` undefined: each connection sends a request when it has its last answer. */
async function load(url: string, body: Buffer, duration: number, connections: number, rate?: number): Promise<Run> {
  const times: number[] = [];
  let [refused, others] = [0, 0];
  const options = {
    url: `${url}/digit`,
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body,
    duration,
    connections,
  } as const;
  const {
    errors,
    timeouts,
    duration: took,
  } = await new Promise<autocannon.Result>((resolve, reject) => {
    const paced = rate === undefined ? options : { ...options, overallRate: Math.max(connections, Math.round(rate)) };
    const instance = autocannon(paced, (error, result) => (error ? reject(error as Error) : resolve(result)));
    instance.on('response', (_client, status, _bytes, ms) => {
      if (status === 200) times.push(ms);
      else if (status === 503) refused++;
      else others++;
    });
  });
  times.sort((a, b) => a - b);
  const at = (part: number): number => times[Math.min(times.length - 1, Math.floor(part * times.length))] ?? Number.NaN;
  return {
    answersPerSecond: times.length / took,
    refusedPerSecond: refused / took,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    otherErrors: others + errors + timeouts,
  };
}

async function memoryMiB(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^service_memory_bytes (\d+)/m.exec(text)![1]) / 2 ** 20;
}

async function aDigit(): Promise<Buffer> {
  const sheet = await readFile('examples/training/data/digits-16.png');
  const body = await sharp(sheet).extract({ left: 0, top: 0, width: SIDE, height: SIDE }).toColourspace('b-w').raw().toBuffer();
  if (body.length !== PIXELS) throw new Error(`The digit has ${body.length} bytes.`);
  return body;
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
  const body = await aDigit();
  console.log(`${cpus().length} cores of ${cpus()[0]!.model}, load average ${loadavg()[0]!.toFixed(1)}, Node ${process.version}\n`);
  row(['engine', 'load', 'answers/s', '503/s', 'p50 ms', 'p99 ms', 'other errors', 'MiB after']);
  row(Array.from({ length: 8 }, () => '---'));
  for (const engine of values.engines.split(',').filter((name) => name !== '')) {
    const { url, stop } = await start(engine, device, workers);
    await load(url, body, Math.min(seconds, 5), BUSY_CONNECTIONS); // JavaScript is compiled, memory has grown
    const { answersPerSecond: capacity } = await load(url, body, seconds, BUSY_CONNECTIONS);
    for (const [times, connections] of LOADS) {
      const loaded = await load(url, body, seconds, connections, times * capacity);
      const cells = [
        loaded.answersPerSecond,
        loaded.refusedPerSecond,
        loaded.p50Ms,
        loaded.p99Ms,
        String(loaded.otherErrors),
        await memoryMiB(url),
      ];
      row([engine, `${times} x ${capacity.toFixed(0)}/s`, ...cells]);
    }
    await stop();
  }
  if (soak > 0) {
    const { url, stop } = await start('batched', device, workers);
    const [[, few], , [, many]] = LOADS;
    await load(url, body, Math.min(seconds, 5), many);
    const before = await memoryMiB(url);
    const [halves, wholes]: [Run[], Run[]] = [[], []];
    // What the service can do depends on what else the machine does, so it is measured again before each minute of overload.
    for (let minute = 0; minute < soak; minute++) {
      const { answersPerSecond: capacity } = await load(url, body, 5, BUSY_CONNECTIONS);
      halves.push(await load(url, body, 10, few, 0.5 * capacity));
      wholes.push(await load(url, body, 60, many, 2 * capacity));
      const [half, twice] = [halves.at(-1)!, wholes.at(-1)!];
      const ms = `p99 ${half.p99Ms.toFixed(0)} ms at half, ${twice.p99Ms.toFixed(0)} ms at twice`;
      console.log(
        `minute ${minute + 1}: capacity ${capacity.toFixed(0)}/s, ${ms}, ${twice.refusedPerSecond.toFixed(0)} refused/s, load average ${loadavg()[0]!.toFixed(1)}`,
      );
    }
    const errors = [...halves, ...wholes].reduce((sum, { otherErrors }) => sum + otherErrors, 0);
    console.log(`errors other than 503: ${errors}; memory ${before.toFixed(0)} MiB before, ${(await memoryMiB(url)).toFixed(0)} MiB after`);
    await stop();
  }
  return 0;
});
