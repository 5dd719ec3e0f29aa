// The faces of the service example: what is found and refused, and that one picture that cannot be read fails no other one.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CpuTasks, type Device, type DeviceArray, openDevice } from 'millrace';
import * as decoding from '../../examples/service/decode.js';
import { FaceNetwork } from '../../examples/service/face-network.js';
import { plainBoxes } from '../../examples/service/face-plain.js';
import { createFaces, type Faces, MOST_PICTURES, readFaceParameters } from '../../examples/service/faces.js';
import { Metrics } from '../../examples/service/metrics.js';
import { createDevicePredictor, type Predictor, type PredictorOptions } from '../../examples/service/predictor.js';
import { createServer } from '../../examples/service/server.js';
import { Held } from '../support/held-predictor.js';

const PHOTOS = fileURLToPath(new URL('../../examples/photos/images', import.meta.url));
const OPTIONS: PredictorOptions = {
  engine: 'batched',
  maxItems: 2,
  maxWaitMs: 1,
  maxQueue: MOST_PICTURES,
  maxQueueMs: 60_000,
  targetLatencyMs: 200,
};
const JPEG = { 'content-type': 'image/jpeg' };
/** What `node test/support/face-reference.mjs` prints: the answer of face-api itself to the same pixels. */
const REFERENCE = { score: 0.967065, x: 162.770794, y: 75.331339, width: 116.295, height: 111.588311 };
/** Decodes on this thread: vitest's cannot load TypeScript in threads of a pool. */
const here = { threads: 1, run: async (_name: string, task: decoding.DecodeTask) => decoding.decode(task) } as CpuTasks<typeof decoding>;
const model = createFaces(here);
let device: Device;
let learnt: Float32Array;
let facesOnDevice: DeviceArray<'f32'>;
let finder: Predictor<Uint8Array, Faces>;
beforeAll(async () => {
  device = await openDevice('cpu');
  learnt = await readFaceParameters();
  facesOnDevice = device.from(learnt);
  finder = await createDevicePredictor(device, model, facesOnDevice, OPTIONS);
});
afterAll(async () => {
  await finder[Symbol.asyncDispose]();
  facesOnDevice[Symbol.dispose]();
  await device.close();
});
const serve = (faces: Predictor<Uint8Array, Faces>, metrics: Metrics = new Metrics()): ReturnType<typeof createServer> =>
  createServer({ digits: new Held(), faces }, metrics, OPTIONS);

test('boxes are those of plain TypeScript, in batches, where windows of each layer end at the border', async () => {
  const [side, batch] = [100, 3];
  const length = side * side * 3;
  let state = 1;
  const pixels = Uint8Array.from({ length: batch * length }, () => (state = (state * 48_271) % 2_147_483_647) >> 16);
  using network = new FaceNetwork(device, facesOnDevice, batch, side);
  using images = device.from(pixels);
  for (const count of [batch, 1]) {
    await using graph = network.capture(count);
    using answers = device.empty([count, 4 * 4 * 25]);
    device.stream.launch(graph, { images: images.subarray((batch - count) * length, batch * length), answers });
    const boxes = await answers.read();
    for (let n = 0; n < count; n++) {
      const from = (batch - count + n) * length;
      const expected = plainBoxes(learnt, pixels.subarray(from, from + length), side);
      const difference = Math.max(...expected.map((value, at) => Math.abs(value - boxes[n * expected.length + at]!)));
      expect(difference).toBeLessThan(1e-3);
    }
  }
});

test('a face of a photograph is where face-api finds it, and a cat is none', async () => {
  await using app = await serve(finder);
  const payload = readFileSync(`${PHOTOS}/astronaut.png`);
  const cat = await sharp(`${PHOTOS}/chelsea.png`).rotate(90).withMetadata({ orientation: 8 }).jpeg().toBuffer();
  const answers = await Promise.all([
    app.inject({ method: 'POST', url: '/faces', headers: { 'content-type': 'image/png' }, payload }),
    app.inject({ method: 'POST', url: '/faces', headers: JPEG, payload: cat }),
  ]);
  const [astronaut, none] = answers.map((response) => response.json<Faces>()) as [Faces, Faces];
  expect(none).toEqual({ width: 451, height: 300, faces: [] });
  expect(astronaut).toMatchObject({ width: 512, height: 512, faces: [expect.anything()] });
  const [{ score, ...box }] = astronaut.faces as [Faces['faces'][0]];
  expect(score).toBeCloseTo(REFERENCE.score, 4);
  for (const part of ['x', 'y', 'width', 'height'] as const) expect(Math.abs(box[part] - REFERENCE[part])).toBeLessThan(0.01);
});

test('what is no picture is 400 or 415, what is too large 413, and the others of its batch are answered', async () => {
  const metrics = new Metrics();
  await using app = await serve(finder, metrics);
  const send = async (payload: Buffer, headers: Readonly<Record<string, string>> = JPEG): Promise<readonly [number, string]> => {
    const response = await app.inject({ method: 'POST', url: '/faces', headers, payload });
    return [response.statusCode, response.json<{ error?: string }>().error ?? ''];
  };
  const picture = await sharp({ create: { width: 64, height: 48, channels: 3, background: 'gray' } })
    .jpeg()
    .toBuffer();
  const huge = Buffer.from(picture);
  huge.writeUInt32BE(0x4e20_4e20, huge.indexOf(Buffer.from([0xff, 0xc0])) + 5);
  const answers = await Promise.all([
    send(picture),
    send(picture.subarray(0, picture.length / 2)),
    send(huge),
    send(Buffer.from('GIF89a')),
    send(picture, { 'content-type': 'image/gif' }),
    send(Buffer.alloc(8 * 2 ** 20 + 1)),
  ]);
  expect(answers).toEqual([
    [200, ''],
    [400, expect.stringContaining('The picture cannot be read')],
    [413, 'The picture has 20000 x 20000 pixels, more than 32000000.'],
    [400, 'The body is neither a JPEG nor a PNG.'],
    [415, 'The content-type of a picture is image/jpeg or image/png.'],
    [413, expect.stringContaining('too large')],
  ]);
  expect([metrics.faces.value('answered'), metrics.faces.value('invalid'), metrics.faces.value('failed')]).toEqual([1, 5, 0]);
});

test(`more than ${MOST_PICTURES} at a time are 503, and a client that goes away makes room`, async () => {
  const held = new Held<Faces>();
  const metrics = new Metrics();
  await using app = await serve(held, metrics);
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const body = Buffer.from([0xff, 0xd8, 0xff]);
  const gone = new AbortController();
  const send = (signal?: AbortSignal): Promise<Response> =>
    fetch(`${url}/faces`, { method: 'POST', headers: JPEG, body, signal: signal ?? null });
  const first = send(gone.signal).catch((error: Error) => error.name);
  const others = Array.from({ length: MOST_PICTURES - 1 }, () => send());
  await held.until(MOST_PICTURES);
  const late = await send();
  expect([late.status, late.headers.get('retry-after')]).toEqual([503, '1']);
  gone.abort();
  expect(await first).toBe('AbortError');
  while (metrics.faces.value('cancelled') === 0) await new Promise(setImmediate);
  const next = send();
  await held.until(MOST_PICTURES + 1);
  for (const { answer } of held.requests) answer({ width: 1, height: 1, faces: [] });
  for (const response of await Promise.all([...others, next])) expect(response.status).toBe(200);
  expect([metrics.faces.value('answered'), metrics.faces.value('refused')]).toEqual([MOST_PICTURES, 1]);
});
