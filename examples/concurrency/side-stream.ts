// Work on a side stream whose results the main one uses: the consumer waits for the producer, also when the consumer is the
// default stream. That is all there is to "sending a value between streams"; nothing moves.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';
import { addTo, saxpy } from './kernels.js';

export async function run([device]: readonly [Device]): Promise<void> {
  const n = 2048;
  await device.compile(addTo, saxpy);
  const main = device.createStream({ ordering: 'explicit', label: 'main' });
  const side = device.createStream({ ordering: 'explicit', label: 'side' });
  using weights = main.ones(n);
  using gradient = main.zeros(n);

  for (let iteration = 0; iteration < 3; iteration++) {
    // The side stream may begin when the main one has the gradient ready to be written.
    side.waitStream(main);
    side.launch(addTo, n, { x: gradient, value: 1 });
    // The main one may use it when the side stream is through.
    main.waitStream(side);
    main.launch(saxpy, n, { a: 0.5, x: gradient, y: weights });
  }
  assert.ok((await weights.read()).every((value) => value === 1 + 0.5 * (1 + 2 + 3)));
  await Promise.all([main.close(), side.close()]);
}
