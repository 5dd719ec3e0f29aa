// Arrays that nobody disposed, and views that outlive the object they were made of. In a file of its own, because the process emits the
// warning once. The last test is the one that causes it.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import { DeviceLostError } from '../../../src/core/base/errors.js';
import type { Storage } from '../../../src/core/memory/storage.js';
import { LaneAbort } from '../../../src/reactive/lane-abort.js';
import { LaneMemory } from '../../../src/reactive/lane-memory.js';
import { LaneTurn } from '../../../src/reactive/lane.js';
import { Meter } from '../../../src/reactive/meter.js';
import { collectUntil, turn } from '../../support/wait.js';
import { type FakeChannel, finish, type Fixture, fixture } from './fake-channel.js';

/** The warnings that the process emits while `body` runs, as their codes. */
async function warningsOf(body: () => Promise<void>): Promise<unknown[]> {
  const codes: unknown[] = [];
  const hear = (warning: Error): void => void codes.push('code' in warning && warning.code);
  process.on('warning', hear);
  try {
    await body();
    await delay(5);
  } finally {
    process.off('warning', hear);
  }
  return codes;
}

test.each([
  ['closed', async ({ device }: Fixture) => device.close()],
  ['closing', async ({ device }: Fixture) => void device.close()],
  ['destroyed', async ({ device }: Fixture) => device.destroy()],
  ['lost', async ({ core }: Fixture) => core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Lost.', 'worker-exit', { device: core.name }))],
])('arrays of a device that is %s are collected without a warning', async (state, end) => {
  const codes = await warningsOf(async () => {
    const all = fixture();
    // The storage outlives its array and shows that the finalizer ran.
    const storages = (function make(): readonly Storage[] {
      return [all.device.zeros(4), all.device.zeros(4)].map((array) => array.storage);
    })();
    if (state !== 'closing') finish(all);
    await end(all);
    expect(all.core.state).toBe(state === 'destroyed' ? 'closed' : state);
    await collectUntil(() => storages.every((storage) => storage.isDisposed));
    expect(storages.map((storage) => storage.isDisposed)).toEqual([true, true]);
    if (state === 'closing') await all.device.destroy();
  });
  expect(codes).toEqual([]);
});

test('an array that was detached from a lane is collected, also in the memory of the item before', async () => {
  const codes = await warningsOf(async () => {
    const all = fixture();
    const slot = { index: 0, device: all.device, stream: all.device.stream, memory: new LaneMemory() };
    const makeTurn = (): LaneTurn => new LaneTurn(slot, new LaneAbort(), 1, new Meter(() => 0));
    const first = makeTurn();
    const before = first.empty(4).storage;
    finish(all);
    first.end();
    const storage = ((): Storage => {
      const second = makeTurn();
      const detached = second.detach(second.empty(4));
      second.end();
      return detached.storage;
    })();
    expect([storage.handle, storage === before, storage.isDisposed]).toEqual([before.handle, false, false]);
    void all.device.close();
    await collectUntil(() => storage.isDisposed);
    expect(storage.isDisposed).toBe(true);
    await all.device.destroy();
  });
  expect(codes).toEqual([]);
});

const frees = (channel: FakeChannel): number => channel.opcodes().filter((opcode) => opcode === 'FREE').length;

test('memory is freed when the last of an array and its views is collected, with one warning that names array and line', async () => {
  const messages: string[] = [];
  process.once('warning', ({ message }) => messages.push(message));
  const codes = await warningsOf(async () => {
    const { channel, device } = fixture();
    // In a scope of its own, so that only the views refer to the array's memory.
    const views: DeviceArray[] = [];
    const bases: WeakRef<DeviceArray>[] = [];
    (function make(): void {
      for (let n = 0; n < 2; n++) {
        const base = device.zeros([4, 4]);
        bases.push(new WeakRef(base));
        views.push(base.transpose().view([undefined, undefined, -1]));
      }
    })();
    await collectUntil(() => bases.every((base) => base.deref() === undefined));
    expect(bases.map((base) => base.deref())).toEqual([undefined, undefined]);
    expect(views[0]!.isDisposed).toBe(false);
    device.stream.fill(views[0]!, 1);
    expect(frees(channel)).toBe(0);
    expect(await warningsOf(() => turn())).toEqual([]);
    views.length = 0;
    await collectUntil(() => frees(channel) === 2);
    expect(frees(channel)).toBe(2);
  });
  expect(codes).toEqual(['MILLRACE_FORGOTTEN']);
  expect(messages).toEqual([expect.stringMatching(/: f32\[4, 4\] \(64 bytes, made at .*forgotten\.test\.ts:\d+:\d+\)\. Declare/)]);
});
