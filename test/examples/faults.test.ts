// The service that outlives its device: five faults, or one a second for a minute.
import { expect, test } from 'vitest';
import { serve } from '../../examples/faults/serve.js';
import { IS_LONG } from '../support/long.js';

const [FAULTS, EVERY_MS] = IS_LONG ? [60, 1000] : [5, 100];

test('a service answers every request rightly while its device is lost again and again', { timeout: 300_000 }, async () => {
  const served = await serve(FAULTS, EVERY_MS);
  console.log(served);
  expect(served.wrong).toBe(0);
  // After the last fault the callers may have had their last answers.
  expect(served.openings).toBeGreaterThanOrEqual(FAULTS);
  expect(served.seen.length).toBe(FAULTS);
  expect(served.answered).toBeGreaterThan(FAULTS);
});
