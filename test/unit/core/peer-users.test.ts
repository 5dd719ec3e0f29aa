// Memory that streams of another device use: frees wait for these uses, on a stream of the memory's own device, and the
// device does not close before they end.
import { describe, expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { Operation } from '../../../src/core/operations/operation.js';
import { Status, WaitRecord } from '../../../src/protocol/protocol.gen.js';
import { FakeChannel, type Fixture, fixture, turn } from './fake-channel.js';

function pair(): { readonly home: Fixture; readonly away: Fixture } {
  const home = fixture(new FakeChannel(1));
  return { home, away: fixture(new FakeChannel(2), home.progress) };
}

/** A stand-in for a copy between devices: a record of one device that names memory of another. */
function visit(stream: Stream, array: DeviceArray, writes = false): number {
  const { core, timeline } = stream;
  const record = core.tracker.begin(stream);
  record.add(array.storage, array.byteOffset, array.byteOffset + array.byteLength, writes);
  record.order('copy', undefined);
  const ticket = core.submit(timeline, core.encoder.nop(timeline.slot));
  record.commit(ticket);
  return ticket;
}

/** The last waits of a channel: of which channel's stream, up to which ticket. */
function waits(channel: FakeChannel): readonly (readonly [number, number, number])[] {
  return channel.records
    .filter(({ opcode }) => opcode === 'WAIT')
    .map(({ view }) => [
      view.getUint32(WaitRecord.DEVICE, true),
      view.getUint32(WaitRecord.TARGET, true),
      Number(view.getBigUint64(WaitRecord.TICKET, true)),
    ]);
}

describe('freed right after a copy to another device', () => {
  test('memory waits for the copy, on a hidden stream of its own device', () => {
    const { home, away } = pair();
    const x = home.device.stream.ones(4);
    const written = home.device.stream.timeline.last;
    const copier = away.device.createStream();
    const ticket = visit(copier, x);
    expect(waits(away.channel)).toEqual([[1, home.device.stream.timeline.slot, written]]);
    x[Symbol.dispose]();
    expect(waits(home.channel)).toEqual([
      [2, copier.timeline.slot, ticket],
      [1, home.device.stream.timeline.slot, written],
    ]);
    expect(home.channel.opcodes().slice(-3)).toEqual(['WAIT', 'WAIT', 'FREE']);
    expect(away.channel.opcodes()).not.toContain('FREE');
    const streams = home.channel.records.slice(-3).map(({ stream }) => stream);
    expect(new Set(streams).size).toBe(1);
    expect(streams).not.toContain(home.device.stream.timeline.slot);
  });

  test('waits there also if no stream of its device that used it is open', async () => {
    const { home, away } = pair();
    const maker = home.device.createStream();
    const x = maker.empty(4);
    const ticket = visit(away.device.stream, x, true);
    home.channel.completeAll();
    const closing = maker.close();
    for (let n = 0; n < 3; n++) {
      home.channel.completeAll();
      home.progress.wake();
      await turn();
    }
    await closing;
    x[Symbol.dispose]();
    expect(home.channel.records.at(-1)!.opcode).toBe('FREE');
    expect(home.channel.records.at(-1)!.stream).not.toBe(home.device.defaultStream.timeline.slot);
    expect(waits(home.channel)).toEqual([[2, away.device.stream.timeline.slot, ticket]]);
  });

  test('its handle serves no other array before that', () => {
    const { home, away } = pair();
    const x = home.device.empty(4);
    const { handle } = x.storage;
    visit(away.device.stream, x);
    x[Symbol.dispose]();
    expect(home.device.empty(4).storage.handle).not.toBe(handle);
    home.channel.completeAll();
    const index = (of: number): number => of & 0x3fffff;
    expect(index(home.device.empty(4).storage.handle)).toBe(index(handle));
  });

  test('pinned memory is not reused before the other device has finished', () => {
    const { home, away } = pair();
    const pinned = home.device.pinned(2 ** 18);
    const { buffer } = pinned.data;
    visit(away.device.stream, pinned as never);
    pinned[Symbol.dispose]();
    home.channel.completeAll();
    expect(home.device.pinned(2 ** 18).data.buffer).not.toBe(buffer);
    away.channel.completeAll();
    expect(home.device.pinned(2 ** 18).data.buffer).toBe(buffer);
  });
});

test('an array that another device wrote is read after the write, on a stream of its own device', async () => {
  const { home, away } = pair();
  const x = home.device.empty(4);
  home.channel.completeAll();
  const ticket = visit(away.device.stream, x, true);
  const read = x.read();
  expect(waits(home.channel)).toEqual([[2, away.device.stream.timeline.slot, ticket]]);
  home.channel.completeAll();
  away.channel.completeAll();
  home.progress.wake();
  expect(await read).toHaveLength(4);
});

test("a copy of an array that a kernel of another device poisoned rejects with the kernel's failure", async () => {
  const { home, away } = pair();
  const told: unknown[] = [];
  home.core.errors.add({ next: (error) => told.push(error) });
  const x = home.device.stream.ones(4);
  const { slot, last } = home.device.stream.timeline;
  const ticket = visit(away.device.stream, x);
  const copy = new Operation(away.device.stream, 'copy', ticket, undefined, 16, 1, undefined);
  home.channel.fail(slot, { id: 1, first: last, last, status: Status.LAUNCH_FAILED });
  away.core.errors.add({ next: () => undefined });
  const other = away.device.stream.timeline;
  away.channel.fail(other.slot, { id: 3, first: 1, last: 1, status: Status.OUT_OF_MEMORY });
  away.channel.fail(other.slot, { id: 2, first: ticket, last: ticket, status: Status.UPSTREAM, cause: 1 });
  home.channel.completeAll();
  away.channel.completeAll();
  await expect(copy.done).rejects.toMatchObject({
    name: 'UpstreamError',
    device: 'cpu:0',
    cause: { name: 'LaunchError', stream: home.device.stream.label },
  });
  home.core.tellUnasked();
  expect(told).toEqual([]);
});

describe('closing a device', () => {
  async function isClosed(closing: Promise<void>, { channel, progress }: Fixture): Promise<boolean> {
    let isOver = false;
    void closing.then(() => (isOver = true));
    for (let n = 0; n < 5; n++) {
      channel.completeAll();
      progress.wake();
      await turn();
    }
    return isOver;
  }

  test('waits for uses of its memory by streams of other devices, freed or not', async () => {
    const { home, away } = pair();
    const [x, y] = [home.device.empty(4), home.device.empty(4)];
    const [a, b] = [away.device.createStream(), away.device.createStream()];
    visit(a, x);
    const ticket = visit(b, y);
    visit(b, away.device.empty(4));
    const closing = home.device.close();
    expect(await isClosed(closing, home)).toBe(false);
    away.channel.complete(a.timeline.slot, a.timeline.last);
    expect(await isClosed(closing, home)).toBe(false);
    expect(home.channel.isClosed).toBe(false);
    // Not for later operations.
    away.channel.complete(b.timeline.slot, ticket);
    expect(await isClosed(closing, home)).toBe(true);
    expect(away.device.state).toBe('open');
  });

  test('continues when the other device is lost, and when it is destroyed itself', async () => {
    for (const end of ['lost', 'destroyed'] as const) {
      const { home, away } = pair();
      visit(away.device.stream, home.device.empty(4));
      const closing = home.device.close();
      expect(await isClosed(closing, home)).toBe(false);
      if (end === 'lost') await away.device.destroy();
      else await home.device.destroy();
      expect(await isClosed(closing, home)).toBe(true);
      expect(home.progress.drain()).toBe(false);
    }
  });

  test('does not wait for peer users that have finished', async () => {
    const { home, away } = pair();
    const x = home.device.empty(4);
    for (let n = 0; n < 20; n++) visit(away.device.stream, x);
    away.channel.completeAll();
    expect(await isClosed(home.device.close(), home)).toBe(true);
  });
});
