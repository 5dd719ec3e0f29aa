// The live example: the fluid and the filter compute what they should, a slow viewer does not hold up a fast one, and a mouse stirs the picture.
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Device, openDevice } from 'millrace';
import { Fluid } from '../../examples/live/fluid.js';
import { DEFAULTS, emptyFrame, type Frame, HEADER_BYTES, pixelsOf, readMessage } from '../../examples/live/frames.js';
import { edges } from '../../examples/live/kernels.js';
import { readOptions } from '../../examples/live/options.js';
import { createServer } from '../../examples/live/server.js';
import { ffmpeg, type Source, sourceOf, Steering } from '../../examples/live/sources.js';
import { Viewers } from '../../examples/live/viewers.js';
import { launchChromium, noChromium } from '../support/chromium.js';

const [WIDTH, HEIGHT] = [96, 54];
let device: Device;
beforeAll(async () => {
  device = await openDevice('cpu');
});
afterAll(() => device.close());

/** The centre of the dye. */
function centreOf(pixels: Uint8Array): readonly [x: number, y: number] {
  let [sum, across, down] = [0, 0, 0];
  for (const [at, value] of pixels.entries()) {
    sum += value;
    across += value * (at % WIDTH);
    down += value * Math.floor(at / WIDTH);
  }
  return [across / sum, down / sum];
}

test('a force moves the dye its way, and what flows into a cell flows out of it', { timeout: 60_000 }, async () => {
  await using fluid = new Fluid(device, WIDTH, HEIGHT);
  const pixels = new Uint8Array(WIDTH * HEIGHT);
  await fluid.step([], 1, 1, pixels);
  expect(Math.max(...pixels)).toBe(0);
  await fluid.step([[40, 27, 4, 0]], 1, 1, pixels);
  const start = centreOf(pixels);
  expect(start[0]).toBeCloseTo(40, 0);
  for (let n = 0; n < 10; n++) await fluid.step([], 1, 1, pixels);
  const [x, y] = centreOf(pixels);
  expect(x - start[0]).toBeGreaterThan(2);
  expect(Math.abs(y - start[1])).toBeLessThan(0.2);
  const [u, v] = (await fluid.velocity()) as [Float32Array, Float32Array];
  let [most, fastest] = [0, 0];
  for (let row = 2; row < HEIGHT - 2; row++)
    for (let column = 2; column < WIDTH - 2; column++) {
      const at = row * WIDTH + column;
      most = Math.max(most, Math.abs(u[at + 1]! - u[at - 1]! + v[at + WIDTH]! - v[at - WIDTH]!) / 2);
      fastest = Math.max(fastest, Math.abs(u[at]!));
    }
  expect(fastest).toBeGreaterThan(0.2);
  expect(most / fastest).toBeLessThan(0.1);
});

test('the filter is that of plain JavaScript', async () => {
  const shape = [HEIGHT, WIDTH] as const;
  const grey = Uint8Array.from({ length: WIDTH * HEIGHT }, (_, at) => (at * 7919) % 251);
  const at = (row: number, column: number): number =>
    grey[Math.min(Math.max(row, 0), HEIGHT - 1) * WIDTH + Math.min(Math.max(column, 0), WIDTH - 1)]!;
  const expected = grey.map((_, n) => {
    const [row, column] = [Math.floor(n / WIDTH), n % WIDTH];
    const slope = (one: (step: number) => number): number => -one(-1) + one(1);
    const across = slope((step) => at(row - 1, column + step) + 2 * at(row, column + step) + at(row + 1, column + step));
    const down = slope((step) => at(row + step, column - 1) + 2 * at(row + step, column) + at(row + step, column + 1));
    return Math.min(Math.fround(0.25 * Math.fround(Math.sqrt(across * across + down * down))), 255);
  });
  using picture = device.from(grey, { shape });
  using edge = device.empty(shape, 'u8');
  device.stream.launch(edges, shape, { picture, edge, gain: 0.25 });
  expect(await edge.read()).toEqual(expected);
});

