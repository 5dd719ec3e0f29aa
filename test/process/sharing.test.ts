// One device that several threads use: `share` and `openShared`.
import { describe, expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

const HEAVY_MS = 240_000;
const OPERATIONS = IS_LONG ? '1000000' : '100000';

describe('openShared', () => {
  const answered = async (name: string): Promise<string[]> => {
    const ending = await runProgram('sharing-answers', [name], { timeoutMs: 60_000 });
    expect(ending).toMatchObject({ code: 0, signal: null });
    return linesOf(ending);
  };

  test('opens when the answer comes before the request is reported as delivered', async () => {
    expect(await answered('early')).toEqual(['opened']);
  });

  test('hears of the end of a device that is closed right behind the answer', async () => {
    expect(await answered('ended')).toEqual(['opened', 'ended']);
  });

  test('rejects when the device is closed before the worker looks at the request', async () => {
    expect(await answered('refused')).toEqual(['DeviceLostError closed']);
  });
});

for (const { spec, absent } of deviceCases) {
  describe(spec, () => {
    const check = testOn(absent);
    const id = spec === 'cpu' ? 'cpu:0' : spec;

    check(
      'other threads adopt what was disposed, outlive the thread that opened the device, and open it beside their own and again',
      async () => {
        const lost = (how: string): string => `DeviceLostError ${how}`;
        const expected = {
          disposed: ['UpstreamError of StateError: # the shared array was disposed before it was adopted.', 'all given back'],
          dying: [
            'open',
            `${lost(`worker-exit: Device ${id} is lost: the thread that opened it ended.`)} | lost true DeviceLostError`,
            lost(`closed: Device ${id} cannot be shared: the thread that opened it has closed it or ended.`),
          ],
          // Of a thread that opened a device by itself.
          beside: ['false false false true true', 'all given back'],
          again: ['0 1 2', 'all given back'],
        };
        const ending = await runProgram('sharing', [spec, ...Object.keys(expected)], { timeoutMs: 60_000 });
        expect(ending).toMatchObject({ code: 0, signal: null });
        const told = (line: string): string => line.replace(/^(UpstreamError of StateError:) .* (the shared array)/, '$1 # $2');
        expect(linesOf(ending).map(told)).toEqual(Object.entries(expected).flatMap(([name, seen]) => [`── ${name}`, ...seen]));
      },
    );

    check(
      `eight threads submit ${OPERATIONS} operations, and none is lost or reordered`,
      async () => {
        const ending = await runProgram('sharing-crowd', [spec, '8', OPERATIONS], { timeoutMs: HEAVY_MS - 5000 });
        expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
        expect(linesOf(ending)).toEqual([`at least ${OPERATIONS} operations`, 'all given back']);
      },
      HEAVY_MS,
    );

    check(
      // `sharing-terminate.mjs cpu 200` is the same for longer.
      'threads are terminated at any moment, and others go on',
      async () => {
        const ending = await runProgram('sharing-terminate', [spec, '12'], { timeoutMs: HEAVY_MS - 5000 });
        expect(ending).toMatchObject({ code: 0, signal: null });
        expect(linesOf(ending)).toEqual(['all terminated', 'a survivor went on', 'a survivor went on', 'all given back']);
      },
      HEAVY_MS,
    );
  });
}
