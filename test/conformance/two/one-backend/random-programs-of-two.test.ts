// Chapter 1: random programs on two devices (../../../support/random-programs.ts).
import { describe } from 'vitest';
import { defineChapter } from '../../../support/chapter.js';
import { programRules } from '../../../support/random-programs.js';
import { chapterDevices } from '../../../support/rule.js';

defineChapter((target) => {
  describe('1 streams: random programs on two devices', () => {
    const chapter = chapterDevices(target);
    programRules(target, () => [chapter.device, chapter.other]);
  });
});
