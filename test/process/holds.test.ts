// Holds on the CPU device: the work that continues meanwhile, and how holds end.
import { executionAsyncId } from 'node:async_hooks';
import { DeviceLostError, openDevice, type Device } from 'millrace';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runChild } from '../support/child.js';

describe('hold', () => {
  let device: Device;
  beforeAll(async () => {
    device = await openDevice('cpu');
  });
  afterAll(() => device.close());

  test('makes promises slower only while its function runs', async () => {
    // Node gives the continuations of an await an id only while something follows asynchronous contexts, which costs time for each promise.
    const followed = async (): Promise<boolean> => {
      await Promise.resolve();
      return executionAsyncId() !== 0;
    };
    expect(await followed()).toBe(false);
    const [a, b] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
    let end = (): void => undefined;
    const until = new Promise<void>((resolve) => (end = resolve));
    const long = a.hold(() => until, { timeoutMs: 20_000 });
    let within: boolean | undefined;
    await b.hold(async () => void (within = await followed()), { timeoutMs: 20_000 }).done;
    expect(within).toBe(true);
    expect(await followed()).toBe(true);
    end();
    await long.done;
    expect(await followed()).toBe(false);
    await expect(a.hold(() => Promise.reject(new Error('no')), { timeoutMs: 20_000 }).done).rejects.toThrow('no');
    expect(await followed()).toBe(false);
    await Promise.all([a.close(), b.close()]);
  });

  test('of 64 streams at once occupies no thread: other streams and the event loop continue', async () => {
    const streams = Array.from({ length: 64 }, () => device.createStream());
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const holds = streams.map((stream) => stream.hold(() => gate, { timeoutMs: 20_000 }));
    const x = device.zeros(1 << 16, 'i32');
    for (let n = 0; n < 50; n++) device.stream.fill(x, n);
    expect((await x.read())[7]).toBe(49);
    expect(holds.every(({ isComplete }) => !isComplete)).toBe(true);
    expect(device.inspect().streams.filter(({ waitingFor }) => waitingFor?.kind === 'host')).toHaveLength(64);
    open();
    await Promise.all(holds.map(({ done }) => done));
    await Promise.all(streams.map((stream) => stream.close()));
    x[Symbol.dispose]();
  });

  test('1,000 one after the other, with promises between them, keep the order', async () => {
    const stream = device.createStream();
    const x = stream.zeros(1, 'i32');
    const order: number[] = [];
    for (let n = 0; n < 1000; n++) {
      stream.hold(() => void order.push(n), { timeoutMs: 20_000 });
      stream.fill(x, n);
    }
    await stream.synchronize();
    expect(order).toEqual(Array.from({ length: 1000 }, (_, n) => n));
    expect((await x.read())[0]).toBe(999);
    x[Symbol.dispose]();
    await stream.close();
  });
});

test('destroy ends a hold: its signal aborts, the device closes, the process exits', async () => {
  const ending = await runChild(`import { openDevice } from 'millrace';
    const device = await openDevice('cpu');
    const stream = device.createStream();
    let aborted;
    const running = stream.hold((signal) => new Promise(() => { aborted = signal; }), { timeoutMs: 60_000 });
    const waiting = stream.hold(() => { console.log('never'); }, { timeoutMs: 60_000 });
    const done = Promise.allSettled([running.done, waiting.done]);
    while (!aborted) await new Promise((resolve) => setImmediate(resolve));
    await device.destroy();
    console.log(aborted.aborted, ...(await done).map(({ reason }) => reason.name));`);
  expect(ending).toEqual({ code: 0, signal: null, stdout: `true ${DeviceLostError.name} ${DeviceLostError.name}\n`, stderr: '' });
});

test('a process lives until its hold has ended', async () => {
  const ending = await runChild(`import { openDevice } from 'millrace';
    const device = await openDevice('cpu');
    device.stream.hold(() => new Promise((resolve) => setTimeout(() => resolve(console.log('held')), 50).unref()), { timeoutMs: 20_000 });
    device.stream.host(() => console.log('after'));`);
  expect(ending).toEqual({ code: 0, signal: null, stdout: 'held\nafter\n', stderr: '' });
});
