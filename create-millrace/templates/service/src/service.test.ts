import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { openDevice } from 'millrace';
import { createService } from './service.js';

test('requests that come together get their own answers', async () => {
  const device = await openDevice('cpu');
  const references = device.from([1, 0, 0, 1], { shape: [2, 2] });
  const server = await createService(device, references);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const post = (body: string): Promise<Response> => fetch(url, { method: 'POST', body, headers: { connection: 'close' } });
  const responses = await Promise.all(
    [
      [3, 1],
      [1, 5],
      [2, 1],
    ].map((vector) => post(JSON.stringify({ vector }))),
  );
  assert.deepEqual(await Promise.all(responses.map((response) => response.json())), [
    { best: 0, score: 3 },
    { best: 1, score: 5 },
    { best: 0, score: 2 },
  ]);
  for (const body of ['', '{"vector":[1]}', '{"vector":[1,"2"]}']) assert.equal((await post(body)).status, 400);
  server.close();
  await once(server, 'close');
  await device.close();
});
