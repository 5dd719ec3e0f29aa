// The service example: what it answers, what it refuses, what it cancels, and how it ends; and its page, on which a mouse draws digits.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect, createServer as createNetServer } from 'node:net';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LimitError, openDevice, type Device, type DeviceArray } from 'millrace';
import { DIGITS } from '../../examples/service/digits.js';
import { Metrics } from '../../examples/service/metrics.js';
import { plainShares } from '../../examples/service/plain.js';
import { readOptions } from '../../examples/service/options.js';
import { createDevicePredictor, ENGINES, type PredictorOptions } from '../../examples/service/predictor.js';
import { type Answer, createServer } from '../../examples/service/server.js';
import { PIXELS, SIDE } from '../../examples/training/shape.js';
import { launchChromium, noChromium } from '../support/chromium.js';
import { Held } from '../support/held-predictor.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = fileURLToPath(new URL('../../build/js/examples/service/main.js', import.meta.url));
const DATA = fileURLToPath(new URL('../../examples/training/data', import.meta.url));
const PHOTOS = fileURLToPath(new URL('../../examples/photos/images', import.meta.url));
const parameters = new Float32Array(Uint8Array.from(readFileSync(new URL('../../examples/service/digits.f32', import.meta.url))).buffer);
const OPTIONS: PredictorOptions = { engine: 'batched', maxItems: 16, maxWaitMs: 1, maxQueue: 64, maxQueueMs: 60_000, targetLatencyMs: 20 };
const BYTES = { 'content-type': 'application/octet-stream' };
const RUN_MS = 60_000;

/** The first digits of the test set, and what they are. */
const digits: Uint8Array[] = [];
const labels: number[] = [];
let device: Device;
let onDevice: DeviceArray<'f32'>;
beforeAll(async () => {
  if (!existsSync(MAIN)) throw new Error('The examples are not compiled: node scripts/build.mjs --with-examples');
  const all = JSON.parse(readFileSync(`${DATA}/labels.json`, 'utf8')) as Record<string, string>;
  const { data, info } = await sharp(`${DATA}/digits-16.png`).toColourspace('b-w').raw().toBuffer({ resolveWithObject: true });
  for (let n = 0; n < 50; n++) {
    const first = Math.floor(n / 25) * SIDE * info.width + (n % 25) * SIDE;
    digits.push(Uint8Array.from({ length: PIXELS }, (_, at) => data[first + Math.floor(at / SIDE) * info.width + (at % SIDE)]!));
    labels.push(Number(all['digits-16.png']![n]));
  }
  device = await openDevice('cpu');
  onDevice = device.from(parameters);
});
afterAll(async () => {
  onDevice[Symbol.dispose]();
  await device.close();
});

describe('the answers', () => {
  test('are those of plain TypeScript, by HTTP in batches', { timeout: RUN_MS }, async () => {
    await using digitReader = await createDevicePredictor(device, DIGITS, onDevice, OPTIONS);
    await using app = await createServer({ digits: digitReader }, new Metrics(), OPTIONS);
    const responses = await Promise.all(
      digits.map((payload, n) =>
        n % 2 === 0
          ? app.inject({ method: 'POST', url: '/digit', headers: BYTES, payload: Buffer.from(payload) })
          : app.inject({ method: 'POST', url: '/digit', payload: { pixels: [...payload] } }),
      ),
    );
    const answers = responses.map((response) => response.json<Answer>());
    expect(answers.filter(({ digit }, n) => digit === labels[n]).length).toBeGreaterThan(45);
    for (const [n, { shares }] of answers.entries()) {
      plainShares(parameters, digits[n]!).forEach((share, at) => expect(shares[at]).toBeCloseTo(share, 4));
    }
    const { batches } = digitReader.report()!;
    expect(batches.meanItems).toBeGreaterThan(1);
  });

  test('are the same one by one', async () => {
    await using digitReader = await createDevicePredictor(device, DIGITS, onDevice, { ...OPTIONS, engine: 'single' });
    for (const pixels of digits.slice(0, 5)) {
      const shares = await digitReader.run(pixels);
      plainShares(parameters, pixels).forEach((share, at) => expect(shares[at]).toBeCloseTo(share, 4));
    }
  });

  test('come over a WebSocket, of the newest picture only', async () => {
    const digitReader = new Held();
    const metrics = new Metrics();
    await using app = await createServer({ digits: digitReader }, metrics, OPTIONS);
    await app.ready();
    const socket = await app.injectWS('/draw');
    const answer = once(socket, 'message');
    for (const pixels of digits.slice(0, 2)) socket.send(pixels);
    await digitReader.until(2);
    expect(digitReader.requests.map(({ signal }) => signal?.aborted)).toEqual([true, false]);
    digitReader.requests[1]!.answer(Float32Array.of(0, 0, 0, 1, 0, 0, 0, 0, 0, 0));
    expect((JSON.parse(String((await answer)[0])) as Answer).digit).toBe(3);
    expect([metrics.digits.value('answered'), metrics.digits.value('cancelled')]).toEqual([1, 1]);
    socket.terminate();
  });
});

