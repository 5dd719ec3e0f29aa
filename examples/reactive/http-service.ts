// An HTTP service with two lanes and room for four requests that wait. It answers 503 to the others, and the clients try again.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLanes, f32, input, kernel, LimitError, openDevice, output, type DeviceSpec } from 'millrace';
import { defer, from, lastValueFrom, map, mergeMap, reduce, retry, timer } from 'rxjs';

const CLIENTS = 12;

const cubes = kernel('cubes', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i]! * x[i]! * x[i]!;
});

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
await using lanes = createLanes(device, { depth: 2, maxQueue: 4 }, async (value: number, lane) => {
  await everyoneCame;
  const x = lane.full(1000, value);
  const y = lane.empty(1000);
  lane.stream.launch(cubes, x.length, { x, y });
  return await y.item(999);
});

let refused = 0;
const answer = async (request: IncomingMessage, response: ServerResponse) => {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  try {
    const result = await lanes.run(Number(request.url?.slice(1)), { signal: gone.signal });
    response.end(String(result));
  } catch (error) {
    const isFull = error instanceof LimitError;
    if (isFull) refused++;
    response.writeHead(isFull ? 503 : 500, isFull ? { 'retry-after': '1' } : {}).end();
  }
};
const server = createServer((request, response) => void answer(request, response));
/** Only for this program, which shows twelve requests at the same time. */
const everyoneCame = new Promise<void>((resolve) => {
  let requests = 0;
  server.on('request', () => {
    if (++requests === CLIENTS) resolve();
  });
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const { port } = server.address() as AddressInfo;

const ask = (value: number) =>
  defer(async () => {
    const response = await fetch(`http://127.0.0.1:${port}/${value}`);
    if (!response.ok) throw new Error(`The service answered ${response.status}.`);
    return Number(await response.text());
  }).pipe(retry({ count: 100, delay: () => timer(20) }));

const sum$ = from(Array.from({ length: CLIENTS }, (_, n) => n)).pipe(
  mergeMap((n) => ask(n).pipe(map((cube) => (cube === n ** 3 ? 1 : 0)))),
  reduce((sum, one) => sum + one, 0),
);
console.log('right answers:', await lastValueFrom(sum$)); // prints: right answers: 12
console.log('some were refused first:', refused >= CLIENTS - 6); // prints: some were refused first: true
server.close();
server.closeIdleConnections();
