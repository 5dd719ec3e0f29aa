// A device of a test beside what a real one does: order, events, memory, failures and limits, without native code.
import { afterEach, describe, expect, test } from 'vitest';
import { Device } from '../../../src/core/api/device.js';
import {
  ArgumentError,
  elapsed,
  f32,
  i32,
  inout,
  input,
  kernel,
  LimitError,
  OutOfMemoryError,
  UnavailableError,
  UpstreamError,
} from '../../../src/index.js';
import { createTestClock, createTestDevice, testKernel, type TestClock, type TestDeviceOptions } from '../../../src/testing/index.js';

const add = kernel('add', { x: inout(i32), y: input(i32), by: i32 }, ({ x, y, by }, { i }) => {
  x[i] = x[i]! + y[i]! + by;
});
const scale = kernel('scale', { x: inout(f32, 2), by: f32 }, ({ x, by }, { i, j }) => {
  x[i]![j] = x[i]![j]! * by;
});

const opened: Device[] = [];
afterEach(async () => {
  for (const device of opened.splice(0)) await device.destroy();
});

interface Bench {
  readonly clock: TestClock;
  readonly device: Device;
}

function bench(opts: Partial<TestDeviceOptions> = {}): Bench {
  const clock = opts.clock ?? createTestClock();
  const kernels = [
    testKernel(add, { ms: 5, run: ({ x, y, by }) => x.forEach((value, at) => (x[at] = value + y[at]! + by)) }),
    testKernel(scale, { ms: ({ threads }) => threads[0], run: ({ x, by }) => x.forEach((value, at) => (x[at] = value * by)) }),
  ];
  const device = createTestDevice({ clock, kernels, ...opts });
  opened.push(device);
  return { clock, device };
}

