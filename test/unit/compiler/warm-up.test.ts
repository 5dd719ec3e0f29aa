// The kernel that is read while a device opens. In a file of its own: no kernel may have been read before.
import { expect, test } from 'vitest';
import { isWarm } from '../../../src/compiler/definitions/kernel.js';
import { warmUp } from '../../../src/compiler/definitions/warm-up.js';

test('the warm-up kernel compiles once, one event loop turn later, and is valid', async () => {
  const first = warmUp();
  expect(isWarm()).toBe(false);
  await first;
  expect(isWarm()).toBe(true);
  await warmUp();
});
