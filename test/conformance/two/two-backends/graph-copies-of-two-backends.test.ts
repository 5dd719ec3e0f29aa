// Chapter 10: copies between devices of two backends in captures.
import { describe, expect } from 'vitest';
import { defineChapter } from '../../../support/chapter.js';
import { refusalOf } from '../../../support/graphs.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';

defineChapter((target) => {
  describe('10 graphs: copies between two backends', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S1033', 'a copy between two backends in a capture names both devices', async () => {
      const { device, other } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'u32');
      using y = other.zeros(4, 'u32');
      const graph = stream.capture((s) => {
        s.fill(x, 1);
        const { reason, message } = refusalOf(() => s.copy(y, x));
        expect(reason).toBe('unsupported-node');
        for (const { id, backend } of [device.info, other.info]) expect(message).toContain(`${id} (${backend})`);
      });
      await graph.close();
      await stream.close();
    });
  });
});
