// Host functions on the CPU device: how they keep the process alive, and how waiting streams are reported.
import { cudaKernel, i32, inout, openDevice, type Device, type WaitTimeoutError } from 'millrace';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runChild } from '../support/child.js';

const OPEN = `import { openDevice } from 'millrace';
  const device = await openDevice('cpu');
  const { stream } = device;`;

describe('a process', () => {
  test('lives exactly until its host function was called', async () => {
    const ending = await runChild(`${OPEN}
      globalThis.kept = device.zeros(1 << 20);
      for (let n = 0; n < 3; n++) stream.fill(kept, n);
      stream.host(() => console.log('called'));`);
    expect(ending).toEqual({ code: 0, signal: null, stdout: 'called\n', stderr: '' });
  });

  test('survives a function that throws, with one warning', async () => {
    const ending = await runChild(`${OPEN}
      for (let n = 0; n < 3; n++) stream.host(() => { throw new Error('mine ' + n); }, { label: 'note' });
      await stream.synchronize();
      console.log('goes on');
      await device.close();`);
    expect([ending.code, ending.stdout]).toEqual([0, 'goes on\n']);
    expect(ending.stderr).toMatch(/The host function note on stream default of device cpu:0 failed: mine 0/);
    expect(ending.stderr).not.toMatch(/mine 1/);
  });
});

describe('a device', () => {
  let device: Device;
  beforeAll(async () => {
    device = await openDevice('cpu');
  });
  afterAll(() => device.close());

  test('emits them to subscribers when they have been called', async () => {
    const stream = device.createStream();
    const told: (string | undefined)[] = [];
    const subscription = stream.activity$.subscribe(({ phase, operation, error }) => told.push(phase, operation.label, error?.code));
    const mine = new Error('mine');
    stream.host(() => void told.push('called'), { label: 'one' });
    const thrower = stream.host(
      () => {
        throw mine;
      },
      { label: 'two' },
    );
    told.length = 0;
    expect(await thrower.done.catch((error: unknown) => error)).toBe(mine);
    await stream.close();
    subscription.unsubscribe();
    expect(told).toEqual(['called', 'finished', 'one', undefined, 'failed', 'two', 'ERR_MILLRACE_HOST']);
  });

  test('shows that a kernel is being built', async () => {
    const stream = device.createStream({ label: 'builds' });
    const flag = stream.full(1, 1, 'i32');
    await stream.synchronize();
    const text = `extern "C" __global__ void fresh(int* flag) { flag[0] = ${Date.now() % 1_000_000_000}; }`;
    const launch = stream.launch(cudaKernel('fresh', { flag: inout(i32) }, text), { grid: 1, block: 1 }, { flag });
    const error = (await launch.synchronize({ timeoutMs: 20 }).catch((thrown: unknown) => thrown)) as WaitTimeoutError;
    expect(error.message).toMatch(/: stream builds is at launch fresh, whose kernel is being built\.$/);
    expect(error.waitingFor[0]?.waitingFor?.kind).toBe('compile');
    await stream.close();
    flag[Symbol.dispose]();
  });
});