describe('a test device', () => {
  test('is a Device, and loads no native code', () => {
    const { device } = bench();
    expect(device).toBeInstanceOf(Device);
    const { sharedObjects } = process.report.getReport() as unknown as { readonly sharedObjects: readonly string[] };
    expect(sharedObjects.filter((path) => path.endsWith('millrace.node'))).toEqual([]);
  });

  test('executes fills, copies, views and launches on real bytes', async () => {
    const { clock, device } = bench();
    const x = device.from(Int32Array.of(1, 2, 3, 4));
    const y = device.full(4, 10, i32);
    device.stream.launch(add, 4, { x, y, by: 100 });
    const z = device.zeros([2, 2], i32);
    device.stream.copy(z, x.reshape([2, 2]));
    await clock.run(async () => {
      expect([...(await x.read())]).toEqual([111, 112, 113, 114]);
      expect([...(await z.read())]).toEqual([111, 112, 113, 114]);
      expect([...(await x.subarray(1, 3).read())]).toEqual([112, 113]);
    });
    expect(clock.now).toBe(5);
    const pinned = device.pinned(4, i32);
    await device.stream.copy(pinned, x).done;
    expect([...pinned.data]).toEqual([111, 112, 113, 114]);
  });

  test('gives scalars and arrays of more dimensions to the function, and takes the time that it says', async () => {
    const { clock, device } = bench();
    const x = device.from(Float32Array.of(1, 2, 3, 4, 5, 6)).reshape([2, 3]);
    device.stream.launch(scale, [2, 3], { x, by: 0.5 });
    await clock.run(() => device.stream.synchronize());
    expect(clock.now).toBe(3);
    expect([...(await x.read())]).toEqual([0.5, 1, 1.5, 2, 2.5, 3]);
  });

  test('copies a batch in the time of its copies from and to the host', async () => {
    const { clock, device } = bench({ uploadMs: 2, downloadMs: (bytes) => bytes });
    const [x, y] = [device.full(4, 7, i32), device.zeros(4, i32)];
    const [up, down, pinned] = [Int32Array.of(1, 2), new Int32Array(4), device.pinned(2, i32)];
    await clock.run(() => device.synchronize());
    const before = clock.now;
    const batch = device.stream.copyBatch([
      [down, x],
      [y.subarray(0, 2), up],
      [y.subarray(2), x.subarray(2)],
      [pinned, x.subarray(0, 2)],
    ]);
    await clock.run(() => batch.done);
    expect(clock.now - before).toBe(2 + 16 + 8);
    expect([...down, ...pinned.data]).toEqual([7, 7, 7, 7, 7, 7]);
    await clock.run(async () => expect([...(await y.read())]).toEqual([1, 2, 7, 7]));
  });

  test('reads more than the library copies through its staging memory', async () => {
    const { device } = bench();
    const large = new Int32Array(3 * 2 ** 20).map((_, at) => at);
    const read = await device.from(large).read();
    expect(read.length).toBe(large.length);
    expect(read.at(-1)).toBe(large.at(-1));
  });

  test('runs streams side by side and joins them by events and by arrays', async () => {
    const { clock, device } = bench();
    const [one, other] = [device.createStream(), device.createStream()];
    const [x, y] = [device.zeros(1, i32), device.zeros(1, i32)];
    await clock.run(() => device.synchronize());
    one.launch(add, 1, { x, y, by: 1 });
    other.launch(add, 1, { x: y, y: device.zeros(1, i32), by: 1 });
    await clock.run(() => device.synchronize());
    // The second launch writes what the first one reads.
    expect(clock.now).toBe(10);
    const [a, b] = [device.zeros(1, i32), device.zeros(1, i32)];
    one.launch(add, 1, { x: a, y: device.ones(1, i32), by: 1 });
    other.launch(add, 1, { x: b, y: device.ones(1, i32), by: 1 });
    await clock.run(() => device.synchronize());
    expect(clock.now).toBe(15);
  });

  test('tells the virtual time between timing events of a graph, for the latest launch', async () => {
    const { clock, device } = bench();
    const { stream } = device;
    const [before, after] = [device.createEvent({ timing: true }), device.createEvent({ timing: true })];
    const [x, y] = [device.zeros(1, i32), device.zeros(1, i32)];
    const graph = stream.capture((s) => {
      s.launch(add, 1, { x, y, by: 1 });
      s.record(before);
      s.launch(add, 1, { x, y, by: 1 });
      s.launch(add, 1, { x, y, by: 1 });
      s.record(after);
    });
    using begun = stream.record({ timing: true });
    for (let n = 0; n < 2; n++) stream.launch(graph);
    expect(await clock.run(() => elapsed(before, after))).toBe(10);
    expect(await clock.run(() => elapsed(begun, before))).toBe(20);
    expect(await clock.run(() => elapsed(begun, after))).toBe(30);
  });

  test('copies between devices of one clock', async () => {
    const { clock, device } = bench();
    const { device: other } = bench({ clock });
    const x = device.from(Int32Array.of(7, 8));
    const y = other.empty(2, i32);
    other.stream.copy(y, x);
    expect([...(await clock.run(() => y.read()))]).toEqual([7, 8]);
  });

  test('runs kernels with pinned arrays, and with arrays of another device that granted them', async () => {
    const { clock, device } = bench();
    const { device: other } = bench({ clock });
    const pinned = device.pinned(4, i32);
    pinned.data.set([1, 2, 3, 4]);
    const y = other.full(2, 10, i32);
    const x = pinned.subarray(1, 3);
    expect(() => device.stream.launch(add, 2, { x, y, by: 100 })).toThrow(ArgumentError);
    await clock.run(() => other.peers.grant(device, 'pool'));
    await clock.run(() => device.stream.launch(add, 2, { x, y, by: 100 }).done);
    expect([...pinned.data]).toEqual([1, 112, 113, 4]);
    const graph = device.stream.capture((stream) => void stream.launch(add, 2, { x: y, y: x, by: 0 }));
    device.stream.launch(graph);
    expect([...(await clock.run(() => y.read()))]).toEqual([122, 123]);
    await clock.run(() => other.peers.revoke(device, 'pool'));
    expect(() => device.stream.launch(add, 2, { x, y, by: 100 })).toThrow('owner.peers.grant');
  });

  test('holds a stream until the function has settled', async () => {
    const { clock, device } = bench();
    device.stream.hold(() => clock.sleep(30), { timeoutMs: 100 });
    const late = device.stream.hold(() => new Promise(() => undefined), { timeoutMs: 20 });
    const ended = expect(late.done).rejects.toMatchObject({ name: 'WaitTimeoutError', timeoutMs: 20 });
    await clock.run(() => device.stream.synchronize());
    expect(clock.now).toBe(50);
    await ended;
  });

  test('calls a function of external at its place, with addresses 0n, and fails what derives from its failure', async () => {
    const { clock, device } = bench();
    const { stream } = device;
    const [x, y] = [device.zeros(2, i32), device.zeros(2, i32)];
    let given: unknown;
    const waited = stream.external({ reads: { x }, writes: { y } }, async ({ stream: handle, context, pointers }) => {
      given = { handle, context, pointers };
      await clock.sleep(30);
    });
    await clock.run(() => waited.done);
    expect([clock.now, given]).toEqual([30, { handle: 0n, context: 0n, pointers: { x: 0n, y: 0n } }]);
    const boom = new Error('no ink');
    const failed = stream.external({ writes: { y } }, () => {
      throw boom;
    });
    let calls = 0;
    const derived = stream.external({ reads: { y }, writes: { x } }, () => calls++);
    const errors = [failed, derived].map(({ done }) => done.then(undefined, (error: unknown) => error));
    await clock.run(() => stream.synchronize());
    expect(await errors[0]).toBe(boom);
    expect(await errors[1]).toMatchObject({ name: 'UpstreamError', cause: { cause: boom } });
    expect(calls).toBe(0);
    await expect(clock.run(() => x.read())).rejects.toThrow(UpstreamError);
    await clock.run(() => stream.external({ writes: { x, y } }, () => undefined).done);
    expect([...(await clock.run(() => x.read()))]).toEqual([0, 0]);
  });

  test('poisons what a failed launch would have written', async () => {
    const clock = createTestClock();
    const fail = testKernel(add, {
      run: () => {
        throw new Error('no ink');
      },
    });
    const { device } = bench({ clock, kernels: [fail] });
    const x = device.zeros(2, i32);
    const launched = device.stream.launch(add, 2, { x, y: device.ones(2, i32), by: 1 });
    await expect(launched.done).rejects.toThrow(/launch add .* refused by the device: no ink/);
    await expect(x.read()).rejects.toThrow(UpstreamError);
    device.stream.fill(x, 3);
    expect([...(await x.read())]).toEqual([3, 3]);
  });

  test('knows only the kernels that it was given', async () => {
    const { device } = bench({ kernels: [] });
    const launched = device.stream.launch(add, 1, { x: device.zeros(1, i32), y: device.zeros(1, i32), by: 1 });
    await expect(launched.done).rejects.toThrow(UnavailableError);
    await expect(device.compile(add)).rejects.toThrow('has no testKernel for kernel add');
  });

  test('has limits', async () => {
    const { clock, device } = bench({ memoryBytes: 100, maxPending: 8 });
    const kept = device.zeros(15);
    await expect(device.zeros(15).read()).rejects.toMatchObject({ cause: expect.any(OutOfMemoryError) });
    kept[Symbol.dispose]();
    expect((await device.zeros(15).read()).length).toBe(15);
    const x = device.zeros(1, i32);
    const submit = (): void => {
      for (let n = 0; n < 9; n++) device.stream.launch(add, 1, { x, y: x, by: 1 });
    };
    await clock.advance(0);
    expect(submit).toThrow(LimitError);
    await clock.run(() => device.stream.synchronize());
  });

  test('gives its streams back', async () => {
    const { device } = bench();
    for (let round = 0; round < 4; round++) {
      const streams = Array.from({ length: 700 }, () => device.createStream());
      await Promise.all(streams.map((stream) => stream.close()));
    }
    expect(device.state).toBe('open');
  });

  test('refuses bad options at the call', () => {
    const clock = createTestClock();
    const name = 'ArgumentError';
    expect(() => createTestDevice({ clock: { now: 0 } as never })).toThrow(expect.objectContaining({ name, argument: 'clock' }));
    expect(() => createTestDevice({ clock, uploadMs: -1 })).toThrow(expect.objectContaining({ name, argument: 'uploadMs', limit: 0 }));
    expect(() => createTestDevice({ clock, kernels: [add as never] })).toThrow(expect.objectContaining({ name, argument: 'kernels' }));
    expect(() => testKernel(add, { ms: Number.NaN })).toThrow(expect.objectContaining({ name, argument: 'ms' }));
    expect(() => testKernel({} as never)).toThrow(expect.objectContaining({ name, argument: 'kernel' }));
    expect(() => createTestClock({ assertEqual: 1 as never })).toThrow(expect.objectContaining({ name, argument: 'assertEqual' }));
  });
});
