// Workers that are terminated while they read and write files, or start compilers, leave no descriptor open.
import { expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { linesOf, runProgram } from './child.js';

test.each([
  ['read and write files', IS_LONG ? 200 : 20, 'add,find,identity,output,compiler,source,stack'],
  ['start compilers', IS_LONG ? 40 : 10, 'start'],
])(
  'workers terminated while they %s leave nothing open',
  async (_what, workers, operations) => {
    const ending = await runProgram('terminate-file-operations', [String(workers), operations], { timeoutMs: 170_000 });
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(JSON.parse(linesOf(ending).join('\n'))).toEqual({ terminated: workers, open: [] });
  },
  180_000,
);
