// Chapter 1: random programs (../../support/random-programs.ts).
import { describe } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { programRules } from '../../support/random-programs.js';
import { chapterDevice } from '../../support/rule.js';

defineChapter((target) => {
  describe('1 streams: random programs', () => {
    const chapter = chapterDevice(target);
    programRules(target, () => [chapter.device]);
  });
});
