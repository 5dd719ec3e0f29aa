// docs/ends.md: process.exit, SIGTERM and worker.terminate() end a process or a thread within 2 s, whatever runs. The short form has work of every
// kind at once; the long form each kind alone, too, and all ends on both devices.
import { expect, test } from 'vitest';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { IS_LONG } from '../support/long.js';
import { SLOWNESS } from '../support/slowness.js';
import { linesOf, runProgram } from './child.js';

const MOST_MS = 2000 * SLOWNESS;
const KINDS = ['kernel', 'copies', 'hold', 'build', 'opening', 'communicator', 'apart'];
const ENDS = [
  ['process.exit', 'exit', { code: 7, signal: null }],
  ['SIGTERM', 'wait', { code: null, signal: 'SIGTERM' }],
  ['worker.terminate()', 'terminate', { code: 7, signal: null }],
] as const;

const NO_GPU = FAKE_DRIVER === undefined ? FAKE_DRIVER_MISSING : undefined;
const DEVICES = [
  ['cpu', undefined, IS_LONG ? ENDS : ENDS.slice(0, 2)],
  ['cuda:0', NO_GPU, IS_LONG ? ENDS : ENDS.slice(2)],
] as const;
for (const [spec, absent, ends] of DEVICES) {
  test.for(ends)(`${spec}: work of every kind, ended by %s`, { timeout: 400_000 }, async ([, how, expected], context) => {
    if (absent !== undefined) context.skip(absent);
    for (const kinds of ['all', ...(IS_LONG ? KINDS : [])]) {
      const ending = await runProgram('end-anywhere', [spec, how, kinds], {
        env: { MILLRACE_CPU_DEVICES: '4' },
        ...(how === 'wait' && { kill: { when: 'ready', signal: 'SIGTERM' } }),
      });
      const took = Date.now() - Number(linesOf(ending)[0]);
      expect({ kinds, ...ending }).toMatchObject({ ...expected, stderr: '' });
      expect(took, kinds).toBeLessThan(MOST_MS);
    }
  });
}
