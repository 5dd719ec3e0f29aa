// Failures whose promise is awaited while the event loop has not settled it yet: they do not reach errors$ or a warning.
import { describe, expect, test, vi } from 'vitest';
import { DeviceLostError, type MillraceError } from '../../../src/core/base/errors.js';
import type { Operation } from '../../../src/core/operations/operation.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { FakeChannel, type Fixture, fixture, settle, turn } from './fake-channel.js';

vi.mock('../../../src/core/base/timers.js', () => import('../../support/global-timers.js'));

interface Failing extends Fixture {
  /** Awaited by the test. */
  readonly caught: Operation;
  readonly reported: MillraceError[];
  /** The number of rejections of the promise. */
  readonly rejections: () => number;
  /** The operation fails, and the device continues. */
  fail(): void;
}

/** An awaited operation whose wake is pending. */
async function failing(): Promise<Failing> {
  const all = fixture();
  const { channel, core, device } = all;
  const reported: MillraceError[] = [];
  core.errors.add({ next: (error) => void reported.push(error) });
  const x = device.zeros(1);
  const caught = device.stream.fill(x, 1);
  const { slot, last } = device.stream.timeline;
  let rejections = 0;
  caught.done.catch(() => rejections++);
  // The poll is over when the wake was asked for.
  while (channel.armed.length === 0) await turn();
  const fail = (): void => {
    channel.fail(slot, { id: 1, first: last, last, status: Status.LAUNCH_FAILED, note: 'ours' });
    channel.complete(slot, last);
  };
  return { ...all, caught, reported, rejections: () => rejections, fail };
}

describe('an awaited failure is not reported, although the wake has not come', () => {
  test('when another promise of the stream is read', async () => {
    const { device, reported, rejections, fail } = await failing();
    fail();
    // Reached already: its reading looks for failures, and tells in the next turn.
    await device.stream.synchronize();
    for (let n = 0; n < 3; n++) await turn();
    expect(rejections()).toBe(1);
    expect(reported).toEqual([]);
  });

  test('when the device looks for unawaited failures', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { channel, core, device, reported, rejections, fail } = await failing();
      // Starts the clock again if it had run out.
      device.zeros(1);
      fail();
      channel.completeAll();
      vi.advanceTimersByTime(200);
      for (let n = 0; n < 3; n++) await turn();
      expect(core.failures.hasUnhandled).toBe(false);
      expect(rejections()).toBe(1);
      expect(reported).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('when nothing is left to run in this thread', async () => {
    const { core, reported, rejections, fail } = await failing();
    fail();
    core.tellUnasked();
    await turn();
    expect(rejections()).toBe(1);
    expect(reported).toEqual([]);
  });

  test('when the device is closed', async () => {
    const { channel, core, reported, rejections, fail } = await failing();
    fail();
    channel.completeAll();
    core.finish();
    await turn();
    expect(rejections()).toBe(1);
    expect(reported).toEqual([]);
  });
});

test('a failure is reported when the device is lost whose stream waited for it', async () => {
  const home = fixture();
  const away = fixture(new FakeChannel(8), home.progress, 'cpu:1');
  const reported: MillraceError[] = [];
  home.core.errors.add({ next: (error) => void reported.push(error) });
  const x = home.device.zeros(1);
  home.device.stream.fill(x, 1);
  const { slot, last } = home.device.stream.timeline;
  away.device.stream.waitStream(home.device.stream);
  away.device.zeros(1);
  home.channel.fail(slot, { id: 1, first: last, last, status: Status.LAUNCH_FAILED, note: 'ours' });
  home.channel.complete(slot, last);
  home.core.failures.noteAndReport(home.device.stream.timeline);
  await settle(home.progress);
  expect(reported).toEqual([]);
  away.core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'The device of the test is lost.', 'fault'));
  await settle(home.progress);
  home.core.failures.reportRest(false);
  expect(reported).toMatchObject([{ name: 'LaunchError' }]);
  expect(home.core.failures.hasUnhandled).toBe(false);
});
