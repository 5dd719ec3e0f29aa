// The report of streams that do not advance: their current operation, and what it waits for.
import { waitForDevices } from '../../../src/core/device/synchronize-devices.js';
import { describe, expect, test, vi } from 'vitest';
import { f32 } from '../../../src/core/elements/dtype.js';
import { WaitTimeoutError } from '../../../src/core/base/errors.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import type { Operation } from '../../../src/core/operations/operation.js';
import { rejectionOf } from '../../support/wait.js';
import { type FakeChannel, fixture, shiftKernel, turn } from './fake-channel.js';

vi.mock('../../../src/core/base/timers.js', () => import('../../support/global-timers.js'));

const kernel = shiftKernel(inout(f32));

describe('the current operation of a stream', () => {
  test('is the first unfinished one, with its kind, label and id', () => {
    const { channel, device } = fixture();
    const { stream } = device;
    const seen: Operation[] = [];
    stream.hub.add({ next: (operation) => seen.push(operation) });
    const y = device.zeros(4);
    const fill = stream.fill(y, 1);
    const launch = stream.launch(kernel, { threads: 4, label: 'second' }, { y });
    const { slot, last } = stream.timeline;
    channel.complete(slot, last - 2);
    const current = () => device.inspect().streams[0]?.current;
    expect(current()).toEqual({ id: fill.id, kind: 'fill', bytes: 16, stream: 'default', device: 'cpu:0' });
    channel.complete(slot, last - 1);
    expect(current()).toEqual({ id: launch.id, kind: 'launch', label: 'second', stream: 'default', device: 'cpu:0' });
    channel.complete(slot, last);
    expect(device.inspect().streams[0]).toEqual({ stream: 'default', device: 'cpu:0', pending: 0 });
  });

  test('is the kind of a record without an Operation', () => {
    const { device } = fixture();
    const { stream } = device;
    device.empty(4);
    expect(device.inspect().streams[0]?.current).toMatchObject({ kind: 'alloc', stream: 'default' });
    expect(stream.fill(device.empty(4), 1).id).toBeGreaterThan(device.inspect().streams[0]?.current?.id as number);
  });

  test('is exact at any depth, and finished operations are dropped', () => {
    const { channel, device } = fixture();
    const stream = device.createStream();
    const y = device.zeros(1);
    const labels = ['a', 'b', 'c'];
    const ids: number[] = [];
    const first = stream.timeline.last + 1;
    // The fill waits for the stream that made the array.
    for (let n = 0; n < 70_000; n++) ids.push(stream.launch(kernel, { threads: 1, label: labels[n % 3]! }, { y }).id);
    const { slot, last, log } = stream.timeline;
    const start = last - ids.length + 1;
    expect(start).toBe(first + 1);
    for (const n of [0, 1, 126, 127, 128, 4095, 4096, 65_537, 69_999]) {
      channel.complete(slot, start + n - 1);
      expect(device.inspect().streams[1]?.current).toMatchObject({ id: ids[n], kind: 'launch', label: labels[n % 3] });
    }
    channel.complete(slot, last);
    log.look();
    expect(log.at(start)).toBeUndefined();
    expect(log.at(last)).toMatchObject({ id: ids.at(-1) });
  });

  test('has its own label if all labels differ', () => {
    const { channel, device } = fixture();
    const { stream } = device;
    const y = device.zeros(1);
    for (let n = 0; n < 10_000; n++) stream.launch(kernel, { threads: 1, label: `frame ${n}` }, { y });
    const { slot, last } = stream.timeline;
    for (const n of [0, 3, 127, 128, 8191, 9999]) {
      channel.complete(slot, last - 10_000 + n);
      expect(device.inspect().streams[0]?.current?.label).toBe(`frame ${n}`);
    }
  });

  test('is not changed by a wait that needed no record', () => {
    const { device } = fixture();
    const { stream } = device;
    const fill = stream.fill(device.zeros(4), 1);
    const wait = stream.waitStream(stream);
    expect(wait.id).toBeGreaterThan(fill.id);
    const { slot, last } = stream.timeline;
    (device.core.channel as FakeChannel).complete(slot, last - 1);
    expect(device.inspect().streams[0]?.current?.id).toBe(fill.id);
  });
});

