// Chapter 6: what a program leaves on a device.
import { AssertionError } from 'node:assert';
import { describe, expect } from 'vitest';
import { ArgumentError, type Device, openDevice, StateError } from 'millrace';
import { expectNoLeaks } from 'millrace/testing';
import { defineChapter } from '../../support/chapter.js';
import { rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

defineChapter((target) => {
  describe('6 errors: leaks', () => {
    const rule = rulesOf(target);
    const ofCpu = { ...(!target.spec.startsWith('cpu') && { unless: 'the program runs on a CPU device of its own' }) };
    const messageOf = async (run: (device: Device) => unknown): Promise<string> => {
      const error = await rejectionOf(expectNoLeaks(run));
      expect(error).toBeInstanceOf(AssertionError);
      return (error as Error).message;
    };

    rule(
      'S640',
      'a program that disposes what it makes gives its value, also of memory that is freed behind pending operations',
      async () => {
        const value = await expectNoLeaks(async (device) => {
          const stream = device.createStream();
          using x = stream.zeros([1000]);
          using pinned = device.pinned([1000]);
          using view = x.subarray(0, 10);
          stream.fill(x, 3);
          stream.copy(pinned, x);
          const sum = (await view.read()).reduce((all, one) => all + one, 0);
          {
            using late = stream.ones([10]);
            stream.fill(late, 2);
          }
          await stream.close();
          return sum;
        });
        expect(value).toBe(30);
      },
      ofCpu,
    );

    rule(
      'S640',
      'arrays, pinned memory and streams that are left are named, the largest arrays with their lines',
      async () => {
        const message = await messageOf((device) => {
          for (let n = 1; n <= 12; n++) device.zeros([n]);
          device.pinned([25]);
          device.createStream({ label: 'forgotten' });
        });
        expect(message).toContain(`arrays, 12 with ${4 * 78} bytes in all:\n  f32[12] (48 bytes, made at `);
        expect(message.match(/made at .*leaks\.test\.ts:\d+:\d+/g)).toHaveLength(10);
        expect(message).toMatch(/\n {2}and 2 more\n- 100 bytes of pinned memory\n- the stream forgotten, which is not closed$/);
        expect(await messageOf((device) => void device.zeros([1]))).not.toMatch(/pinned|stream|more/);
      },
      ofCpu,
    );

    rule(
      'S640',
      'an error of the program is given as it is, and wrong options are refused',
      async () => {
        const own = new RangeError('own');
        const failing = expectNoLeaks((device) => {
          device.zeros([1]);
          throw own;
        });
        expect(await rejectionOf(failing)).toBe(own);
        for (const opts of [{ ordering: 'none' }, { seeds: 3 }])
          await expect(expectNoLeaks(() => 1, opts as never)).rejects.toBeInstanceOf(ArgumentError);
        await expect(expectNoLeaks(7 as never)).rejects.toBeInstanceOf(ArgumentError);
        await using open = await openDevice('cpu');
        using x = open.ones(10);
        await expect(expectNoLeaks(() => 1)).rejects.toBeInstanceOf(StateError);
        expect((await x.read())[9]).toBe(1);
      },
      ofCpu,
    );
  });
});