describe('what is no answer', () => {
  test('is 400 for what is no digit', async () => {
    const metrics = new Metrics();
    await using app = await createServer({ digits: new Held() }, metrics, OPTIONS);
    for (const payload of [Buffer.alloc(783), Buffer.alloc(785)]) {
      expect((await app.inject({ method: 'POST', url: '/digit', headers: BYTES, payload })).statusCode).toBe(400);
    }
    for (const payload of [{}, { pixels: [1, 2] }, { pixels: Array.from({ length: PIXELS }, () => 256) }]) {
      expect((await app.inject({ method: 'POST', url: '/digit', payload })).statusCode).toBe(400);
    }
    expect((await app.inject({ method: 'POST', url: '/digit', headers: BYTES, payload: Buffer.alloc(1 << 20) })).statusCode).toBe(413);
    const untyped = await app.inject({ method: 'POST', url: '/digit', payload: Buffer.from(digits[0]!) });
    expect([untyped.statusCode, untyped.json<{ error: string }>().error]).toEqual([
      415,
      `The content-type of a digit is application/octet-stream, with ${PIXELS} bytes, or application/json.`,
    ]);
    expect(metrics.digits.value('invalid')).toBe(7);
    expect((await app.inject('/favicon.ico')).statusCode).toBe(204);
  });

  test('is 503 with Retry-After when too many requests wait, whether that is seen before the body or after it', async () => {
    const full = new Held();
    const metrics = new Metrics();
    await using app = await createServer({ digits: full }, metrics, OPTIONS);
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    full.waiting = OPTIONS.maxQueue;
    // Its body never comes.
    const early = connect({ port: Number(new URL(url).port), host: '127.0.0.1' });
    early.write(`POST /digit HTTP/1.1\r\nhost: a\r\ncontent-type: application/octet-stream\r\ncontent-length: ${PIXELS}\r\n\r\n`);
    expect(String((await once(early, 'data'))[0])).toMatch(/^HTTP\/1.1 503 .*retry-after: 1\r\n.*"Too many requests wait."/is);
    early.destroy();
    // More than leave in a turn of the event loop.
    const burst = await Promise.all(Array.from({ length: 40 }, () => post(url, digits[0]!)));
    expect(new Set(burst.map(({ status }) => status))).toEqual(new Set([503]));
    full.waiting = 0;
    full.run = () => Promise.reject(new LimitError('ERR_MILLRACE_LIMIT', 'full', 64, async () => undefined));
    const late = await post(url, digits[0]!);
    expect([late.status, late.headers.get('retry-after'), await late.json()]).toEqual([503, '1', { error: 'Too many requests wait.' }]);
    expect(full.requests).toHaveLength(0);
    expect(metrics.digits.value('refused')).toBe(42);
    expect((await app.inject('/health')).statusCode).toBe(200);
  });

  test('an overloaded batcher answers some and refuses the others', async () => {
    await using digitReader = await createDevicePredictor(device, DIGITS, onDevice, { ...OPTIONS, maxItems: 2, maxQueue: 2 });
    await using app = await createServer({ digits: digitReader }, new Metrics(), { maxQueue: 2 });
    const send = () => app.inject({ method: 'POST', url: '/digit', headers: BYTES, payload: Buffer.from(digits[0]!) });
    const codes = (await Promise.all(Array.from({ length: 60 }, send))).map(({ statusCode }) => statusCode);
    expect(new Set(codes)).toEqual(new Set([200, 503]));
  });

  test('a client that goes away cancels its request', async () => {
    const digitReader = new Held();
    const metrics = new Metrics();
    await using app = await createServer({ digits: digitReader }, metrics, OPTIONS);
    await app.listen({ port: 0, host: '127.0.0.1' });
    const socket = connect({ port: (app.server.address() as { port: number }).port, host: '127.0.0.1' });
    socket.write(`POST /digit HTTP/1.1\r\nhost: a\r\ncontent-type: application/octet-stream\r\ncontent-length: ${PIXELS}\r\n\r\n`);
    socket.write(digits[0]!);
    await digitReader.until(1);
    const { signal } = digitReader.requests[0]!;
    expect(signal!.aborted).toBe(false);
    const aborted = once(signal!, 'abort');
    socket.destroy();
    await aborted;
    while (metrics.digits.value('cancelled') === 0) await new Promise(setImmediate);
    expect([metrics.digits.value('cancelled'), metrics.digits.value('failed')]).toEqual([1, 0]);
  });
});

