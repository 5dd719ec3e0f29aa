// Arrays that nobody disposed, and views that outlive the object they were made of. In a file of its own: the warning comes
// once a process.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import { collectUntil } from '../../support/wait.js';
import { type FakeChannel, fixture } from './fake-channel.js';

const frees = (channel: FakeChannel): number => channel.opcodes().filter((opcode) => opcode === 'FREE').length;

test('memory is freed when the last of an array and its views is collected, with one warning', async () => {
  const warnings: Error[] = [];
  const hear = (warning: Error): void => void warnings.push(warning);
  process.on('warning', hear);
  try {
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
    expect([frees(channel), warnings.length]).toEqual([0, 0]);
    views.length = 0;
    await collectUntil(() => frees(channel) === 2);
    expect(frees(channel)).toBe(2);
    await delay(5);
    expect(warnings.map((warning) => 'code' in warning && warning.code)).toEqual(['MILLRACE_FORGOTTEN']);
  } finally {
    process.off('warning', hear);
  }
});
