// The time between two events is the device's, between two places of its streams: what the host does meanwhile, and what
// other streams are given later, is not in it.
import assert from 'node:assert/strict';
import { elapsed, type Device } from 'millrace';
import { spin } from './kernels.js';

export async function run([device]: readonly [Device]): Promise<number> {
  await device.compile(spin);
  const [timed, other] = [device.createStream(), device.createStream()];
  using x = timed.zeros(1);
  using y = other.zeros(1);
  using start = timed.record({ timing: true });
  timed.launch(spin, 1, { x, steps: 200_000 });
  using end = timed.record({ timing: true });

  // Comes after the end, and takes as long as it likes.
  let release = (): void => undefined;
  other.waitEvent(end);
  const released = new Promise<void>((resolve) => (release = resolve));
  other.hold(() => released, { timeoutMs: 30_000 });
  const late = other.fill(y, 1);

  const milliseconds = await elapsed(start, end);
  assert.equal(late.isComplete, false);
  assert.ok(milliseconds > 0);
  assert.ok(Math.abs((await elapsed(end, start)) + milliseconds) < 1e-6);
  release();
  await Promise.all([timed.close(), other.close()]);
  return milliseconds;
}
