// Host functions that return objects with a broken `then`.
import { expect, test } from 'vitest';
import type { MillraceError } from '../../../src/core/base/errors.js';
import { rejectionOf } from '../../support/wait.js';
import { fixture, reach, settle } from './fake-channel.js';

const mine = new Error('mine');

const results: readonly (readonly [string, () => unknown])[] = [
  [
    'an object whose `then` cannot be read',
    () =>
      Object.defineProperty({}, 'then', {
        get: () => {
          throw mine;
        },
      }),
  ],
  [
    'a promise whose `constructor` cannot be read',
    () =>
      Object.defineProperty(Promise.resolve(), 'constructor', {
        get: () => {
          throw mine;
        },
      }),
  ],
];

test.each(results)('%s fails the hold that returns it, and the stream continues', async (_, give) => {
  const all = fixture();
  const { channel, device } = all;
  const { stream } = device;
  const calls: string[] = [];
  const held = stream.hold(give as () => void, { timeoutMs: 10_000 });
  const { last } = stream.timeline;
  const later = stream.host(() => calls.push('later'));
  const done = rejectionOf(held.done);
  await reach(all, stream, last - 1);
  expect(channel.released).toEqual([`${stream.timeline.slot}:${last}`]);
  await reach(all, stream);
  expect(await done).toBe(mine);
  await later.done;
  expect(calls).toEqual(['later']);
});

test.each(results)('%s fails the host function that returns it, and nothing else', async (_, give) => {
  const all = fixture();
  const { core, device } = all;
  const { stream } = device;
  const [calls, seen]: [string[], MillraceError[]] = [[], []];
  core.errors.add({ next: (error) => seen.push(error) });
  const operation = stream.host(give as () => void);
  const later = stream.host(() => calls.push('later'));
  const done = operation.done.catch((error: unknown) => error);
  await reach(all, stream);
  await settle(all.progress);
  await later.done;
  expect(calls).toEqual(['later']);
  // Reported once: by the promise, or to errors$ if the function had already returned.
  expect([await done, ...seen.map(({ cause }) => cause)].filter((error) => error === mine)).toHaveLength(1);
});
