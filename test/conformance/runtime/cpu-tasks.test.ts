// Chapter 9: tasks of a pool that fail, as stages of `overlap`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { lastValueFrom, of, toArray } from 'rxjs';
import { afterAll, describe, expect } from 'vitest';
import {
  AbortError,
  ArgumentError,
  cpuStage,
  cpuTasks,
  createCpuPool,
  overlap,
  type PinnedArray,
  StateError,
  UnavailableError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { watch } from '../../support/manual-stage.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { busyUntil, eventually, rejectionOf, thrownBy, turn } from '../../support/wait.js';

interface Tasks {
  double(n: number): number;
}
const TASKS = `
export function double(n) {
  if (n === 1) throw new RangeError('in the task');
  if (n === 2) process.exit(3);
  if (n === 3) return new Promise(() => setTimeout(() => { throw new Error('uncaught'); }));
  return 2 * n;
}
`;

defineChapter((target) => {
  describe('9 tasks of a pool', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const folder = mkdtempSync(path.join(tmpdir(), 'millrace-tasks-'));
    afterAll(() => rmSync(folder, { recursive: true }));
    const file = (name: string, text: string): string => {
      const at = path.join(folder, name);
      writeFileSync(at, text);
      return at;
    };

    const failing: Readonly<Record<string, { readonly item: number; readonly is: (error: unknown) => void }>> = {
      throws: { item: 1, is: (error) => expect(error).toMatchObject({ name: 'RangeError', message: 'in the task' }) },
      'ends its thread': { item: 2, is: (error) => expect(error).toBeInstanceOf(Error) },
      'crashes its thread': { item: 3, is: (error) => expect(error).toBeInstanceOf(Error) },
    };
    for (const [name, { item, is }] of Object.entries(failing)) {
      rule('S943', `a task that ${name} fails its item and frees the lane`, async () => {
        await using pool = createCpuPool(file('tasks.mjs', TASKS), { threads: 1 });
        const tasks = cpuTasks<Tasks>(pool);
        const errors: unknown[] = [];
        const run = overlap(
          chapter.device,
          [4, item, 5],
          { depth: 1, onError: 'skip', onSkip: ({ error }) => void errors.push(error) },
          (n, lane) => of(n).pipe(cpuStage(tasks, 'double', (value) => value, { lane })),
        );
        expect(await lastValueFrom(run.pipe(toArray()))).toEqual([8, 10]);
        expect(errors).toHaveLength(1);
        is(errors[0]);
        expect(run.report().stages.map((stage) => stage.name)).toContain('cpu double');
      });
    }

    rule('S943', 'a module that does not load and a closed pool fail their items', async () => {
      const closed = createCpuPool(file('closed.mjs', TASKS), { threads: 1 });
      await closed.close();
      const cases = [
        [closed, StateError],
        [createCpuPool(path.join(folder, 'absent.mjs'), { threads: 1 }), UnavailableError],
        [createCpuPool(file('broken.mjs', 'export function double('), { threads: 1 }), Error],
        [createCpuPool(file('other.mjs', 'export function triple(n) { return 3 * n; }'), { threads: 1 }), Error],
      ] as const;
      for (const [pool, type] of cases) {
        const errors: unknown[] = [];
        const options = { depth: 1, onError: 'skip', onSkip: ({ error }: { error?: unknown }) => void errors.push(error) } as const;
        const run = overlap(chapter.device, [4, 5], options, (n) =>
          of(n).pipe(cpuStage(cpuTasks<Tasks>(pool), 'double', (value) => value)),
        );
        expect(await lastValueFrom(run.pipe(toArray()))).toEqual([]);
        expect(errors).toHaveLength(2);
        for (const error of errors) expect(error).toBeInstanceOf(type);
        await pool.close();
      }
    });

    rule('S943', 'a running task is stopped when its run ends', async () => {
      await using pool = createCpuPool(file('endless.mjs', 'export function double() { for (;;); }'), { threads: 1 });
      const tasks = cpuTasks<Tasks>(pool);
      const seen = watch(overlap(chapter.device, [1], {}, (n, lane) => of(n).pipe(cpuStage(tasks, 'double', (value) => value, { lane }))));
      await turn();
      seen.unsubscribe();
      // Closing waits for the accepted tasks, and this one never ends by itself.
      await pool.close();
    });

    rule('S943', 'memory of an item is released when no task uses it any more', async () => {
      // A thread that is slow to stop.
      let stopped = (): void => undefined;
      let isAborted = false;
      const slow = {
        run: (_: unknown, { signal }: { readonly signal?: AbortSignal } = {}) =>
          new Promise<never>((_resolve, reject) => {
            stopped = () => reject(new Error('stopped'));
            signal?.addEventListener('abort', () => (isAborted = true));
          }),
      };
      let pinned: PinnedArray | undefined;
      const seen = watch(
        overlap(chapter.device, [1], (n, lane) => {
          pinned = lane.pinned(4);
          return of(n).pipe(cpuStage(cpuTasks<Tasks>(slow), 'double', (value) => value, { lane }));
        }),
      );
      await turn();
      seen.unsubscribe();
      await eventually('the task is aborted', () => isAborted);
      for (let n = 0; n < 5; n++) await turn();
      expect(pinned!.isDisposed).toBe(false);
      stopped();
      await eventually('the memory is released', () => pinned!.isDisposed);
      // The thread of a real pool writes no more once its task has rejected.
      await using pool = createCpuPool(file('writes.mjs', 'export function double(data) { for (;;) data[0]++; }'), { threads: 1 });
      const data = new Int32Array(new SharedArrayBuffer(4));
      const abort = new AbortController();
      const task = pool.run(data, { name: 'double', signal: abort.signal });
      await eventually('it writes', () => data[0]! > 0);
      abort.abort();
      expect(await rejectionOf(task)).toBeInstanceOf(AbortError);
      const [last] = data;
      expect(busyUntil(() => data[0] !== last, 5)).toBe(false);
    });

    rule('S943', 'the call refuses bad options', () => {
      const pool = { run: (): Promise<unknown> => Promise.resolve(0) };
      const tasks = cpuTasks<Tasks>(pool);
      expect(tasks.threads).toBe(1);
      for (const concurrency of [0, 1.5, -1, NaN]) {
        const error = thrownBy(() => cpuStage(tasks, 'double', (value: number) => value, { concurrency }));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject({ argument: 'concurrency', value: concurrency });
      }
      expect(thrownBy(() => cpuTasks({} as typeof pool))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => cpuStage(undefined as never, 'any' as never, (value) => value as never))).toBeInstanceOf(ArgumentError);
    });
  });
});
