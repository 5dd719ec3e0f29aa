// Chapter 5: what the thread of a device does after its last work.
import { describe, expect } from 'vitest';
import { ArgumentError, kernel, openDevice, type Schedule, u32, inout } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { rulesOf, withDevice } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

const plusOne = kernel('plus_one', { x: inout(u32) }, ({ x }, { i }) => {
  x[i] = x[i]! + 1;
});

defineChapter((target) => {
  const rule = rulesOf(target);

  describe('5 waiting: schedules', () => {
    for (const schedule of ['auto', 'spin', 'yield', 'blocking'] satisfies Schedule[]) {
      rule('S522', `waits of all kinds end with the schedule '${schedule}', after work and after a rest`, async () => {
        await withDevice(target, { schedule }, async (device) => {
          const streams = [device.createStream(), device.createStream({ ordering: 'explicit' })];
          const x = device.zeros(1000, 'u32');
          const y = device.zeros(1000, 'u32');
          const pinned = device.pinned(1000, 'u32');
          await device.synchronize();
          const [tracked, explicit] = streams as [(typeof streams)[0], (typeof streams)[0]];
          for (let turn = 1; turn <= 20; turn++) {
            // Some rests are longer than the thread stays awake.
            if (turn % 5 === 0) await new Promise((resolve) => setTimeout(resolve, turn));
            const operations = [tracked.launch(plusOne, 1000, { x }), explicit.launch(plusOne, 1000, { x: y }), tracked.copy(pinned, x)];
            if (turn % 2 === 0) await Promise.all(operations.map((operation) => operation.done));
            else await (turn % 3 === 0 ? device.synchronize() : Promise.all(streams.map((stream) => stream.record().done)));
            expect([pinned.data[999], operations.every((operation) => operation.isComplete)]).toEqual([turn, true]);
          }
          const last = tracked.launch(plusOne, 1000, { x });
          const end = Date.now() + 10_000;
          // Nothing waits: the thread that only looks sees the end too.
          while (!last.isComplete && Date.now() < end);
          expect(last.isComplete).toBe(true);
          expect((await y.read())[0]).toBe(20);
        });
      });
    }

    rule('S522', 'another value is an ArgumentError', async () => {
      for (const schedule of ['Spin', '', 0, null, {}, ['spin'], 'toString']) {
        const error = await rejectionOf(openDevice(target.spec, { schedule: schedule as never }));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject({ argument: 'schedule' });
      }
    });
  });
});
