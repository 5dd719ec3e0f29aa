// Chapter 6: random programs on two devices (../../support/random-failures.ts).
import { describe } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { failureRules } from '../../support/random-failures.js';
import { chapterDevices } from '../../support/rule.js';

defineChapter((target) => {
  describe('6 failure: random programs on two devices', () => {
    const chapter = chapterDevices(target);
    failureRules(target, () => [chapter.device, chapter.other]);
  });
});