test('/health and /ready tell a lost device, and /metrics adds up the threads', async () => {
  const shared = Metrics.share(2);
  const [one, other] = [new Metrics(shared, 0), new Metrics(shared, 1)];
  const state: { trouble?: string } = {};
  await using app = await createServer({ digits: new Held() }, one, { ...OPTIONS, trouble: () => state.trouble });
  one.digits.answered(3);
  other.digits.answered(30);
  other.digits.count('refused');
  const { body, headers } = await app.inject('/metrics');
  expect(headers['content-type']).toContain('version=0.0.4');
  for (const line of [
    'service_answered_total{model="digits"} 2',
    'service_refused_total{model="digits"} 1',
    'service_answer_seconds_bucket{model="digits",le="0.005"} 1',
    'service_answer_seconds_bucket{model="digits",le="+Inf"} 2',
    'service_answer_seconds_count{model="digits"} 2',
    'service_answered_total{model="faces"} 0',
  ]) {
    expect(body.split('\n')).toContain(line);
  }
  for (const url of ['/health', '/ready']) expect((await app.inject(url)).statusCode).toBe(200);
  state.trouble = 'The device is lost.';
  for (const url of ['/health', '/ready']) expect((await app.inject(url)).json()).toEqual({ status: state.trouble });
});

/** The program, and the address that it prints. */
async function start(
  ...args: readonly string[]
): Promise<{ readonly child: ChildProcess; readonly lines: Interface; readonly url: string }> {
  const child = spawn(process.execPath, [MAIN, '--port', '0', '--device', 'cpu', ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout!);
  const [line] = (await once(lines, 'line')) as [string];
  return { child, lines, url: /http:\S+/.exec(line)![0] };
}

const post = (url: string, pixels: Uint8Array): Promise<Response> =>
  fetch(`${url}/digit`, { method: 'POST', headers: BYTES, body: Uint8Array.from(pixels) });

test('several threads answer behind one port, and SIGTERM ends the service when its requests are answered', {
  timeout: RUN_MS,
}, async () => {
  // However busy this machine is.
  const { child, url, lines } = await start('--no-faces', '--workers', '2', '--drain-ms', '2000', '--max-queue-ms', '60000');
  try {
    const answers = await Promise.all(digits.slice(0, 20).map(async (pixels) => (await (await post(url, pixels)).json()) as Answer));
    expect(answers.filter(({ digit }, n) => digit === labels[n]).length).toBeGreaterThan(17);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('\nservice_answered_total{model="digits"} 20\n');
    // A request whose head the service has, and not yet its body, when the signal comes.
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' });
    const head = [
      'POST /digit HTTP/1.1',
      'host: a',
      'content-type: application/octet-stream',
      `content-length: ${PIXELS}`,
      'expect: 100-continue',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    expect(String((await once(socket, 'data'))[0])).toContain('100 Continue');
    const ended = once(child, 'exit');
    const stopping = once(lines, 'line');
    child.kill('SIGTERM');
    expect(await stopping).toEqual(['stopping']);
    // New connections are accepted for a while, and learn that they are to go elsewhere.
    let ready: Response;
    do ready = await fetch(`${url}/ready`);
    while (ready.ok);
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'stopping' }]);
    const late = await post(url, digits[0]!);
    expect([late.status, late.headers.get('connection')]).toEqual([200, 'close']);
    socket.write(digits[0]!);
    expect(String((await once(socket, 'data'))[0])).toContain('200 OK');
    expect(await ended).toEqual([0, null]);
    await expect(fetch(url)).rejects.toThrow();
  } finally {
    child.kill('SIGKILL');
  }
});

