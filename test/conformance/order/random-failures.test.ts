// Chapter 6: random programs (../../support/random-failures.ts).
import { describe } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { failureRules } from '../../support/random-failures.js';
import { chapterDevice } from '../../support/rule.js';

defineChapter((target) => {
  describe('6 failure: random programs', () => {
    const chapter = chapterDevice(target);
    failureRules(target, () => [chapter.device]);
  });
});
