// Chapter 6: CPU devices that choose the order at random, and programs that are compared on many of them.
import { AssertionError } from 'node:assert';
import { describe, expect } from 'vitest';
import { ArgumentError, type Device, openDevice, StateError, StreamHazardError, UnsupportedError } from 'millrace';
import { expectNoRaces } from 'millrace/testing';
import { defineChapter } from '../../support/chapter.js';
import { mixKernel } from '../../support/kernels.js';
import { rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

const ONE = { grid: 1, block: 1 };

/** Launches on two streams in turn; the result depends on their order. */
async function inTurn(device: Device, ordering: 'tracked' | 'explicit', waits: boolean): Promise<number> {
  const [a, b] = [device.createStream({ ordering }), device.createStream({ ordering })];
  const x = device.ones(1, 'u32');
  await device.synchronize();
  for (let n = 0; n < 6; n++) {
    const [one, other] = n % 2 === 0 ? [a, b] : [b, a];
    one.launch(mixKernel, ONE, { x, k: n });
    if (waits) other.waitStream(one);
  }
  await device.synchronize();
  return (await x.read())[0]!;
}

defineChapter((target) => {
  describe('6 errors: schedules of seeds', () => {
    const rule = rulesOf(target);
    const isOnCpu = target.spec.startsWith('cpu');
    const ofCpu = { ...(!isOnCpu && { unless: 'only CPU devices have seeds' }) };

    rule('S628', 'a seed is a whole number below 2^32, of a CPU device only, and every opening of the device has the same', async () => {
      for (const seed of [-1, 2 ** 32, 1.5, '7'])
        await expect(openDevice('cpu', { seed: seed as number })).rejects.toBeInstanceOf(ArgumentError);
      if (!isOnCpu) {
        await expect(target.open({ seed: 7 })).rejects.toBeInstanceOf(UnsupportedError);
        return;
      }
      await using device = await openDevice('cpu:0', { seed: 2 ** 32 - 1 });
      await expect(openDevice('cpu:0', { seed: 1 })).rejects.toBeInstanceOf(StateError);
      expect(await inTurn(device, 'tracked', false)).toBe(await inTurn(device, 'explicit', true));
    });

    rule(
      'S628',
      'two streams that nothing orders take turns in other ways from seed to seed',
      async () => {
        const orders = new Set<string>();
        for (let seed = 0; seed < 12 || (orders.size < 2 && seed < 200); seed++) {
          await using device = await openDevice('cpu:0', { seed });
          const order: string[] = [];
          const streams = ['a', 'b'].map((label) => device.createStream({ label }));
          const done = streams.flatMap((stream) => Array.from({ length: 4 }, () => stream.host(() => void order.push(stream.label)).done));
          await Promise.all(done);
          orders.add(order.join(''));
        }
        expect(orders.size).toBeGreaterThan(1);
      },
      ofCpu,
    );

    rule(
      'S629',
      'a program whose uses are ordered gives its value',
      async () => {
        const value = await expectNoRaces((device) => inTurn(device, 'tracked', false), { seeds: 4 });
        expect(await expectNoRaces((device) => inTurn(device, 'explicit', true), { seeds: [9, 3], ordering: 'explicit' })).toBe(value);
      },
      ofCpu,
    );

    rule(
      'S629',
      'two uses that nothing orders are named with their lines, whether or not a schedule shows it',
      async () => {
        const error = await rejectionOf(expectNoRaces((device) => inTurn(device, 'explicit', false), { seeds: 1 }));
        expect(error).toBeInstanceOf(AssertionError);
        const hazard = (error as Error).cause as StreamHazardError;
        expect(hazard).toBeInstanceOf(StreamHazardError);
        const here = /schedules-of-seeds\.test\.ts:20:\d+$/;
        expect([hazard.first.at, hazard.second.at]).toEqual([expect.stringMatching(here), expect.stringMatching(here)]);
        expect((error as Error).message).toContain(hazard.message);
      },
      ofCpu,
    );

    rule(
      'S629',
      'a value that the host read too early is told with the smallest seed that shows it',
      async () => {
        // The functions of two streams run in an order that only the seed chooses.
        const early = async (device: Device): Promise<string> => {
          const order: string[] = [];
          const ends = ['a', 'b'].map((label) => device.createStream({ label }).host(() => void order.push(label)).done);
          await Promise.race(ends);
          const seen = order.join('');
          await Promise.all(ends);
          return seen;
        };
        const error = await rejectionOf(expectNoRaces(early, { seeds: 400 }));
        expect(error).toBeInstanceOf(AssertionError);
        expect((error as Error).message).toMatch(
          /with seed \d+ the program gave '[ab]+', with seed 1 it gave '[ab]+'.*openDevice\('cpu', \{ seed: \d+ \}\)/,
        );
      },
      ofCpu,
    );

    rule(
      'S629',
      'an error that every schedule gives is given, and wrong options are refused',
      async () => {
        const own = new RangeError('own');
        expect(await rejectionOf(expectNoRaces(() => Promise.reject(own), { seeds: 2 }))).toBe(own);
        const wrong = [{ seeds: 0 }, { seeds: [] }, { seeds: [2 ** 32] }, { seeds: '3' }, { ordering: 'none' }, { seed: 3 }];
        for (const opts of wrong)
          await expect(
            expectNoRaces(() => 1, opts as never),
            JSON.stringify(opts),
          ).rejects.toBeInstanceOf(ArgumentError);
        await expect(expectNoRaces(7 as never)).rejects.toBeInstanceOf(ArgumentError);
      },
      ofCpu,
    );
  });
});