test('a request waits for the target at most, unless the command says otherwise', () => {
  expect(readOptions([])).toMatchObject({ targetLatencyMs: 20, maxQueueMs: 20 });
  expect(readOptions(['--target-latency-ms', '50'])).toMatchObject({ targetLatencyMs: 50, maxQueueMs: 50 });
  expect(readOptions(['--max-queue-ms', '70'])).toMatchObject({ targetLatencyMs: 20, maxQueueMs: 70 });
});

test('the command lists its options on request', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, '--help'], { encoding: 'utf8' });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: expect.stringMatching(/^Usage: service/), stderr: '' });
});

test('the command refuses what it does not understand, in one line', { timeout: RUN_MS }, async () => {
  const taken = createNetServer();
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as { port: number };
  expect(() => readOptions(['--max-queue', '3'])).toThrow('--max-queue 3 is not a whole number from 64 to 1000000.');
  const refused = [
    [['--engine', 'steam'], `--engine steam is none of ${ENGINES.join(', ')}.`],
    [['--parameters', '/none'], 'The parameters cannot be read'],
    [['--port', String(port)], `Port ${port} of 127.0.0.1 is taken (--port).`],
    [['--port', String(port), '--workers', '2'], `Port ${port} of 127.0.0.1 is taken (--port).`],
    [['--device', 'tpu:0'], "The device ('tpu:0') is none of"],
  ] as const;
  const refuse = async ([args, message]: (typeof refused)[number]): Promise<void> => {
    const child = spawn(process.execPath, [MAIN, '--device', 'cpu', '--no-faces', ...args], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [[stderr]] = (await Promise.all([once(child.stderr, 'data'), once(child, 'exit')])) as [[Buffer], unknown];
    expect(String(stderr).split('\n')).toEqual([expect.stringContaining(message), '']);
    expect(child.exitCode).toBe(1);
  };
  await Promise.all(refused.map(refuse));
  taken.close();
});

test.skipIf(noChromium)(
  `a digit that a mouse draws is read, and the face of a picture that is chosen is marked${noChromium ? `: ${noChromium}` : ''}`,
  { timeout: RUN_MS },
  async () => {
    const { child, url } = await start();
    const browser = await launchChromium();
    try {
      const page = await browser.newPage({ viewport: { width: 700, height: 560 } });
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.goto(url);
      const box = (await page.locator('canvas').boundingBox())!;
      const draw = async (points: readonly (readonly [number, number])[]): Promise<void> => {
        for (const [n, [x, y]] of points.entries()) {
          await page.mouse.move(box.x + x, box.y + y);
          if (n === 0) await page.mouse.down();
        }
        await page.mouse.up();
      };
      const shown = async (digit: string): Promise<void> => page.locator('#digit', { hasText: digit }).waitFor({ timeout: 20_000 });
      await draw([
        [145, 40],
        [140, 140],
        [135, 240],
      ]);
      await shown('1');
      await page.getByRole('button', { name: 'Clear' }).click();
      await draw(
        Array.from({ length: 33 }, (_, n) => [140 + 60 * Math.cos((n * Math.PI) / 16), 140 + 90 * Math.sin((n * Math.PI) / 16)] as const),
      );
      await shown('0');
      await page.getByRole('button', { name: 'Clear' }).click();
      await draw([
        [70, 60],
        [140, 58],
        [210, 60],
        [180, 120],
        [150, 180],
        [125, 250],
      ]);
      await shown('7');
      const picture = process.env['MILLRACE_TEST_PICTURE'];
      if (picture !== undefined) await page.screenshot({ path: picture });
      await page.getByRole('link', { name: 'Find faces' }).click();
      await page.locator('#file').setInputFiles(`${PHOTOS}/astronaut.png`);
      await page.locator('#state', { hasText: '1 face' }).waitFor({ timeout: 20_000 });
      if (picture !== undefined) await page.screenshot({ path: picture.replace('.png', '-faces.png'), fullPage: true });
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    }
  },
);
