// What reads tokens, source maps, files of images, logs of compilers and messages of other ranks is given damaged input. `npm run nightly`
// gives ten million, and libFuzzer's to the reader of records.
import { expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { linesOf, runProgram } from './child.js';

const INPUTS = IS_LONG ? 10_000_000 : 100_000;

test('damaged inputs are refused with the error that is documented, or taken', { timeout: IS_LONG ? 36_000_000 : 180_000 }, async () => {
  const ending = await runProgram('damaged-inputs.ts', ['all', String(INPUTS), '1'], { timeoutMs: IS_LONG ? 36_000_000 : 175_000 });
  expect(ending).toMatchObject({ code: 0, stderr: '' });
  expect(linesOf(ending)).toHaveLength(10);
});
