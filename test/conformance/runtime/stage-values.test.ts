// Chapter 9: stages of `overlap` that give several values.
import { concat, EMPTY, from, lastValueFrom, of, throwError, toArray, Subject } from 'rxjs';
import { describe, expect } from 'vitest';
import { overlap } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { watch } from '../../support/manual-stage.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually } from '../../support/wait.js';

defineChapter((target) => {
  describe('9 values of a stage', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S917', 'values of a stage are emitted as they come, before those of the next item', async () => {
      const [first, second] = [new Subject<string>(), new Subject<string>()];
      const seen = watch(overlap(chapter.device, [first, second], { depth: 2 }, (subject) => subject));
      await eventually('both stages run', () => first.observed && second.observed);
      second.next('b1');
      first.next('a1');
      await eventually('the first value is there', () => seen.values.length === 1);
      expect(seen.values).toEqual(['a1']);
      first.next('a2');
      first.complete();
      await eventually('the second item is emitted', () => seen.values.length === 3);
      second.next('b2');
      await eventually('its later value follows', () => seen.values.length === 4);
      expect([seen.values, seen.end()]).toEqual([['a1', 'a2', 'b1', 'b2'], 'open']);
      second.complete();
      await eventually('the run ends', () => seen.end() === 'complete');
    });

    rule('S917', 'items give no, one or many values, in the order of the items', async () => {
      const counts = [0, 3, 1, 0, 5, 2, 0];
      const run = overlap(chapter.device, counts, { depth: 3 }, (count) =>
        count === 0 ? EMPTY : from(Array.from({ length: count }, (_, n) => `${count}.${n}`)),
      );
      const expected = counts.flatMap((count) => Array.from({ length: count }, (_, n) => `${count}.${n}`));
      expect(await lastValueFrom(run.pipe(toArray()))).toEqual(expected);
      expect(run.report().items).toBe(counts.length);
      const pulled: string[] = [];
      for await (const value of run) pulled.push(value);
      expect(pulled).toEqual(expected);
    });

    rule('S917', 'with a retry policy no value is emitted twice', async () => {
      const seen = await lastValueFrom(
        overlap(chapter.device, [0, 1, 2], { depth: 2, onError: { retry: 2 } }, (item, lane) => {
          const values = [`${item}a`, `${item}b`];
          return lane.attempt < 3
            ? concat(
                values,
                throwError(() => new Error('later')),
              )
            : from(values);
        }).pipe(toArray()),
      );
      expect(seen).toEqual(['0a', '0b', '1a', '1b', '2a', '2b']);
      const skipped = overlap(chapter.device, [0], { onError: { retry: 1, then: 'skip' } }, () =>
        concat(
          of('x'),
          throwError(() => new Error('always')),
        ),
      );
      expect(await lastValueFrom(skipped.pipe(toArray()))).toEqual([]);
    });

    rule('S917', "without a retry policy 'skip' keeps the values that came before the failure", async () => {
      const run = overlap(chapter.device, [0, 1], { depth: 1, onError: 'skip' }, (item) =>
        item === 0
          ? concat(
              of('a', 'b'),
              throwError(() => new Error('later')),
            )
          : of('c'),
      );
      expect(await lastValueFrom(run.pipe(toArray()))).toEqual(['a', 'b', 'c']);
      expect(run.report()).toMatchObject({ items: 1, skipped: 1 });
    });
  });
});