/** Serves a source, and gives its address; ends with the block. */
async function serve(source: Source, fps: number): Promise<AsyncDisposable & { readonly url: string; readonly viewers: Viewers }> {
  const ended = new AbortController();
  const [viewers, steering] = [new Viewers(), new Steering()];
  const app = await createServer(viewers, steering);
  await app.listen({ port: 0, host: '127.0.0.1' });
  const showing = (async () => {
    await viewers.present(ended.signal);
    for await (const frame of source(device, { width: WIDTH, height: HEIGHT, fps }, steering, ended.signal)) viewers.offer(frame);
  })();
  return {
    url: `127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    viewers,
    async [Symbol.asyncDispose]() {
      ended.abort();
      await showing;
      await app.close();
    },
  };
}

interface Client {
  send(text: string): void;
  terminate(): void;
  on(name: 'message', listener: (bytes: Buffer) => void): void;
}

test('a slow viewer gets the newest frame, and holds up nobody', { timeout: 30_000 }, async () => {
  const [viewers, steering] = [new Viewers(), new Steering()];
  await using app = await createServer(viewers, steering);
  await app.ready();
  const open = async (): Promise<Client> => (await app.injectWS('/frames')) as unknown as Client;
  const [fast, slow] = [await open(), await open()];
  const got: { readonly fast: number[]; readonly slow: number[] } = { fast: [], slow: [] };
  fast.on('message', (bytes) => {
    got.fast.push(bytes.readUInt32LE(0));
    fast.send('"shown"');
  });
  slow.on('message', (bytes) => got.slow.push(bytes.readUInt32LE(0)));
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await new Promise(setImmediate);
  };
  const FRAMES = 50;
  for (let number = 0; number < FRAMES; number++) {
    viewers.offer(emptyFrame(number, 16, 16));
    await until(() => got.fast.length > number);
  }
  expect(got.fast).toEqual(Array.from({ length: FRAMES }, (_, number) => number));
  expect(got.slow).toEqual([0, 1]);
  slow.send('"shown"');
  await until(() => got.slow.length === 3);
  // The newest one, and none of those between.
  expect(got.slow).toEqual([0, 1, FRAMES - 1]);
  expect(viewers.report()).toEqual([
    { sent: FRAMES, skipped: 0 },
    { sent: 3, skipped: FRAMES - 3 },
  ]);

  fast.send('[0.5, 0.5, 0.1, 0]');
  fast.send('{"force":0.25}');
  await until(() => steering.settings.force === 0.25);
  expect([steering.take(), steering.settings]).toEqual([[[0.5, 0.5, 0.1, 0]], { ...DEFAULTS, force: 0.25 }]);
  for (const text of ['', '[1,2]', '[0,0,0,2]', '{"toString":1}', '{"keep":"1"}', 'null', '7'])
    expect(readMessage(text), text).toBe(undefined);
  for (const one of [fast, slow]) one.terminate();
});

test.skipIf(noChromium)(
  `two pages show the fluid, and a mouse stirs it${noChromium ? `: ${noChromium}` : ''}`,
  { timeout: 60_000 },
  async () => {
    await using live = await serve(sourceOf('fluid'), 60);
    const browser = await launchChromium();
    try {
      const pages = await Promise.all([0, 1].map(() => browser.newPage({ viewport: { width: 800, height: 600 } })));
      const complaints: string[] = [];
      for (const page of pages) page.on('pageerror', ({ message }) => complaints.push(message));
      await Promise.all(pages.map((page) => page.goto(`http://${live.url}`)));
      const [stirred, other] = pages as [(typeof pages)[0], (typeof pages)[0]];
      const brightest = `(() => {
      const canvas = document.getElementById('picture');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return canvas.width === ${WIDTH} ? data.reduce((most, value, at) => (at % 4 === 0 && value > most ? value : most), 0) : 0;
    })()`;
      await Promise.all(pages.map((page) => page.waitForFunction(`(${brightest}) > 0`)));
      const box = (await stirred.locator('canvas').boundingBox())!;
      await stirred.mouse.move(box.x + 200, box.y + 220);
      await stirred.mouse.down();
      for (let step = 1; step <= 20; step++) await stirred.mouse.move(box.x + 200 + 15 * step, box.y + 220 - 60 * Math.sin(step / 3));
      await stirred.mouse.up();
      // The one who does not stir sees it too.
      await other.waitForFunction(`(${brightest}) > 150`, undefined, { timeout: 20_000 });
      const code = await stirred.evaluate(`new Promise((resolve) => {
      const socket = new WebSocket(location.origin.replace('http', 'ws') + '/frames');
      socket.onopen = () => socket.send('{"force":9}');
      socket.onclose = ({ code }) => resolve(code);
    })`);
      expect(code).toBe(1003);
      const picture = process.env['MILLRACE_TEST_PICTURE'];
      if (picture !== undefined) await stirred.screenshot({ path: picture });
      expect(complaints).toEqual([]);
      expect(live.viewers.report().every(({ sent }) => sent > 2)).toBe(true);
    } finally {
      await browser.close();
    }
  },
);

test("another site's page may not steer", async () => {
  await using live = await serve(sourceOf('fluid'), 60);
  const statusFor = async (origin: string): Promise<number | undefined> => {
    const headers = {
      origin,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    };
    const asked = request(`http://${live.url}/frames`, { headers });
    const answer = new Promise<number | undefined>((resolve, reject) => {
      asked.on('error', reject);
      asked.on('response', ({ statusCode }) => resolve(statusCode));
      asked.on('upgrade', ({ statusCode }, socket) => {
        socket.destroy();
        resolve(statusCode);
      });
    });
    asked.end();
    return answer;
  };
  expect(await statusFor('http://elsewhere.example')).toBe(403);
  expect(await statusFor(`http://${live.url}`)).toBe(101);
});

test('the clip is shown through the filter, and what is not understood is refused', { timeout: 30_000 }, async () => {
  const ended = new AbortController();
  const frames: Frame[] = [];
  for await (const frame of sourceOf('clip')(device, { width: WIDTH, height: HEIGHT, fps: 240 }, new Steering(), ended.signal)) {
    if (frames.push(frame) === 5) break;
  }
  ended.abort();
  expect(frames.map(({ number }) => number)).toEqual([0, 1, 2, 3, 4]);
  for (const frame of frames) expect(pixelsOf(frame).filter((value) => value > 40).length).toBeGreaterThan(50);
  expect(frames[0]!.bytes.length).toBe(HEADER_BYTES + WIDTH * HEIGHT);
  for (const [args, message] of [
    [['--source', 'film'], /none of fluid, clip/],
    [['--source', 'ffmpeg:'], /none of fluid, clip/],
    [['--size', '10'], /not as 384x216/],
    [['--fps', '0'], /--fps 0/],
    [['--speed', '1'], /--help/],
  ] as const)
    expect(() => readOptions(args)).toThrow(message);
  const path = process.env['PATH'];
  process.env['PATH'] = '/nowhere';
  try {
    const none = ffmpeg('film.mp4', { width: WIDTH, height: HEIGHT, fps: 30 }, new AbortController().signal);
    await expect(none.next()).rejects.toThrow(/ffmpeg is not installed/);
  } finally {
    process.env['PATH'] = path;
  }
});
