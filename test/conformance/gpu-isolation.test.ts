// GPUs in processes of their own: a fault ends one of them, and it can be opened again, which a GPU of this process cannot.
import { HAS_GPU } from '../support/has-gpu.js';
import { FAKE_DRIVER_MISSING } from '../support/fake-driver.js';
import { expect, test } from 'vitest';
import { cudaKernel, i32, inout, listDevices, openDevice } from 'millrace';

if (!HAS_GPU) await import('../support/fake-cuda.js');
const count = (await listDevices()).filter(({ backend }) => backend === 'cuda').length;
const missing = HAS_GPU ? 'this machine has no two GPUs' : FAKE_DRIVER_MISSING;

const add = cudaKernel('add', { x: inout(i32) }, 'extern "C" __global__ void add(int* x) { x[threadIdx.x] += 1; }');
const trap = cudaKernel('trap', { x: inout(i32) }, 'extern "C" __global__ void trap(int* x) { if (x[0] == 0) __trap(); }');
const ONE = { grid: 1, block: 4 };

test('S631 a GPU that faults in a process of its own opens again, and another one goes on', { timeout: 60_000 }, async (context) => {
  if (count < 2) context.skip(missing);
  const [device, other] = await Promise.all([
    openDevice('cuda:0', { isolation: 'process' }),
    openDevice('cuda:1', { isolation: 'process' }),
  ]);
  using y = other.zeros(4, 'i32');
  other.stream.launch(add, ONE, { x: y });
  const x = device.zeros(4, 'i32');
  device.stream.launch(add, ONE, { x });
  expect([...(await x.read())]).toEqual([1, 1, 1, 1]);
  device.stream.fill(x, 0);
  device.stream.launch(trap, ONE, { x });
  await expect(device.lost).resolves.toMatchObject({ name: 'DeviceLostError', reason: 'fault', restartNeeds: 'reopen' });
  await expect(x.read()).rejects.toMatchObject({ name: 'DeviceLostError' });
  other.stream.launch(add, ONE, { x: y });
  expect([...(await y.read())]).toEqual([2, 2, 2, 2]);
  await using again = await openDevice('cuda:0', { isolation: 'process' });
  using z = again.zeros(4, 'i32');
  again.stream.launch(add, ONE, { x: z });
  expect([...(await z.read())]).toEqual([1, 1, 1, 1]);
  await other.close();
});

test('S630 pinned memory and large copies of a GPU in a process of its own; it opens again after close', {
  timeout: 60_000,
}, async (context) => {
  if (count < 2) context.skip(missing);
  const device = await openDevice('cuda:0', { isolation: 'process' });
  using pinned = device.pinned(1 << 20, 'f32');
  pinned.data.fill(3);
  const x = device.zeros(1 << 20, 'f32');
  await device.stream.copy(x, pinned).done;
  const read = x.read();
  expect((await read)[12_345]).toBe(3);
  await device.close();
  await using again = await openDevice('cuda:0', { isolation: 'process' });
  using z = again.ones(4, 'f32');
  expect([...(await z.read())]).toEqual([1, 1, 1, 1]);
});
