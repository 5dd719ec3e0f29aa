// Opening a device again that goes.
import { openDevice } from 'millrace';
import { expect, test } from 'vitest';

test('a device that several opened and one destroyed is opened anew, at once', async () => {
  const [device, same] = [await openDevice('cpu'), await openDevice('cpu')];
  expect(same).toBe(device);
  const destroyed = device.destroy();
  await using again = await openDevice('cpu');
  expect([device.state, again.state]).toEqual(['closed', 'open']);
  await destroyed;
});
