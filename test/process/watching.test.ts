// Subscribers of a stream's operations, in processes that have nothing else to do.
import { describe, expect } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { deviceCases, linesOf, runProgram, testOn } from './child.js';

/** Longer with more rounds, by MILLRACE_WATCH_ROUNDS. */
const WATCHING_MS = 120_000 + 200 * Number(process.env.MILLRACE_WATCH_ROUNDS ?? 0);

describe.each(deviceCases)('$spec', ({ spec, absent }) => {
  const run = testOn(absent);

  const WAYS = [
    'stream',
    'operations of the stream',
    'device',
    'operations$ of the stream',
    'operations$ of the device',
    'activity$ of the stream',
    'activity$ of the device',
  ];
  for (const [at, how] of WAYS.entries()) {
    const both = ['busy', 'before'];
    // After the first, the short form has one in turn.
    const times = IS_LONG || at === 0 ? both : [both[(at + 1) % 2]!];
    run(`subscriptions to the ${how} keep the process alive until the pending operations were given`, async () => {
      for (const ending of await Promise.all(times.map((when) => runProgram('watching', [spec, how, when])))) {
        expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
        expect(linesOf(ending)).toEqual(['launch', 'launch', 'launch', 'exit']);
      }
    });
  }

  run('all of these are given the pending operations when the device is closed meanwhile, and end', async () => {
    const ending = await runProgram('watching', [spec, 'all', 'closed']);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    const lines = linesOf(ending);
    expect(lines.at(-1)).toBe('exit');
    for (const how of WAYS)
      expect(lines.filter((line) => line.startsWith(`${how}: `))).toEqual(
        ['launch', 'launch', 'launch', 'the end'].map((what) => `${how}: ${what}`),
      );
    expect(lines.length).toBe(4 * WAYS.length + 1);
  });

  run('watching in all of these ways keeps no process alive that has nothing more to submit', async () => {
    const ending = await runProgram('watching', [spec, 'all', 'idle']);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual(['exit']);
  });

  run('errors$ keeps the process alive until what is pending has failed or not', async () => {
    const ending = await runProgram('watching-errors', [spec]);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual(['BoundsError', 'exit']);
  });

  run(
    'every subscriber gets each finished operation once and in order, whenever it subscribes and whatever ends',
    async () => {
      const rounds = process.env.MILLRACE_WATCH_ROUNDS ?? (IS_LONG ? '300' : '40');
      const ending = await runProgram('watch-anywhere', [spec, rounds, process.env.MILLRACE_WATCH_SEED ?? '1'], { timeoutMs: WATCHING_MS });
      expect(ending).toEqual({ code: 0, signal: null, stdout: `${rounds} rounds\n`, stderr: '' });
    },
    WATCHING_MS,
  );
});
