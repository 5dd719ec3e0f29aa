// The kernel that compiles while a device opens. In its own file, because no other kernel may compile before.
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
