// Chapter 2: events that measure time, of two devices.
import { describe, expect } from 'vitest';
import { elapsed, EventTimingError } from 'millrace';
import { defineChapter } from '../../../support/chapter.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { rejectionOf } from '../../../support/wait.js';

defineChapter((target) => {
  describe('2 events: time of two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S211', 'events of two devices have no time between them', async () => {
      const { device, other } = chapter;
      using here = device.stream.record({ timing: true });
      using there = other.stream.record({ timing: true });
      const error = await rejectionOf((async () => elapsed(here, there))());
      expect(error).toBeInstanceOf(EventTimingError);
      expect((error as EventTimingError).reason).toBe('other-device');
      for (const { info } of [device, other]) expect(error.message).toContain(info.id);
    });
  });
});
