// Chapter 1, second part: priorities, identity and wrapped streams.
import { describe, expect } from 'vitest';
import { ArgumentError, UnsupportedError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('1 streams: priorities and identity', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S109', 'priority returns the value that the device was given', async () => {
      const { device } = chapter;
      const [least, greatest] = device.info.priorityRange;
      const rows = [
        [{ priority: -1 }, Math.max(-1, greatest)],
        [{ priority: 7 }, 0],
        [{ priority: -1000 }, Math.max(-1, greatest)],
        [{ priority: -1000, fullRange: true }, greatest],
        [{ priority: 1000, fullRange: true }, least],
        [{ priority: greatest, fullRange: true }, greatest],
        [{}, 0],
      ] as const;
      for (const [options, expected] of rows) {
        const stream = device.createStream(options);
        expect(stream.priority, JSON.stringify(options)).toBe(expected);
        await stream.fill(device.zeros(1), 1).done;
        await stream.close();
      }
    });

    rule('S118', 'every stream has a separate handle and works as a key of a Map', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 40 }, () => device.createStream());
      await Promise.all(streams.map((stream) => stream.fill(device.zeros(1), 1).done));
      const names = new Map(streams.map((stream, n) => [stream, n]));
      expect(names.size).toBe(40);
      for (const [n, stream] of streams.entries()) expect(names.get(stream)).toBe(n);
      const handles = new Set([device.defaultStream, ...streams].map((stream) => stream.nativeHandle));
      expect(handles.size).toBe(41);
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S119', 'a wrapped stream is used and not destroyed; its handle gives one Stream', async () => {
      const { device } = chapter;
      if (device.info.backend !== 'cuda') {
        const error = thrownBy(() => device.wrapStream(16n));
        expect(error).toBeInstanceOf(UnsupportedError);
        expect((error as UnsupportedError).capability).toBe('wrapStream');
        return;
      }
      const own = device.createStream();
      await own.fill(device.zeros(1), 1).done;
      expect(device.wrapStream(own.nativeHandle)).toBe(own);
      const legacy = device.wrapStream(0n, { owner: {}, label: 'legacy' });
      using x = legacy.full(4, 5, 'i32');
      expect([...(await x.read())]).toEqual([5, 5, 5, 5]);
      expect(device.wrapStream(0n)).toBe(legacy);
      await Promise.all([legacy.synchronize(), device.synchronize()]);
      await legacy.close();
      const again = device.wrapStream(0n);
      expect(again).not.toBe(legacy);
      await again.fill(x, 6).done;
      expect([...(await x.read())]).toEqual([6, 6, 6, 6]);
      await Promise.all([again.close(), own.close()]);
    });

    rule('S119', 'an invalid handle is refused', () => {
      for (const handle of [-1n, 2n ** 64n, 5, 'x', undefined]) {
        expect(
          thrownBy(() => chapter.device.wrapStream(handle as never)),
          String(handle),
        ).toBeInstanceOf(ArgumentError);
      }
    });
  });
});
