// Timing events, the time between them, and streams with timing: the events that are created, queried and freed.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { elapsed } from '../../../src/core/api/elapsed.js';
import {
  AbortError,
  ArgumentError,
  DeviceLostError,
  EventTimingError,
  LimitError,
  StateError,
  WaitTimeoutError,
} from '../../../src/core/base/errors.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { output } from '../../../src/core/kernels/kernel.js';
import type { Operation } from '../../../src/core/operations/operation.js';
import { EventKind, RecordEventRecord, Status } from '../../../src/protocol/protocol.gen.js';
import { collectUntil, eventually } from '../../support/wait.js';
import { closeStream, type FakeChannel, finish, type Fixture, fixture, shiftKernel, turn } from './fake-channel.js';

interface Clocked extends Fixture {
  /** Queried handles, in pairs. */
  readonly asked: [number, number][];
}

/** A device whose clock counts the events between two handles' records as milliseconds. */
function clocked(channel?: FakeChannel): Clocked {
  const made = fixture(channel);
  const asked: [number, number][] = [];
  made.channel.answers.set('elapsed', (start, end) => {
    asked.push([start as number, end as number]);
    const stamps = made.channel.records
      .filter(({ opcode }) => opcode === 'RECORD_EVENT')
      .map(({ view }) => view.getUint32(RecordEventRecord.HANDLE, true));
    return stamps.lastIndexOf(end as number) - stamps.lastIndexOf(start as number);
  });
  return { ...made, asked };
}

const handles = (channel: FakeChannel, opcode: string): number[] =>
  channel.records.filter((record) => record.opcode === opcode).map(({ view }) => view.getUint32(RecordEventRecord.HANDLE, true));

