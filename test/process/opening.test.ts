// Opening a device that is being closed or destroyed.
import { readdirSync } from 'node:fs';
import { listDevices, openDevice } from 'millrace';
import { expect, test } from 'vitest';

test('a device that was opened several times and destroyed once can be opened again at once', async () => {
  const [device, same] = [await openDevice('cpu'), await openDevice('cpu')];
  expect(same.isSameDevice(device)).toBe(true);
  const destroyed = device.destroy();
  await using again = await openDevice('cpu');
  expect([device.state, again.state]).toEqual(['closed', 'open']);
  await destroyed;
});

test('opening an open device again, and listing devices, starts no worker', async () => {
  await using device = await openDevice();
  const threads = (): number => readdirSync('/proc/self/task').length;
  const before = threads();
  const opening = Promise.all(Array.from({ length: 60 }, () => openDevice()));
  const listing = Promise.all(Array.from({ length: 20 }, () => listDevices()));
  // Workers are there from the call that makes them on.
  await Promise.resolve();
  await new Promise(setImmediate);
  expect(threads()).toBe(before);
  const [opened, listed] = await Promise.all([opening, listing]);
  expect(opened.every((each) => each.isSameDevice(device))).toBe(true);
  expect(listed[0]?.map(({ id }) => id)).toContain(device.info.id);
  expect(threads()).toBe(before);
  for (const each of opened) await each.close();
  expect(device.state).toBe('open');
});
