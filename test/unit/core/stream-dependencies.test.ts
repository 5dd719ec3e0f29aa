// The waits that `tracked` ordering inserts, that `explicit` omits, and that frees need, seen as submitted records.
import { describe, expect, test } from 'vitest';
import type { Stream } from '../../../src/core/api/stream.js';
import { WaitRecord } from '../../../src/protocol/protocol.gen.js';
import { collectUntil } from '../../support/wait.js';
import { closeStream, type FakeChannel, fixture, turn } from './fake-channel.js';

/** The waits that a stream submitted: which stream, up to which ticket. */
function waits(channel: FakeChannel, stream: Stream): { readonly target: number; readonly ticket: number }[] {
  return waitsOn(channel, stream.timeline.slot);
}

function waitsOn(channel: FakeChannel, slot: number): { readonly target: number; readonly ticket: number }[] {
  return channel.records
    .filter((record) => record.opcode === 'WAIT' && record.stream === slot)
    .map(({ view }) => ({ target: view.getUint32(WaitRecord.TARGET, true), ticket: Number(view.getBigUint64(WaitRecord.TICKET, true)) }));
}

const point = (stream: Stream): { readonly target: number; readonly ticket: number } => ({
  target: stream.timeline.slot,
  ticket: stream.timeline.last,
});

describe('tracked', () => {
  test('a read waits for its writer only, on a separate stream if the writer has later work', () => {
    const { channel, device } = fixture();
    const a = device.createStream();
    const x = a.ones(4);
    const written = point(a);
    const y = a.zeros(4);
    void x.read().catch(() => undefined);
    const reader = device.inspect().streams.find(({ stream }) => stream === 'readback');
    expect(reader?.pending).toBe(2);
    expect(channel.records.slice(-3).map(({ opcode }) => opcode)).toEqual(['STREAM_CREATE', 'WAIT', 'COPY']);
    expect(Number(channel.records.at(-2)!.view.getBigUint64(WaitRecord.TICKET, true))).toBe(written.ticket);
    void y.read().catch(() => undefined);
    expect(channel.records.at(-1)).toMatchObject({ opcode: 'COPY', stream: a.timeline.slot });
  });

  test('an array whose writers are closed is read on the default stream', async () => {
    const all = fixture();
    const { device } = all;
    const x = device.zeros(4);
    const a = device.createStream();
    a.fill(x.subarray(0, 2), 1);
    await closeStream(all, a);
    void x.read().catch(() => undefined);
    expect(device.inspect().streams.map(({ stream }) => stream)).toEqual(['default']);
  });

  test('an array that one stream wrote in parts is read on that stream', () => {
    const { channel, device } = fixture();
    const a = device.createStream();
    const x = a.empty(4);
    a.fill(x.subarray(0, 2), 1);
    a.fill(x.subarray(2, 4), 2);
    void x.read().catch(() => undefined);
    expect(channel.records.at(-1)).toMatchObject({ opcode: 'COPY', stream: a.timeline.slot });
    channel.completeAll();
    a.empty(1);
    const b = device.createStream();
    b.fill(x.subarray(0, 1), 3);
    // Written by two streams, so on neither of them.
    void x.read().catch(() => undefined);
    expect(device.inspect().streams.map(({ stream }) => stream)).toContain('readback');
  });

  test('a read does not wait for another waiting read', () => {
    const { channel, device } = fixture();
    const [slow, quick] = [device.createStream(), device.createStream()];
    const [x, y] = [slow.ones(4), quick.ones(4)];
    for (const [stream, array] of [[slow, x] as const, [quick, y] as const]) {
      stream.empty(4);
      void array.read().catch(() => undefined);
    }
    const copies = channel.records.filter(({ opcode }) => opcode === 'COPY');
    expect(new Set(copies.map(({ stream }) => stream)).size).toBe(2);
  });

  test('an array whose writer is closing is read on another stream', async () => {
    const { channel, device, progress } = fixture();
    const a = device.createStream();
    const x = a.ones(4);
    const closing = a.close();
    const read = x.read();
    for (let n = 0; n < 3; n++) {
      channel.completeAll();
      progress.wake();
      await turn();
    }
    expect(await read).toHaveLength(4);
    await closing;
  });
});

describe('explicit', () => {
  test('inserts no waits between streams, and a free waits on a third stream', () => {
    const { channel, device } = fixture();
    const [a, b] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
    const x = a.ones(4);
    b.fill(x, 2);
    a.fill(x, 3);
    expect([...waits(channel, a), ...waits(channel, b)]).toEqual([]);
    const [last, other] = [point(a), point(b)];
    x[Symbol.dispose]();
    const free = channel.records.at(-1)!;
    expect(free.opcode).toBe('FREE');
    expect([...waits(channel, a), ...waits(channel, b)]).toEqual([]);
    expect(new Set(waitsOn(channel, free.stream))).toEqual(new Set([last, other]));
    // The next read that must wait takes another stream; one that need not wait stays on its own.
    const y = a.ones(4);
    b.fill(y, 2);
    y[Symbol.dispose]();
    expect(channel.records.at(-1)!.stream).not.toBe(free.stream);
    const z = a.ones(4);
    z[Symbol.dispose]();
    expect(channel.records.at(-1)).toMatchObject({ opcode: 'FREE', stream: a.timeline.slot });
  });
});

describe('a read on a separate stream', () => {
  test('comes before later writes, also of explicit streams', () => {
    const { channel, device } = fixture();
    const a = device.createStream({ ordering: 'explicit' });
    const x = a.ones(4);
    a.empty(4);
    void x.read().catch(() => undefined);
    const { slot, ticket } = { slot: channel.records.at(-1)!.stream, ticket: channel.records.at(-1)!.ticket };
    expect(slot).not.toBe(a.timeline.slot);
    a.fill(x, 2);
    expect(waits(channel, a)).toEqual([{ target: slot, ticket }]);
  });
});

describe('frees', () => {
  test('a handle index is reused, with another generation, only after its free has finished', () => {
    const { channel, device } = fixture();
    const handleOf = (): number => channel.records.at(-1)!.view.getUint32(16, true);
    const x = device.empty(4);
    const first = handleOf();
    x[Symbol.dispose]();
    x[Symbol.dispose]();
    expect(channel.opcodes().filter((opcode) => opcode === 'FREE')).toHaveLength(1);
    device.empty(4);
    const second = handleOf();
    expect(second).not.toBe(first);
    channel.completeAll();
    device.empty(4);
    const third = handleOf();
    expect([third & 0x3fffff, third >>> 22]).toEqual([first & 0x3fffff, (first >>> 22) + 1]);
  });
});

test('a stream that has waited for a closed device does not keep it in memory', async () => {
  const kept = fixture();
  /** In a separate scope, so that only the stream can still refer to the closed objects. */
  async function waitAndClose(): Promise<WeakRef<FakeChannel>> {
    const gone = fixture();
    const x = gone.device.zeros(4);
    kept.device.stream.waitStream(gone.device.stream);
    expect(waits(kept.channel, kept.device.stream)).toHaveLength(1);
    gone.channel.completeAll();
    x[Symbol.dispose]();
    gone.channel.completeAll();
    await gone.device.close();
    return new WeakRef(gone.channel);
  }
  const channel = await waitAndClose();
  await collectUntil(() => channel.deref() === undefined);
  expect(channel.deref()).toBeUndefined();
  expect(kept.device.state).toBe('open');
});
