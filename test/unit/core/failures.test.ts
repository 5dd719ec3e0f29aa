// Failure records as errors: how they are reported, their messages, and the effects of a refused submission.
import { describe, expect, test, vi } from 'vitest';
import {
  BoundsError,
  CompileError,
  DeviceLostError,
  LaunchError,
  LimitError,
  type MillraceError,
  OutOfMemoryError,
  UpstreamError,
} from '../../../src/core/base/errors.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { entryOf } from '../../../src/core/ordering/vector-clock.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { fixture, shiftKernel, turn } from './fake-channel.js';

vi.mock('../../../src/core/base/timers.js', () => import('../../support/global-timers.js'));

const kernel = shiftKernel(inout(f32));

describe('failures', () => {
  test('a failed allocation reports the requested and the free bytes', async () => {
    const { channel, device } = fixture();
    const x = device.empty(100);
    const { slot, last } = device.stream.timeline;
    const fill = device.stream.fill(x, 1);
    channel.fail(slot, { id: 1, first: last, last, status: Status.OUT_OF_MEMORY, requestedBytes: 400, freeBytes: 99 });
    channel.fail(slot, { id: 2, first: last + 1, last: last + 1, status: Status.UPSTREAM, cause: 1 });
    channel.completeAll();
    const error = await fill.done.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(UpstreamError);
    const { cause, operation } = error as UpstreamError;
    expect(cause).toBeInstanceOf(OutOfMemoryError);
    expect(cause).toMatchObject({ requestedBytes: 400, freeBytes: 99, device: 'cpu:0', stream: 'default' });
    expect(cause.message).toContain('(400 bytes)');
    expect(cause.message).toContain('(99 bytes)');
    expect(operation?.id).toBe(fill.id);
  });

  test('a node of a graph that is refused or reads poison is named with its graph', async () => {
    const { channel, device } = fixture();
    const y = device.zeros(4);
    const { stream } = device;
    const graph = stream.capture((s) => {
      s.fill(y, 1);
      s.launch(kernel, { threads: 4, label: 'moves' }, { y });
    });
    const reason = async (facts: { readonly status: Status; readonly note?: string; readonly node?: number }): Promise<string> => {
      const launched = stream.launch(graph);
      const { slot, last } = stream.timeline;
      channel.fail(slot, { id: 100 + last, first: last, last, ...facts });
      channel.completeAll();
      return launched.done.then(
        () => '',
        (error: unknown) => (error as Error).message,
      );
    };
    const where = 'on stream default of device cpu:0';
    expect(await reason({ status: Status.LAUNCH_FAILED, note: 'no room', node: 1 })).toBe(
      `Node 1 (launch moves) of graph default ${where} was refused by the device: no room.`,
    );
    expect(await reason({ status: Status.LAUNCH_FAILED, note: 'no room' })).toBe(
      `The graph default ${where} was refused by the device: no room.`,
    );
    // Many graphs in turn: those of finished launches are forgotten, and the pending ones are not.
    const others = Array.from({ length: 200 }, (_, n) => stream.capture((s) => void s.fill(y, n), { label: `graph ${n}` }));
    const launches = others.map((other) => stream.launch(other));
    const { slot, last } = stream.timeline;
    channel.fail(slot, { id: 1000, first: last - 199, last: last - 199, status: Status.LAUNCH_FAILED, node: 0 });
    channel.completeAll();
    await expect(launches[0]?.done).rejects.toThrow(`Node 0 (fill) of graph graph 0 ${where}`);
    expect(await reason({ status: Status.LAUNCH_FAILED, node: 0 })).toBe(
      `Node 0 (fill) of graph default ${where} was refused by the device.`,
    );
  });

  test('a bounds failure names kernel, parameter, index, limit, block and thread', async () => {
    const { channel, device } = fixture();
    const y = device.zeros(4);
    const launch = device.stream.launch(kernel, 4, { y });
    const handle = channel.records.at(-1)!.view.getUint32(16, true);
    const { slot, last } = device.stream.timeline;
    const fault = { parameter: 0, dimension: 0, index: 4, limit: 4, block: [1, 0, 0], thread: [3, 0, 0], places: [0, 0] } as const;
    channel.fail(slot, { id: 9, first: last, last, status: Status.BOUNDS, kernel: handle, fault });
    channel.completeAll();
    const error = (await launch.done.then(
      () => undefined,
      (reason: unknown) => reason,
    )) as BoundsError;
    expect(error).toBeInstanceOf(BoundsError);
    expect(error).toMatchObject({ array: 'y', dimension: 0, index: 4, limit: 4, block: [1, 0, 0], thread: [3, 0, 0] });
    expect(error.message).toBe(
      'Kernel shift on stream default of device cpu:0 used index 4 of dimension 0 of y, outside its bounds (0 to 3), in thread (3, 0, 0) of block (1, 0, 0).',
    );
  });

  test('a launch of a kernel that does not build rejects with the error of the build, however late that arrives', async () => {
    const { channel, device } = fixture();
    const y = device.zeros(4);
    const launch = device.stream.launch(kernel, 4, { y });
    const handle = channel.records.at(-1)!.view.getUint32(16, true);
    const { slot, last } = device.stream.timeline;
    const rejected = vi.fn();
    launch.done.catch(rejected);
    channel.fail(slot, { id: 1, first: last, last, status: Status.COMPILE, kernel: handle });
    channel.completeAll();
    for (let n = 0; n < 3; n++) await turn();
    expect(rejected).not.toHaveBeenCalled();
    const reason = new CompileError('K702', 'It does not compile.', '', []);
    channel.builds.get(handle)!.reject(reason);
    await turn();
    expect(rejected).toHaveBeenCalledWith(reason);
  });

  test('an interval that grows covers later tickets', async () => {
    const { channel, device } = fixture();
    const x = device.zeros(4);
    const first = device.stream.fill(x, 1);
    const { slot, last } = device.stream.timeline;
    channel.fail(slot, { id: 3, first: last, last, status: Status.LAUNCH_FAILED, note: 'refused' });
    channel.completeAll();
    await expect(first.done).rejects.toMatchObject({ name: 'LaunchError', message: expect.stringContaining('refused') });
    const second = device.stream.fill(x, 1);
    channel.fail(slot, { id: 3, first: last, last: last + 1, status: Status.LAUNCH_FAILED, note: 'refused' });
    channel.completeAll();
    await expect(second.done).rejects.toMatchObject({ name: 'LaunchError' });
  });

  test('at the end of a process unawaited failures are reported, and the process waits for a pending reason', async () => {
    const { channel, core, device } = fixture();
    const seen: MillraceError[] = [];
    core.errors.add({ next: (error) => seen.push(error) });
    const held = vi.spyOn(channel, 'keepAlive');
    const y = device.zeros(4);
    device.stream.launch(kernel, 4, { y });
    const handle = channel.records.at(-1)!.view.getUint32(16, true);
    const { slot, last } = device.stream.timeline;
    device.stream.fill(y, 1);
    channel.fail(slot, { id: 1, first: last, last, status: Status.COMPILE, kernel: handle });
    channel.fail(slot, { id: 2, first: last + 1, last: last + 1, status: Status.LAUNCH_FAILED, note: 'two' });
    // The stream has more pending operations, and the test does not wait for them.
    channel.complete(slot, last + 1);
    device.stream.fill(y, 2);
    core.tellUnasked();
    expect(seen.map(({ message }) => message)).toEqual([expect.stringContaining('two')]);
    expect(held).toHaveBeenCalledTimes(1);
    const reason = new CompileError('K702', 'It does not compile.', '', []);
    channel.builds.get(handle)!.reject(reason);
    await turn();
    expect(seen.at(-1)).toBe(reason);
    core.tellUnasked();
    expect([seen.length, held.mock.calls.length]).toEqual([2, 1]);
  });

  test('synchronize does not reject for failures, which belong to their operations', async () => {
    const { channel, core, device } = fixture();
    core.errors.add({ next: () => undefined });
    const x = device.zeros(4);
    device.stream.fill(x, 1);
    const { slot, last } = device.stream.timeline;
    channel.fail(slot, { id: 1, first: last, last, status: Status.LAUNCH_FAILED });
    channel.completeAll();
    await device.synchronize();
  });
});

