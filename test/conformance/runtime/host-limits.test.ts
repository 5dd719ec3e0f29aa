// Chapter 3: the limit of host memory of a copy. The arrays here exceed it, and none of their pages is ever accessed.
import { constants } from 'node:buffer';
import { describe, expect } from 'vitest';
import { ArgumentError, OutOfMemoryError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

const MOST = constants.MAX_LENGTH;
const LENGTH = MOST / 4 + 1024;
const BYTES = LENGTH * 4;

defineChapter((target) => {
  describe('3 limits of host memory', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    /** Why arrays beyond the limit cannot be made on this machine. */
    function obstacle(needsDevice: boolean): string | undefined {
      if (MOST > 2 ** 40) return 'in this Node a typed array may be larger than memory';
      const { totalMemoryBytes } = chapter.device.info;
      return needsDevice && totalMemoryBytes < BYTES ? `the device has ${totalMemoryBytes} bytes, fewer than ${BYTES}` : undefined;
    }

    async function expectRefused(call: () => unknown, value: number): Promise<void> {
      const error = await rejectionOf((async () => call())());
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error).toMatchObject({ value, limit: MOST });
      for (const part of [value, MOST]) expect(error.message).toContain(String(part));
    }

    async function expectWell(): Promise<void> {
      using x = chapter.device.full(4, 7, 'i32');
      expect([...(await x.read())]).toEqual([7, 7, 7, 7]);
    }

    rule('S355', 'a read of more bytes than a typed array can hold is refused, and the device continues', async (context) => {
      const why = obstacle(true);
      if (why !== undefined) return context.skip(why);
      using x = chapter.device.empty(BYTES, 'u8');
      await expectRefused(() => x.read(), BYTES);
      using part = x.subarray(BYTES - 16);
      expect((await part.read()).length).toBe(16);
      await expectWell();
    });

    rule('S355', 'a copy between a device array and that many host bytes is refused', async (context) => {
      const why = obstacle(true);
      if (why !== undefined) return context.skip(why);
      const { device } = chapter;
      using x = device.empty(LENGTH);
      const host = new Float32Array(LENGTH);
      await expectRefused(() => device.stream.copy(x, host), BYTES);
      await expectRefused(() => device.stream.copy(x, host, { transfer: true }), BYTES);
      await expectRefused(() => device.stream.copy(host, x), BYTES);
      await expectRefused(() => x.read({ into: host }), BYTES);
      expect(host.length).toBe(LENGTH);
      await device.stream.copy(x, host, { srcOffset: LENGTH - 4, count: 4 }).done;
      await expectWell();
    });

    rule('S355', 'pin and pinned refuse that many bytes', async (context) => {
      const why = obstacle(false);
      if (why !== undefined) return context.skip(why);
      const { device } = chapter;
      await expectRefused(() => device.pin(new Float32Array(new SharedArrayBuffer(BYTES))), BYTES);
      await expectRefused(() => device.pinned(LENGTH), BYTES);
      await expectWell();
    });

    rule(
      'S355',
      "page-locked memory beyond the system's memory is an OutOfMemoryError",
      async () => {
        expect(thrownBy(() => chapter.device.pinned(2 ** 50, 'u8'))).toBeInstanceOf(OutOfMemoryError);
        await expectWell();
      },
      { unless: MOST < 2 ** 50 && `a typed array of this Node has at most ${MOST} bytes` },
    );
  });
});
