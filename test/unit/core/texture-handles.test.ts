// Textures when the device has no handle left.
import { expect, test, vi } from 'vitest';
import { LimitError } from '../../../src/core/base/errors.js';
import { thrownBy } from '../../support/wait.js';
import { fixture } from './fake-channel.js';

test.each([0, 1, 2])('a texture that gets %i of its three handles is refused, and nothing of it is left', (given) => {
  const { core, device } = fixture();
  const take = core.handles.memory.take.bind(core.handles.memory);
  let left = given;
  const taking = vi.spyOn(core.handles.memory, 'take').mockImplementation(() => {
    if (left-- > 0) return take();
    throw new LimitError('ERR_MILLRACE_LIMIT', 'no handle', 0, () => Promise.resolve());
  });
  expect(thrownBy(() => device.createTexture({ shape: [4], surface: true }))).toBeInstanceOf(LimitError);
  taking.mockRestore();
  // A record that was begun and not ended would make every later one an inner one.
  const record = core.tracker.begin(device.stream);
  expect(record.isNested).toBe(false);
  record.abandon();
  expect(device.createTexture({ shape: [4], surface: true }).surface.texture.length).toBe(4);
});
