// The list of uses keeps nothing of a refused record. The list lives as long as the thread, and an array that it
// kept would keep its device.
import { expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { output } from '../../../src/core/kernels/kernel.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { collectUntil } from '../../support/wait.js';
import { type FakeChannel, fixture, shiftKernel } from './fake-channel.js';

type Submit = (stream: Stream, x: DeviceArray<'f32'>, y: DeviceArray<'f32'>) => unknown;

const kernel = shiftKernel(output(f32));

test.each<[string, Status, Submit]>([
  ['launch that finds no room', Status.LIMIT, (stream, y) => stream.launch(kernel, 4, { y })],
  ['launch with an argument too many', Status.OK, (stream, y) => stream.launch(kernel, 4, { y, z: 1 } as never)],
  ['fill that finds no room', Status.LIMIT, (stream, x) => stream.fill(x, 1)],
  ['copy that finds no room', Status.LIMIT, (stream, x, y) => stream.copy(x, y)],
  ['copy of a view that finds no room', Status.LIMIT, (stream, x, y) => stream.copy(x.view([0, 2]), y.view([0, 4, 2]))],
])('a %s keeps no device in memory', async (_, status, submit) => {
  /** In a separate scope, so that only the library can still refer to the closed objects. */
  async function refuse(): Promise<WeakRef<FakeChannel>> {
    const { channel, device } = fixture();
    const { stream } = device;
    const arrays = [stream.zeros(4), stream.zeros(4)] as const;
    channel.refusal = status;
    expect(() => submit(stream, ...arrays)).toThrow();
    channel.refusal = Status.OK;
    for (const array of arrays) array[Symbol.dispose]();
    await device.destroy();
    return new WeakRef(channel);
  }
  const channel = await refuse();
  await collectUntil(() => channel.deref() === undefined);
  expect(channel.deref()).toBeUndefined();
});

test('a launch of no threads keeps no device in memory', async () => {
  async function launch(): Promise<WeakRef<FakeChannel>> {
    const { channel, device } = fixture();
    device.stream.launch(kernel, 0, { y: device.stream.zeros(4) });
    await device.destroy();
    return new WeakRef(channel);
  }
  const channel = await launch();
  await collectUntil(() => channel.deref() === undefined);
  expect(channel.deref()).toBeUndefined();
});
