// Hazards one by one: what the refusal says, what counts as order and what does not.
import { describe, expect, test } from 'vitest';
import { f32 } from '../../../src/core/elements/dtype.js';
import { MillraceError, StreamHazardError } from '../../../src/core/base/errors.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { fixture, shiftKernel, turn } from './fake-channel.js';

const kernel = shiftKernel(inout(f32));

function refusal(call: () => unknown): StreamHazardError {
  try {
    call();
  } catch (error) {
    if (error instanceof StreamHazardError) return error;
    throw error;
  }
  throw new Error('Nothing was refused.');
}

/** The line of this file that calls it. */
function line(): number {
  return Number(/hazards\.test\.ts:(\d+)/.exec(new Error().stack!.split('\n')[2]!)![1]);
}

// The first test of the file on purpose: in the others, clocks are kept already.
test('uses before the first checked stream of the thread', async () => {
  const { channel, device, progress } = fixture();
  const [a, b, c] = [device.createStream({ label: 'a' }), device.createStream(), device.createStream({ ordering: 'explicit' })];
  const x = a.ones(4);
  const [seen, waited, untold] = [a.ones(4), a.ones(4), c.ones(4)];
  // b comes after a, and the program sees b finish: that it has seen a finish is known from the waits.
  b.launch(kernel, 4, { y: seen });
  channel.completeAll();
  progress.wake();
  await b.synchronize();
  a.launch(kernel, 4, { y: waited });
  a.launch(kernel, 4, { y: x });
  const before = a.record();
  const d = device.createStream({ ordering: 'checked', label: 'd' });
  d.fill(seen, 1);
  // Made by a stream that the program has not seen finish, although it has.
  expect(refusal(() => d.fill(untold, 1))).toMatchObject({
    first: { operation: { kind: 'fill', id: 0 }, at: 'unknown' },
    madeAt: 'unknown',
  });
  const hazard = refusal(() => d.fill(x, 2));
  expect(hazard).toMatchObject({ array: 'f32[4]', first: { stream: 'a', access: 'write', operation: { kind: 'launch', stream: 'a' } } });
  d.waitEvent(before);
  d.fill(x, 2);
  d.fill(waited, 2);
});

describe('a refusal', () => {
  test('shows the array and both uses, and nothing was submitted or changed', () => {
    const { channel, device } = fixture();
    const a = device.createStream({ ordering: 'checked', label: 'a' });
    const b = device.createStream({ ordering: 'checked', label: 'b' });
    const x = a.zeros([2, 3]);
    const made = line() - 1;
    const first = a.launch(kernel, { threads: 6, label: 'first' } as never, { y: x.reshape([6]) });
    const launched = line() - 1;
    const records = channel.records.length;
    const hazard = refusal(() => b.copy(b.empty(3), x.subarray(0, 3)));
    const copied = line() - 1;
    expect(hazard).toBeInstanceOf(MillraceError);
    const file = import.meta.filename;
    expect(hazard).toMatchObject({
      name: 'StreamHazardError',
      code: 'ERR_MILLRACE_HAZARD',
      device: 'cpu:0',
      stream: 'b',
      array: 'f32[2, 3]',
      madeAt: expect.stringContaining(`${file}:${made}:`),
      first: {
        stream: 'a',
        access: 'write',
        at: expect.stringContaining(`${file}:${launched}:`),
        operation: { kind: 'launch', label: 'first', id: first.id, stream: 'a', device: 'cpu:0' },
      },
      second: { stream: 'b', access: 'read', at: expect.stringContaining(`${file}:${copied}:`), operation: { kind: 'copy', stream: 'b' } },
    });
    expect(hazard.message).toContain('The copy on stream b of device cpu:0 (at ');
    expect(hazard.message).toContain('would read array f32[2, 3] (made at ');
    expect(hazard.message).toContain('The launch first on stream a of device cpu:0 (at ');
    expect(hazard.message).toContain('Let stream b wait for stream a');
    // The empty array of the refused call alone.
    expect(channel.opcodes().slice(records)).toEqual(['ALLOC']);
  });

  test('is repeated until the two uses are ordered, and the refused use does not count', () => {
    const { channel, device } = fixture();
    const [a, b] = [device.createStream({ ordering: 'checked' }), device.createStream({ ordering: 'checked' })];
    const x = a.ones(4);
    const records = channel.records.length;
    for (let n = 0; n < 3; n++) expect(() => b.fill(x, 2)).toThrow(StreamHazardError);
    expect(channel.records).toHaveLength(records);
    // Had b's fill been noted, a would race with it.
    a.fill(x, 3);
    b.waitStream(a);
    b.fill(x, 2);
  });

  test('names the operation that made the array, and the operations keep their numbers', () => {
    const { device } = fixture();
    const [a, b] = [device.createStream({ ordering: 'checked' }), device.createStream({ ordering: 'checked' })];
    const x = a.empty(4);
    const hazard = refusal(() => b.fill(x, 1));
    expect(hazard.first).toMatchObject({ access: 'write', operation: { kind: 'alloc' } });
    const next = a.fill(x, 1);
    expect(next.id).toBe(hazard.first.operation.id + 1);
    expect(hazard.second.operation.id).toBe(next.id);
  });

  test('knows where the arrays of a checked device were made, whatever the stream', () => {
    const { core, device } = fixture();
    core.isChecked = true;
    const [a, b] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'checked' })];
    const x = a.empty(4);
    const made = line() - 1;
    const hazard = refusal(() => b.fill(x, 1));
    expect(hazard.madeAt).toContain(`${import.meta.filename}:${made}:`);
    expect(hazard.first.at).toBe(hazard.madeAt);
  });
});