describe('timing events', () => {
  test('each record takes a new driver event, and the previous one is freed after it', () => {
    const { channel, device } = clocked();
    const stream = device.createStream();
    const event = device.createEvent({ timing: true });
    expect([event.timing, device.createEvent().timing]).toEqual([true, false]);
    stream.record(event);
    stream.record(event);
    const [first, second] = handles(channel, 'RECORD_EVENT');
    expect(channel.opcodes(stream.timeline.slot)).toEqual(['STREAM_CREATE', 'RECORD_EVENT', 'RECORD_EVENT', 'FREE_EVENT']);
    expect(handles(channel, 'FREE_EVENT')).toEqual([first]);
    expect(channel.records.find(({ opcode }) => opcode === 'RECORD_EVENT')?.view.getUint32(RecordEventRecord.KIND, true)).toBe(
      EventKind.TIMING,
    );
    event[Symbol.dispose]();
    event[Symbol.dispose]();
    expect(handles(channel, 'FREE_EVENT')).toEqual([first, second]);
  });

  test('an event recorded on another stream is freed there', () => {
    const { channel, device } = clocked();
    const [a, b] = [device.createStream(), device.createStream()];
    const event = a.record({ timing: true });
    b.record(event);
    expect(channel.opcodes(a.timeline.slot)).toEqual(['STREAM_CREATE', 'RECORD_EVENT', 'FREE_EVENT']);
    expect(channel.opcodes(b.timeline.slot)).toEqual(['STREAM_CREATE', 'RECORD_EVENT']);
  });

  test('an event whose stream is closed is freed on the default stream', async () => {
    const opened = clocked();
    const { channel, device } = opened;
    const stream = device.createStream();
    const event = stream.record({ timing: true });
    await closeStream(opened, stream);
    event[Symbol.dispose]();
    expect(channel.records.at(-1)).toMatchObject({ opcode: 'FREE_EVENT', stream: device.defaultStream.timeline.slot });
  });

  test('a refused record does not move the event, and leaks no driver event', () => {
    const { channel, device, core } = clocked();
    const stream = device.createStream();
    const event = stream.record({ timing: true });
    const { point } = event;
    channel.refusal = Status.LIMIT;
    expect(() => stream.record(event)).toThrow(LimitError);
    expect(() => stream.record({ timing: true })).toThrow(LimitError);
    channel.refusal = Status.OK;
    expect(event.point).toBe(point);
    const again = core.handles.events.take();
    expect([again & 0x3fffff, again >>> 22]).toEqual([1, 3]);
    expect(handles(channel, 'FREE_EVENT')).toEqual([]);
  });

  test('an event whose free is refused is freed when there is room', async () => {
    const opened = clocked();
    const { channel, device } = opened;
    const stream = device.createStream();
    const events = [stream.record({ timing: true }), stream.record({ timing: true })];
    channel.refusal = Status.LIMIT;
    for (const event of events) event[Symbol.dispose]();
    channel.refusal = Status.OK;
    expect(channel.opcodes()).not.toContain('FREE_EVENT');
    finish(opened);
    await eventually('both are freed', () => handles(channel, 'FREE_EVENT').length === 2);
    expect(handles(channel, 'FREE_EVENT')).toEqual(handles(channel, 'RECORD_EVENT'));
  });

  test('nothing is freed on a device that is gone', async () => {
    const { channel, device } = clocked();
    const event = device.stream.record({ timing: true });
    await device.destroy();
    event[Symbol.dispose]();
    expect(channel.opcodes()).not.toContain('FREE_EVENT');
  });

  test('options that exclude each other, and bad options, are refused before anything is submitted', () => {
    const { channel, device } = clocked();
    const { stream } = device;
    const before = channel.records.length;
    const both = { timing: true, interprocess: true } as const;
    const refusal = expect.objectContaining({ code: 'ERR_MILLRACE_EVENT_OPTIONS' });
    expect(() => device.createEvent(both)).toThrow(refusal);
    expect(() => stream.record(both)).toThrow(ArgumentError);
    for (const wrong of [{ timing: 1 }, { interprocess: 'no' }]) expect(() => device.createEvent(wrong as never)).toThrow(ArgumentError);
    for (const wrong of [7, 'event', stream, [], null]) expect(() => stream.record(wrong as never)).toThrow(ArgumentError);
    const other = fixture().device.createEvent({ timing: true });
    expect(() => stream.record(other)).toThrow(expect.objectContaining({ code: 'ERR_MILLRACE_DEVICE_MISMATCH' }));
    const disposed = device.createEvent({ timing: true });
    disposed[Symbol.dispose]();
    expect(() => stream.record(disposed)).toThrow(StateError);
    expect(channel.records).toHaveLength(before);
  });

  test('is an operation for subscribers, unlike an event without a driver event', async () => {
    const opened = clocked();
    const { stream } = opened.device;
    const seen: Operation[] = [];
    stream.hub.add({ next: (operation) => seen.push(operation) });
    stream.record();
    const event = stream.record({ timing: true });
    expect(stream.pending).toBe(1);
    stream.record(event);
    finish(opened);
    await turn();
    expect(seen.map(({ kind, isComplete }) => [kind, isComplete])).toEqual([
      ['record', true],
      ['record', true],
    ]);
  });

  test('30,000 events without a dispose do not accumulate', async () => {
    const { channel, device } = clocked();
    const { stream } = device;
    const [ROUNDS, EACH] = [6, 5000];
    let live = 0;
    /** Takes what was submitted since into account. */
    const count = (): number => {
      for (const { opcode } of channel.records.splice(0)) live += opcode === 'RECORD_EVENT' ? 1 : opcode === 'FREE_EVENT' ? -1 : 0;
      return live;
    };
    let largest = 0;
    for (let round = 0; round < ROUNDS; round++) {
      for (let n = 0; n < EACH; n++) stream.record({ timing: true });
      channel.completeAll();
      largest = Math.max(largest, count());
      await collectUntil(() => count() < EACH / 5);
    }
    expect(stream.timeline.last).toBeGreaterThan(ROUNDS * EACH);
    expect(largest).toBeLessThan(2 * EACH);
    // Handles are reused, too.
    channel.completeAll();
    expect(device.core.handles.events.take() & 0x3fffff).toBeLessThan(4 * EACH);
  });
});