describe('what a stream waits for', () => {
  function pair() {
    const { channel, device, progress } = fixture();
    const [a, b, c] = ['A', 'B', 'C'].map((label) => device.createStream({ label }));
    const y = a!.zeros(4);
    channel.completeAll();
    const launch = a!.launch(kernel, 4, { y });
    const of = (label: string) => device.inspect().streams.find(({ stream }) => stream === label)!;
    return { channel, device, progress, a: a!, b: b!, c: c!, y, launch, of };
  }

  test('an event, a stream or an array, with the operation that has to finish', () => {
    const { channel, a, b, c, y, launch, of } = pair();
    const startMs = performance.now();
    b.waitEvent(a.record());
    c.waitStream(b);
    const operation = { id: launch.id, kind: 'launch', label: 'shift', stream: 'A', device: 'cpu:0' };
    expect(of('A').waitingFor).toBeUndefined();
    expect(of('B').waitingFor).toMatchObject({ kind: 'event', stream: 'A', operation });
    expect(of('C').waitingFor).toMatchObject({ kind: 'stream', stream: 'B', operation: { kind: 'wait', stream: 'B' } });
    const { sinceMs } = of('B').waitingFor!;
    expect(sinceMs).toBeGreaterThanOrEqual(startMs);
    expect(sinceMs).toBeLessThanOrEqual(performance.now());
    channel.complete(a.timeline.slot, a.timeline.last);
    expect(of('B').waitingFor).toBeUndefined();
    channel.completeAll();
    const fill = a.fill(y, 1);
    b.fill(y, 2);
    expect(of('B')).toMatchObject({ pending: 2, waitingFor: { kind: 'array', stream: 'A', operation: { id: fill.id, kind: 'fill' } } });
  });

  test('nothing, while the operation before the wait runs', () => {
    const { a, b, of } = pair();
    const fill = b.fill(b.zeros(1), 1);
    b.waitEvent(a.record());
    expect(of('B').current?.kind).toBe('alloc');
    expect(of('B').waitingFor).toBeUndefined();
    expect(fill.isComplete).toBe(false);
  });

  test("the device's reason for parking, if it is about the current operation", () => {
    const { channel, a, of } = pair();
    const { slot, last } = a.timeline;
    for (const [reason, kind] of [
      ['build', 'compile'],
      ['memory', 'memory'],
      ['pin', 'pinning'],
      ['host', 'host'],
      ['peer', 'peer'],
      ['transfer', 'transfer'],
      ['point', 'stream'],
      ['window', undefined],
      ['drain', undefined],
    ] as const) {
      channel.parked = [{ stream: slot, reason, deferred: 1 }];
      expect(of('A').waitingFor?.kind).toBe(kind);
    }
    a.fill(a.empty(1), 1);
    expect(a.timeline.last).toBe(last + 2);
    // The launch runs; the last record is the one that has to wait.
    channel.parked = [{ stream: slot, reason: 'memory', deferred: 1 }];
    expect(of('A').waitingFor).toBeUndefined();
  });

  test('is shown by a timeout of every kind of wait', async () => {
    const { a, b, c, device } = pair();
    b.waitEvent(a.record());
    c.waitStream(b);
    const fill = c.fill(c.zeros(4), 1);
    const opts = { timeoutMs: 1 };
    const waits = [
      fill.synchronize(opts),
      c.record().synchronize(opts),
      c.synchronize(opts),
      c.ready({ below: 1, ...opts }),
      device.synchronize(opts),
      waitForDevices([device.core, fixture().core], opts),
    ];
    const [ofFill, ...others] = (await Promise.all(waits.map((wait) => rejectionOf(wait)))) as WaitTimeoutError[];
    expect(ofFill).toBeInstanceOf(WaitTimeoutError);
    expect(ofFill!.waitingFor.map(({ stream }) => stream)).toEqual(['C', 'B', 'A']);
    expect(ofFill!.message).toBe(
      'The wait for stream C of device cpu:0 took longer than its timeout (1 ms): ' +
        'stream C waits for stream B, which waits for an event of stream A, at launch shift.',
    );
    for (const error of others) {
      expect(error).toBeInstanceOf(WaitTimeoutError);
      expect(error.waitingFor.map(({ stream }) => stream).toSorted()).toEqual(['A', 'B', 'C']);
    }
    expect(others.at(-1)?.message).toMatch(/^The wait for devices cpu:0, cpu:0 took .*: stream A is at launch shift\.$/);
  });

  test('two streams of a device, and the current operation of the other one', async () => {
    const { a, b, y } = pair();
    const later = a.fill(y, 1);
    b.waitStream(a);
    const error = (await rejectionOf(b.synchronize({ timeoutMs: 1 }))) as WaitTimeoutError;
    expect(error.message).toMatch(/: stream B waits for stream A, at fill, and is at launch shift\.$/);
    expect(error.waitingFor[0]?.waitingFor?.operation?.id).toBe(later.id);
  });
});

test('10,000 waits for events at once: one waiter each, one armed wake per stream, and no endless poll', async () => {
  const { channel, device, progress, holds } = fixture();
  const [a, b] = [device.createStream(), device.createStream()];
  const y = a.zeros(1);
  b.waitStream(a);
  const turns: number[] = [];
  const { setImmediate: original } = globalThis;
  const threads = process.getActiveResourcesInfo().filter((kind) => kind === 'Worker' || kind === 'MessagePort').length;
  let isResolved = false;
  let immediates = 0;
  try {
    globalThis.setImmediate = ((...args: Parameters<typeof original>) => {
      immediates++;
      return original(...args);
    }) as typeof original;
    const events = Array.from({ length: 10_000 }, (_, n) => {
      const stream = n % 2 === 0 ? a : b;
      if (n % 2 === 0) stream.fill(y, n);
      else stream.waitStream(a);
      return stream.record();
    });
    const all = Promise.all(events.map((event) => event.done)).then(() => (isResolved = true));
    for (let n = 0; n < 1000; n++) await new Promise((resolve) => original(resolve));
    turns.push(immediates);
    for (let n = 0; n < 100; n++) await new Promise((resolve) => original(resolve));
    turns.push(immediates);
    // Polling has ended, with one armed wake on each stream.
    expect(turns[1]).toBe(turns[0]);
    expect(channel.armed.map(({ stream }) => stream).toSorted((first, second) => first - second)).toEqual([
      a.timeline.slot,
      b.timeline.slot,
    ]);
    expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Worker' || kind === 'MessagePort').length).toBe(threads);
    expect([isResolved, holds]).toEqual([false, [true]]);
    channel.completeAll();
    progress.wake();
    await all;
    expect(channel.armed).toHaveLength(2);
    expect(holds).toEqual([true, false]);
  } finally {
    globalThis.setImmediate = original;
  }
  await turn();
});
