// The classic mistake: an array is made on one stream and used on another, and nothing says which comes first. On tracked
// streams it cannot happen; checked ones point at both places; explicit ones do what they are told.
import assert from 'node:assert/strict';
import { StreamHazardError, type Device } from 'millrace';
import { addTo } from './kernels.js';

export async function run([device]: readonly [Device]): Promise<StreamHazardError> {
  const maker = device.createStream({ ordering: 'checked', label: 'maker' });
  const user = device.createStream({ ordering: 'checked', label: 'user' });
  using x = maker.zeros(256);
  let hazard: unknown;
  try {
    user.launch(addTo, 256, { x, value: 1 });
  } catch (error) {
    hazard = error;
  }
  assert.ok(hazard instanceof StreamHazardError);
  assert.deepEqual([hazard.first.stream, hazard.second.stream], ['maker', 'user']);
  assert.deepEqual([hazard.first.access, hazard.second.access], ['write', 'write']);

  // The remedy.
  user.waitStream(maker);
  user.launch(addTo, 256, { x, value: 1 });
  assert.ok((await x.read()).every((value) => value === 1));

  // And without being told, where arrays are tracked.
  const tracked = device.createStream();
  tracked.launch(addTo, 256, { x, value: 1 });
  assert.ok((await x.read()).every((value) => value === 2));
  await Promise.all([maker.close(), user.close(), tracked.close()]);
  return hazard;
}
