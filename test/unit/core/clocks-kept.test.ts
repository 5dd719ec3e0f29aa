// Clocks keep nothing of closed streams and devices.
import { describe, expect, test } from 'vitest';
import { StreamHazardError } from '../../../src/core/base/errors.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { entryOf } from '../../../src/core/ordering/vector-clock.js';
import { WaitRecord } from '../../../src/protocol/protocol.gen.js';
import { collectUntil } from '../../support/wait.js';
import { closeStream, FakeChannel, fixture } from './fake-channel.js';

describe('memory of clocks', () => {
  test('clocks do not grow with the number of closed streams', async () => {
    const all = fixture();
    const { channel, device } = all;
    const a = device.createStream({ ordering: 'checked' });
    const x = a.ones(4);
    for (let n = 0; n < 200; n++) {
      const s = device.createStream({ ordering: n % 2 === 0 ? 'checked' : 'tracked' });
      s.waitStream(a);
      s.fill(x, n);
      a.waitStream(s);
      a.fill(x, n);
      await closeStream(all, s);
      // Slots are reused.
      (channel as unknown as { reserveStream: () => number }).reserveStream = () => s.timeline.slot;
    }
    expect(a.timeline.clockEntry.clock!.size).toBeLessThan(4);
  });

  test('clocks, events and arrays of another device do not keep a closed device in memory', async () => {
    const kept = fixture(new FakeChannel(1));
    const stream = kept.device.createStream({ ordering: 'checked' });
    const x = stream.ones(4);
    const event = stream.record();
    /** In a separate scope, so that only the library can still refer to the closed objects. */
    async function visitAndClose(): Promise<WeakRef<FakeChannel>> {
      const gone = fixture(new FakeChannel(2), kept.progress);
      const peer = gone.device.createStream({ ordering: 'checked' });
      peer.waitStream(stream);
      const record = gone.core.tracker.begin(peer);
      record.add(x.storage, 0, 8, true);
      record.order('copy', undefined);
      record.commit(gone.core.submit(peer.timeline, gone.core.encoder.nop(peer.timeline.slot)));
      expect(() => stream.fill(x, 1)).toThrow(StreamHazardError);
      stream.waitStream(peer);
      stream.fill(x.subarray(1, 2), 1);
      gone.channel.completeAll();
      kept.progress.wake();
      await gone.device.close();
      return new WeakRef(gone.channel);
    }
    const channel = await visitAndClose();
    await collectUntil(() => channel.deref() === undefined);
    expect(channel.deref()).toBeUndefined();
    expect([x.isDisposed, event.isComplete]).toEqual([false, false]);
    // The write is still recorded.
    expect(x.storage.lastWrites(0, 4)).toHaveLength(1);
  });
});

test('clocks contain nothing of the waits of a lost or destroyed device', async () => {
  const kept = fixture(new FakeChannel(1));
  const gone = fixture(new FakeChannel(2), kept.progress);
  const [a, b] = ['a', 'b'].map((label) => kept.device.createStream({ label, ordering: 'checked' })) as [Stream, Stream];
  const x = a.ones(4);
  b.waitStream(a);
  using y = x.clone(b);
  // Neither of these has finished.
  const [writing, reading] = [a.timeline.last, b.timeline.last];
  const peer = gone.device.createStream({ ordering: 'checked' });
  peer.waitStream(b);
  await gone.device.destroy();
  const c = kept.device.createStream({ ordering: 'checked' });
  expect(() => c.fill(x, 1)).toThrow(StreamHazardError);
  expect([entryOf(a.timeline).observed >= writing, entryOf(b.timeline).observed >= reading]).toEqual([false, false]);
  expect(y.isDisposed).toBe(false);
});

test('memory that a destroyed device still reads is freed after the read', async () => {
  const kept = fixture(new FakeChannel(1));
  const gone = fixture(new FakeChannel(2), kept.progress);
  const [a, b] = [kept.device.createStream({ ordering: 'checked' }), kept.device.createStream()];
  const x = a.ones(4);
  const peer = gone.device.createStream();
  peer.copy(gone.device.empty(4), x);
  await gone.device.destroy();
  using y = x.clone(b);
  x[Symbol.dispose]();
  const waits = kept.channel.records.filter(({ opcode }) => opcode === 'WAIT').map(({ view }) => view.getUint32(WaitRecord.DEVICE, true));
  expect(waits).toContain(2);
  expect(y.isDisposed).toBe(false);
});

test('a copy on another device has the clock of its stream, with timing too', () => {
  const home = fixture(new FakeChannel(1));
  const away = fixture(new FakeChannel(2, 'cuda'), home.progress, 'cuda:0');
  const maker = away.device.createStream({ ordering: 'checked' });
  const [x, y] = [maker.ones([4, 4]), maker.ones([4, 4])];
  const stream = home.device.createStream({ ordering: 'checked', timing: true });
  stream.waitStream(maker);
  expect(() => stream.copy(y, x.transpose())).not.toThrow();
});