describe('limits', () => {
  test('a refused submission changes nothing, and retryAfter resolves when there is room', async () => {
    const { channel, device } = fixture();
    const [a, b] = [device.createStream(), device.createStream()];
    const x = a.ones(4);
    const { last } = b.timeline;
    const order = (): unknown => [[...x.storage.uses()], x.storage.lastWrites(0, 16), x.storage.history.size];
    const before = order();
    channel.refusal = Status.LIMIT;
    const calls = [
      () => b.fill(x, 1),
      () => b.copy(x, new Float32Array(4)),
      () => b.launch(kernel, 4, { y: x }),
      () => b.zeros(4),
      () => a.fill(x, 1),
    ];
    for (const call of calls) expect(call).toThrow(LimitError);
    expect(order()).toEqual(before);
    expect([b.timeline.last, entryOf(b.timeline).hasWaited(entryOf(a.timeline), 1), device.core.arena.isSettling]).toEqual([
      last,
      false,
      false,
    ]);
    let error: LimitError | undefined;
    try {
      a.fill(x, 1);
    } catch (caught) {
      error = caught as LimitError;
    }
    expect(error).toMatchObject({ limit: 100, code: 'ERR_MILLRACE_LIMIT', message: expect.stringContaining('(100)') });
    channel.refusal = Status.OK;
    const { retryAfter } = error!;
    channel.completeAll();
    await retryAfter;
    a.fill(x, 1);
  });
});

describe('the end', () => {
  test('a lost device rejects pending operations, then refuses calls', async () => {
    const { channel, device } = fixture();
    const x = device.zeros(4);
    const waits = [device.stream.fill(x, 1).done, device.synchronize(), x.read()];
    channel.onLost?.(new DeviceLostError('ERR_MILLRACE_LOST', 'The worker ended.', 'worker-exit'));
    for (const wait of waits) await expect(wait).rejects.toMatchObject({ name: 'DeviceLostError', reason: 'worker-exit' });
    expect(await device.lost).toMatchObject({ reason: 'worker-exit' });
    expect([device.state, device.signal.aborted]).toEqual(['lost', true]);
    expect(() => device.stream.fill(x, 1)).toThrow(DeviceLostError);
    expect(() => device.zeros(4)).toThrow(DeviceLostError);
    x[Symbol.dispose]();
  });
});

test('an unawaited failure is reported also if the device is destroyed before the library looked for failures', async () => {
  const { channel, core, device } = fixture();
  const seen: (MillraceError | string)[] = [];
  core.errors.add({ next: (error) => seen.push(error), complete: () => seen.push('complete') });
  device.stream.fill(device.zeros(4), 1);
  const { slot, last } = device.stream.timeline;
  channel.fail(slot, { id: 1, first: last, last, status: Status.LAUNCH_FAILED, note: 'refused' });
  channel.completeAll();
  const destroyed = device.destroy();
  expect(seen).toEqual([]);
  await destroyed;
  await turn();
  expect(seen).toEqual([expect.any(LaunchError), 'complete']);
});
