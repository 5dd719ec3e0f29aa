// Which stream does the work? The one whose method is called, whatever is current, and for copies of any device: also one
// that owns neither end.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';
import { addTo } from './kernels.js';

export async function run([first, second]: readonly [Device, Device]): Promise<void> {
  const [a, b] = [first.createStream({ label: 'a' }), second.createStream({ label: 'b' })];
  using x = first.zeros(64);
  using y = second.zeros(64);
  using z = second.zeros(64);

  b.run(() => {
    // The current stream has no say here.
    const launch = a.launch(addTo, 64, { x, value: 3 });
    assert.deepEqual([launch.stream, launch.device], ['a', first.info.id]);
  });

  // The source's stream pushes, and the destination's readers wait for it by themselves.
  const push = a.copy(y, x);
  assert.equal(push.stream, 'a');
  // A stream of the first device copies between two arrays of the second.
  a.copy(z, y);
  assert.ok((await z.read()).every((value) => value === 3));

  // On explicit streams: the destination's stream waits for the pushing one.
  const pusher = first.createStream({ ordering: 'explicit' });
  const taker = second.createStream({ ordering: 'explicit' });
  pusher.waitStream(first.stream);
  pusher.waitStream(a);
  pusher.fill(x, 8);
  pusher.copy(y, x);
  taker.waitStream(pusher);
  taker.copy(z, y);
  assert.ok((await z.read()).every((value) => value === 8));
  await Promise.all([a, b, pusher, taker].map((stream) => stream.close()));
}
