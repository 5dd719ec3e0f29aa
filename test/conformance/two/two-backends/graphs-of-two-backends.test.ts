// Chapter 10: graphs of one backend do not join a capture of another.
import { describe, expect } from 'vitest';
import { defineChapter } from '../../../support/chapter.js';
import { ONE, reasonOf } from '../../../support/graphs.js';
import { mixed, mixKernel } from '../../../support/kernels.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';

defineChapter((target) => {
  describe('10 graphs: of two backends', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S1002', 'a stream of another backend cannot join, and the capture goes on without it', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = device.zeros(1, 'u32');
      using y = other.zeros(1, 'u32');
      const graph = here.capture((s) => {
        s.launch(mixKernel, ONE, { x, k: 1 });
        expect(reasonOf(() => there.waitStream(here))).toBe('unsupported-node');
        expect(reasonOf(() => there.waitEvent(s.record()))).toBe('unsupported-node');
      });
      await there.fill(y, 5).done;
      here.launch(graph);
      expect([(await x.read())[0], (await y.read())[0]]).toEqual([mixed(0, 1, 1), 5]);
      await graph.close();
      await Promise.all([here.close(), there.close()]);
    });
  });
});
