// Has it finished? `isComplete` of a stream, an event and an operation costs one load of memory, so a loop that has other
// things to do may ask as often as it likes.
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { Device } from 'millrace';

export async function run([device]: readonly [Device]): Promise<void> {
  const stream = device.createStream();
  using x = stream.zeros(16);
  assert.ok(device.createEvent().isComplete, 'never recorded counts as complete');

  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  stream.hold(() => released, { timeoutMs: 30_000 });
  const fill = stream.fill(x, 1);
  using event = stream.record();
  let others = 0;
  while (others < 100) {
    assert.deepEqual([stream.isComplete, event.isComplete, fill.isComplete], [false, false, false]);
    others++;
    await turn();
  }
  release();
  while (!event.isComplete) {
    others++;
    await turn();
  }
  assert.ok(fill.isComplete);
  await stream.close();
}
