// Two graphs on two devices, launched at once. Each device has a worker of its own, and neither launch waits for the other.
import assert from 'node:assert/strict';
import { f32, type Device } from 'millrace';
import { addTo } from './kernels.js';

export async function run(devices: readonly [Device, Device]): Promise<void> {
  const n = 4096;
  await Promise.all(devices.map((device) => device.compile(addTo)));

  /** Five launches, captured: nothing runs here. */
  const prepare = (device: Device) => {
    const x = device.zeros(n);
    const graph = device.stream.capture({ value: f32 }, (stream, { value }) => {
      for (let k = 0; k < 5; k++) stream.launch(addTo, n, { x, value });
    });
    return { x, graph };
  };
  const [one, two] = [prepare(devices[0]), prepare(devices[1])];
  assert.deepEqual(
    [one.graph.device.info.id, two.graph.device.info.id],
    devices.map(({ info }) => info.id),
  );

  // The first device holds its launch back until the second one has finished.
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  devices[0].stream.hold(() => gate, { timeoutMs: 30_000 });
  const first = one.graph.launch({ value: 1 });
  const second = two.graph.launch({ value: 2 });
  await second.done;
  assert.equal(first.isComplete, false);
  release();
  await first.done;

  // Launches keep their own values, however many wait.
  for (let round = 1; round <= 10; round++) for (const { graph } of [one, two]) graph.launch({ value: round });
  const values = await Promise.all([one.x.read(), two.x.read()]);
  assert.ok(values[0].every((value) => value === 5 * (1 + 55)));
  assert.ok(values[1].every((value) => value === 5 * (2 + 55)));

  await Promise.all([one.graph.close(), two.graph.close()]);
  for (const { x } of [one, two]) x[Symbol.dispose]();
}
