import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDevice } from 'millrace';
import { softplus } from './index.js';

test('softplus is that of JavaScript, and overflows nowhere', async () => {
  const device = await openDevice('cpu');
  const values = [-100, -1, 0, 1, 20, 100];
  await device.scope(async () => {
    const y = softplus(device.from(values, { shape: [2, 3] }));
    assert.deepEqual(y.shape, [2, 3]);
    for (const [at, one] of (await y.read()).entries())
      assert.ok(Math.abs(one - (Math.max(values[at]!, 0) + Math.log1p(Math.exp(-Math.abs(values[at]!))))) < 1e-5);
  });
  await device.close();
});