describe('elapsed', () => {
  test('uses the points of the call: recording again and disposing meanwhile change nothing', async () => {
    const opened = clocked();
    const { channel, device, asked } = opened;
    const { stream } = device;
    const [start, end] = [stream.record({ timing: true }), stream.record({ timing: true })];
    const eventHandles = handles(channel, 'RECORD_EVENT');
    const time = elapsed(start, end);
    stream.record(start);
    stream.record(end);
    start[Symbol.dispose]();
    expect(handles(channel, 'FREE_EVENT')).toHaveLength(1);
    finish(opened);
    expect(await time).toBe(1);
    expect(asked).toEqual([eventHandles]);
    // No query of them is pending any more.
    expect(new Set(handles(channel, 'FREE_EVENT'))).toEqual(new Set(handles(channel, 'RECORD_EVENT').slice(0, 3)));
  });

  test('refuses what is no event, and a disposed one, and asks the device nothing', async () => {
    const { asked, device } = clocked();
    const [timed, disposed] = [device.stream.record({ timing: true }), device.stream.record({ timing: true })];
    disposed[Symbol.dispose]();
    await expect(elapsed(undefined as never, timed)).rejects.toMatchObject({ name: 'ArgumentError', argument: 'start' });
    const refused: unknown = await elapsed(disposed, timed).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StateError);
    expect(refused).not.toBeInstanceOf(EventTimingError);
    expect(asked).toEqual([]);
  });

  test('ends by a signal or a timeout, while it waits for the points and for the answer', async () => {
    const opened = clocked();
    const { channel, device } = opened;
    const { stream } = device;
    const [start, end] = [stream.record({ timing: true }), stream.record({ timing: true })];
    await expect(elapsed(start, end, { timeoutMs: 1 })).rejects.toBeInstanceOf(WaitTimeoutError);
    await expect(elapsed(start, end, { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(AbortError);
    await expect(elapsed(start, end, { timeoutMs: -1 })).rejects.toBeInstanceOf(ArgumentError);
    finish(opened);
    channel.answers.delete('elapsed');
    await expect(elapsed(start, end, { timeoutMs: 1 })).rejects.toBeInstanceOf(WaitTimeoutError);
    // The query is still pending, so its events are not freed.
    for (const event of [start, end]) event[Symbol.dispose]();
    expect(handles(channel, 'FREE_EVENT')).toEqual([]);
  });

  test('rejects if the device is lost, closed, or refuses', async () => {
    const opened = clocked();
    const { channel, device, core } = opened;
    const { stream } = device;
    const [start, end] = [stream.record({ timing: true }), stream.record({ timing: true })];
    channel.answers.set('elapsed', () => {
      throw new StateError('ERR_MILLRACE_STATE', 'Not complete.');
    });
    finish(opened);
    await expect(elapsed(start, end)).rejects.toThrow('Not complete.');
    core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
    await expect(elapsed(start, end)).rejects.toBeInstanceOf(DeviceLostError);
    const closed = clocked();
    const event = closed.device.stream.record({ timing: true });
    finish(closed);
    await closed.device.close();
    await expect(elapsed(event, event)).rejects.toBeInstanceOf(StateError);
  });
});

describe('a stream with timing', () => {
  test('records timestamps before and after launches, copies and fills, after the waits that they need', () => {
    const { channel, device } = clocked();
    const [plain, timed] = [device.createStream(), device.createStream({ timing: true })];
    const x = plain.ones(4);
    const y = timed.empty(4);
    timed.fill(y, 1);
    timed.copy(y, x);
    timed.launch(shiftKernel(output(f32)), 4, { y });
    const stamped = (opcode: string): string[] => ['RECORD_EVENT', opcode, 'RECORD_EVENT'];
    expect(channel.opcodes(timed.timeline.slot)).toEqual([
      'STREAM_CREATE',
      'ALLOC',
      ...stamped('FILL'),
      'WAIT',
      ...stamped('COPY'),
      ...stamped('LAUNCH'),
    ]);
    expect(channel.opcodes(plain.timeline.slot)).not.toContain('RECORD_EVENT');
  });

  test('the done of an operation has its deviceMs, and the driver events are freed', async () => {
    const opened = clocked();
    const { channel, device, asked } = opened;
    const stream = device.createStream({ timing: true });
    const array = stream.empty(4);
    const operation = stream.fill(array, 1);
    const done = operation.done;
    const wait = stream.waitStream(device.defaultStream);
    finish(opened);
    expect(await done).toEqual({ submittedAt: expect.any(Number), finishedAt: expect.any(Number), deviceMs: 1 });
    expect((await operation.synchronize({ timeoutMs: 1000 })).deviceMs).toBe(1);
    expect(asked).toHaveLength(1);
    await turn();
    expect(handles(channel, 'FREE_EVENT')).toEqual(handles(channel, 'RECORD_EVENT'));
    expect(await wait.done).not.toHaveProperty('deviceMs');
  });

  test('an operation whose done is not read frees its driver events when it is collected', async () => {
    const opened = clocked();
    const { channel, device } = opened;
    const stream = device.createStream({ timing: true });
    const array = stream.empty(4);
    for (let n = 0; n < 100; n++) stream.fill(array, n);
    finish(opened);
    await collectUntil(() => handles(channel, 'FREE_EVENT').length >= 198);
    expect(handles(channel, 'FREE_EVENT').length).toBeGreaterThanOrEqual(198);
  });

  test('a refused operation leaves no timestamp to the next one', () => {
    const { channel, device } = clocked();
    const stream = device.createStream({ timing: true });
    const array = stream.empty(4);
    const { submit } = channel;
    let left = 1;
    channel.submit = (bytes) => (left-- > 0 ? submit.call(channel, bytes) : -Status.LIMIT);
    // There is room for the timestamp, not for the fill.
    expect(() => stream.fill(array, 1)).toThrow(LimitError);
    channel.submit = submit;
    stream.fill(array, 2);
    expect(channel.opcodes(stream.timeline.slot).slice(2)).toEqual(['RECORD_EVENT', 'FREE_EVENT', 'RECORD_EVENT', 'FILL', 'RECORD_EVENT']);
  });

  test('a refused operation leaves no timestamp at the end of its stream', async () => {
    const all = clocked();
    const { channel, device } = all;
    const stream = device.createStream({ timing: true });
    const array = stream.empty(4);
    const { submit } = channel;
    let left = 1;
    channel.submit = (bytes) => (left-- > 0 ? submit.call(channel, bytes) : -Status.LIMIT);
    expect(() => stream.fill(array, 1)).toThrow(LimitError);
    channel.submit = submit;
    await closeStream(all, stream);
    expect(channel.opcodes(stream.timeline.slot).slice(2)).toEqual(['RECORD_EVENT', 'FREE_EVENT', 'STREAM_DESTROY']);
  });

  test('an operation without room for its second timestamp has no deviceMs, and does not throw', async () => {
    const opened = clocked();
    const { channel, device } = opened;
    const stream = device.createStream({ timing: true });
    const array = stream.empty(4);
    const { submit } = channel;
    let left = 2;
    channel.submit = (bytes) => (left-- > 0 ? submit.call(channel, bytes) : -Status.LIMIT);
    const operation = stream.fill(array, 1);
    channel.submit = submit;
    finish(opened);
    expect(await operation.done).not.toHaveProperty('deviceMs');
    await eventually('its eventHandle is freed', () => handles(channel, 'FREE_EVENT').length > 0);
    expect(handles(channel, 'FREE_EVENT')).toEqual(handles(channel, 'RECORD_EVENT'));
  });

  test('a failed operation rejects with its failure; if the device is gone, only deviceMs is missing', async () => {
    const opened = clocked();
    const { channel, device, asked } = opened;
    const stream = device.createStream({ timing: true });
    const array = stream.empty(4);
    const failing = stream.fill(array, 1);
    const { ticket } = channel.records.findLast(({ opcode }) => opcode === 'FILL')!;
    channel.fail(stream.timeline.slot, { id: 1, first: ticket, last: ticket, status: Status.LAUNCH_FAILED });
    finish(opened);
    await expect(failing.done).rejects.toMatchObject({ name: 'LaunchError' });
    expect(asked).toEqual([]);
    const fine = stream.fill(array, 2);
    finish(opened);
    await nextTurn();
    await device.destroy();
    expect(await fine.done).not.toHaveProperty('deviceMs');
  });
});
