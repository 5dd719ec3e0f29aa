// One device that several threads use: `share` and `openShared`.
import { describe, expect, test } from 'vitest';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

const HEAVY_MS = 240_000;

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
    const seen = async (name: string): Promise<string[]> => {
      const ending = await runProgram('sharing', [spec, name], { timeoutMs: 60_000 });
      expect(ending).toMatchObject({ code: 0, signal: null });
      return linesOf(ending);
    };

    check('other threads open the device, and what they leave behind is given back', async () => {
      expect(await seen('streams')).toEqual([`read 9 on ${id}`, `read 9 on ${id}`, 'all given back', 'open']);
    });

    check('the first use of an adopted array waits for the thread that shared it, and the last to dispose it frees it', async () => {
      expect(await seen('arrays')).toEqual(['pending true', '7 7 5 5 5 5', 'all given back']);
    });

    check('an array that was disposed before it was adopted fails its uses', async () => {
      const [error, ...rest] = await seen('disposed');
      expect(error).toMatch(/^UpstreamError of StateError: .* the shared array was disposed before it was adopted\.$/);
      expect(rest).toEqual(['all given back']);
    });

    check('pinned memory of another thread is pinned again', async () => {
      expect(await seen('pinned')).toEqual(['true 4 3', '4 3', '8', 'all given back']);
    });

    check('the devices of other threads are lost when the opener closes it', async () => {
      const lost = `DeviceLostError closed: Device ${id} was closed by the thread that opened it. | closed true DeviceLostError`;
      expect(await seen('closing')).toEqual(['open', lost]);
    });

    check('the devices of other threads are lost when the thread that opened it ends', async () => {
      expect(await seen('dying')).toEqual([
        'open',
        `DeviceLostError worker-exit: Device ${id} is lost: the thread that opened it ended. | lost true DeviceLostError`,
        `DeviceLostError closed: Device ${id} cannot be shared: the thread that opened it has closed it or ended.`,
      ]);
    });

    check('the opening thread gets its own device, and bad tokens are refused', async () => {
      const lines = await seen('same');
      expect(lines.slice(0, 2)).toEqual(['true true', 'open']);
      expect(lines.slice(2).map((line) => line.slice(0, line.indexOf(':')).trim())).toEqual(
        Array.from({ length: 4 }, () => 'ArgumentError'),
      );
    });

    check('a thread that opened a device by itself may share another one, any number of times', async () => {
      expect(await seen('beside')).toEqual(['false false false true true', 'all given back']);
    });

    check('a thread opens, closes and opens again', async () => {
      expect(await seen('again')).toEqual(['0 1 2', 'all given back']);
    });

    check(
      'eight threads submit a million operations, and none is lost or reordered',
      async () => {
        const ending = await runProgram('sharing-crowd', [spec, '8', '1000000'], { timeoutMs: HEAVY_MS - 5000 });
        expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
        expect(linesOf(ending)).toEqual(['at least 1000000 operations', 'all given back']);
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