describe('what orders', () => {
  const pair = (device: ReturnType<typeof fixture>['device']): readonly [Stream, Stream] => [
    device.createStream({ ordering: 'checked' }),
    device.createStream({ ordering: 'checked' }),
  ];

  test('not an operation that has finished, until the host has observed it', async () => {
    const { channel, device, progress } = fixture();
    const [a, b] = pair(device);
    const x = a.ones(4);
    const filled = a.fill(x, 1);
    channel.completeAll();
    expect(() => b.fill(x, 2)).toThrow(StreamHazardError);
    expect(filled.isComplete).toBe(true);
    b.fill(x, 2);
    const ways: ((stream: Stream) => unknown)[] = [
      (stream) => stream.synchronize(),
      (stream) => stream.ready({ below: 1 }),
      (stream) => stream.fill(x, 1).done,
      (stream) => stream.record().done,
      (stream) => stream.record().synchronize({ timeoutMs: 1000 }),
      (stream) => stream.record().isComplete,
      (stream) => stream.isComplete,
      () => device.synchronize(),
      () => x.read(),
    ];
    let [now, next] = [b, a];
    for (const see of ways) {
      expect(() => next.fill(x, 3)).toThrow(StreamHazardError);
      channel.completeAll();
      const seen = see(now);
      channel.completeAll();
      progress.wake();
      await seen;
      next.fill(x, 3);
      [now, next] = [next, now];
    }
  });

  test('a second wait for a stream that has waited meanwhile without other work', () => {
    const { channel, device } = fixture();
    const [a, b] = pair(device);
    const between = device.createStream({ ordering: 'checked' });
    const x = a.ones(4);
    b.waitStream(between);
    channel.completeAll();
    between.waitStream(a);
    expect(channel.opcodes(between.timeline.slot)).toEqual(['STREAM_CREATE']);
    expect(() => b.fill(x, 1)).toThrow(StreamHazardError);
    b.waitStream(between);
    b.fill(x, 1);
  });

  test('a host function that is called', async () => {
    const { channel, device, progress } = fixture();
    const [a, b] = pair(device);
    const c = device.createStream({ ordering: 'checked' });
    const [x, y] = [a.ones(4), c.ones(4)];
    a.waitStream(c);
    let isCalled = false;
    const call = a.host(() => {
      b.fill(x, 1);
      b.fill(y, 1);
      isCalled = true;
    });
    expect(() => b.fill(y, 1)).toThrow(StreamHazardError);
    channel.completeAll();
    progress.wake();
    await call.done;
    expect(isCalled).toBe(true);
  });

  test('a failure that the host has observed', async () => {
    const { channel, device, progress } = fixture();
    const [a, b] = pair(device);
    const x = a.ones(4);
    const filled = a.fill(x, 1);
    const { slot, last } = a.timeline;
    channel.fail(slot, { id: 1, first: last, last, status: Status.LAUNCH_FAILED });
    channel.completeAll();
    progress.wake();
    await expect(filled.done).rejects.toMatchObject({ name: 'LaunchError' });
    b.fill(x, 2);
  });

  test('not a wait that was given up', async () => {
    const { channel, device, progress } = fixture();
    const [a, b] = pair(device);
    const x = a.ones(4);
    await expect(a.synchronize({ timeoutMs: 1 })).rejects.toMatchObject({ name: 'WaitTimeoutError' });
    channel.completeAll();
    progress.wake();
    await turn();
    expect(() => b.fill(x, 1)).toThrow(StreamHazardError);
  });

  test('the waits of tracked streams, also unnecessary ones; a free orders nothing', () => {
    const { channel, device } = fixture();
    const [a, b] = pair(device);
    const tracked = device.createStream();
    const [y, x] = [a.ones(4), a.ones(4)];
    channel.completeAll();
    tracked.fill(x, 1);
    expect(channel.opcodes(tracked.timeline.slot)).toEqual(['STREAM_CREATE', 'FILL']);
    b.waitStream(tracked);
    b.fill(y, 1);
    // A free waits for both, on a stream of nobody's: no order that the program may rely on.
    const c = device.createStream({ ordering: 'checked' });
    const w = a.ones(4);
    c.waitStream(a);
    const late = a.ones(4);
    a.copy(a.empty(4), w);
    c.copy(c.empty(4), w);
    w[Symbol.dispose]();
    expect(channel.opcodes().slice(-3)).toEqual(['WAIT', 'WAIT', 'FREE']);
    expect(() => c.fill(late, 1)).toThrow(StreamHazardError);
  });

  test('`read` waits by itself, and later writes of every stream wait for it, wherever it runs', () => {
    const { channel, device } = fixture();
    for (const ordering of ['checked', 'explicit', 'tracked'] as const) {
      const [a, b] = [device.createStream({ ordering: 'checked' }), device.createStream({ ordering })];
      const x = a.ones(4);
      b.waitStream(a);
      // On a itself, which wrote last.
      void x.read().catch(() => undefined);
      const read = channel.records.at(-1)!;
      expect(read).toMatchObject({ opcode: 'COPY', stream: a.timeline.slot });
      b.fill(x, 2);
      expect(channel.opcodes(b.timeline.slot)).toEqual(['STREAM_CREATE', 'WAIT', 'WAIT', 'FILL']);
      // The read was no order for the program.
      a.empty(1);
      if (ordering === 'checked') expect(() => a.fill(x, 1)).toThrow(StreamHazardError);
    }
  });
});
