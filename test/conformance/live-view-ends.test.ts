// A live view of devices that end: each test has a device of its own.
import { expect, test } from 'vitest';
import { DeviceLostError, openDevice, StateError } from 'millrace';
import { recordTimeline, serveTimeline } from 'millrace/timeline';
import { messagesOf } from '../support/live-view.js';
import { rejectionOf } from '../support/wait.js';

test('S1249 a device that opens later and is destroyed is shown so for the seconds of the view, and a recording goes on beside', async () => {
  await using server = await serveTimeline(undefined, { seconds: 1 });
  const messages = messagesOf(server);
  expect((await messages.next()).value!.devices).toEqual([]);
  const device = await openDevice('cpu');
  const recording = recordTimeline(device);
  using x = device.ones(4);
  await x.read();
  const states: string[] = [];
  for await (const { devices } of messages) {
    const [shown] = devices;
    if (shown === undefined && states.length > 0) break;
    if (shown === undefined) continue;
    if (states.length === 0) void device.destroy(new Error('on purpose'));
    states.push(shown.state);
  }
  expect(states.length).toBeGreaterThan(2);
  expect([...new Set(states)]).toEqual(['open', 'closed']);
  await recording.stop();
  expect(recording.operations.map(({ kind }) => kind)).toContain('fill');
  expect(await rejectionOf(serveTimeline(device))).toBeInstanceOf(DeviceLostError);
});

test('S1249 of several Devices of one device, the last one that closes ends it in the view', async () => {
  const [one, two] = [await openDevice('cpu'), await openDevice('cpu')];
  await using server = await serveTimeline(one, { seconds: 1 });
  const messages = messagesOf(server);
  await messages.next();
  await one.close();
  expect(await rejectionOf(serveTimeline(one))).toBeInstanceOf(StateError);
  using x = two.ones(4);
  await x.read();
  const { value } = await messages.next();
  expect(value!.devices).toMatchObject([{ device: 'cpu:0', state: 'open' }]);
  await two.close();
  for await (const { devices } of messages) if (devices.length === 0) break;
});
