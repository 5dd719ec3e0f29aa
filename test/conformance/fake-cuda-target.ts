// The CUDA backend over a driver library that computes on the CPU, so that the whole of native/cuda runs on machines without a GPU.
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { expect, test } from 'vitest';
import { listDevices, openDevice } from 'millrace';
import { IS_LONG } from '../support/long.js';
import { CPU_SUPPORTS, type Target } from '../support/target.js';

const FAKE_CUDA: Target = {
  name: 'fake-cuda',
  spec: 'cuda:0',
  supports: { ...CPU_SUPPORTS, memoryLimit: true },
  // Each build starts a process of its own, and each launch runs in the driver's one thread. The CPU device runs these tests in full. The
  // fake driver compiles texts as the CPU device does.
  ...(!IS_LONG && { kernels: 8, launches: 200_000, textStep: 3 }),
  open: (options) => openDevice('cuda:0', options),
  openOther: () => openDevice('cuda:1'),
};

/** Runs chapters on the fake driver; where it was not built, one skipped test says so. */
export function onFakeCuda(run: (target: Target) => void): void {
  if (FAKE_DRIVER === undefined) {
    test('S801 the suite runs on the fake driver', (context) => {
      context.skip(FAKE_DRIVER_MISSING);
    });
    return;
  }
  test('S801 the fake driver is the one that was opened', async () => {
    const devices = await listDevices();
    expect(devices.filter(({ backend }) => backend === 'cuda').length).toBeGreaterThan(0);
  });
  run(FAKE_CUDA);
}
