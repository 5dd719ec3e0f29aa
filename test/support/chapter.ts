// One chapter of docs/semantics.md, as tests of each target of the project that runs this file (vitest.config.ts).
import { describe } from 'vitest';
import type { Target } from './target.js';
import { found } from './targets.js';

/** Defines the tests of a chapter. Where this machine lacks the target, target.test.ts says why, and this defines none. */
export function defineChapter(define: (target: Target) => void): void {
  if (typeof found === 'string') describe.skip(found, () => {});
  else for (const target of found) describe(target.name, () => define(target));
}
