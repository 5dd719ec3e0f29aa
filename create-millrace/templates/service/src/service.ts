// POST / with { "vector": [...] } answers { "best": n, "score": x }. Requests that come together share a launch.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createBatcher, type Device, type DeviceArray, LimitError } from 'millrace';
import { score } from './kernels.js';

const MOST_BYTES = 1 << 20;

export interface Answer {
  readonly best: number;
  readonly score: number;
}

/** The service. It does not listen yet; `references` stays the caller's. */
export async function createService(device: Device, references: DeviceArray<'f32'>): Promise<Server> {
  const [count, width] = references.shape as readonly [number, number];
  await device.compile(score);
  const batcher = createBatcher(device, { maxItems: 64, maxWaitMs: 1, maxQueue: 256 }, async (vectors: readonly Float32Array[], lane) => {
    const all = new Float32Array(vectors.length * width);
    for (const [at, vector] of vectors.entries()) all.set(vector, at * width);
    const requests = lane.from(all, { shape: [vectors.length, width] });
    const scores = lane.empty([vectors.length, count]);
    lane.stream.launch(score, [vectors.length, count], { requests, references, scores });
    const rows = await scores.list({ rank: 2 });
    return rows.map((row): Answer => {
      const most = Math.max(...row);
      return { best: row.indexOf(most), score: most };
    });
  });
  const server = createServer((request, response) => {
    const answer = (status: number, body: unknown): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.method === 'GET') return answer(device.state === 'open' ? 200 : 503, { state: device.state });
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    readVector(request, width)
      .then((vector) => (vector === undefined ? undefined : batcher.run(vector, { signal: gone.signal })))
      .then((result) => (result === undefined ? answer(400, { error: `A vector is ${width} numbers.` }) : answer(200, result)))
      .catch((error: unknown) => {
        if (gone.signal.aborted) return;
        if (error instanceof LimitError) answer(503, { error: 'Too many requests wait.' });
        else answer(500, { error: 'The device failed.' });
      });
  });
  server.on('close', () => void batcher.close());
  return server;
}

async function readVector(request: IncomingMessage, width: number): Promise<Float32Array | undefined> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > MOST_BYTES) return undefined;
  }
  try {
    const { vector } = JSON.parse(text) as { readonly vector?: unknown };
    const isVector = Array.isArray(vector) && vector.length === width && vector.every((one) => typeof one === 'number' && Number.isFinite(Math.fround(one)));
    return isVector ? Float32Array.from(vector as number[]) : undefined;
  } catch {
    return undefined;
  }
}
