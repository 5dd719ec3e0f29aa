// Closing inside a hold: devices whose streams, or those that use their memory, wait for it, and streams of a full device.
import { describe, expect, test } from 'vitest';
import { StateError } from '../../../src/core/base/errors.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { rejectionOf } from '../../support/wait.js';
import { closeStream, FakeChannel, fixture, reach, settle } from './fake-channel.js';

describe('a wait inside of a hold', () => {
  test('for the close of a device whose streams or memory need the held stream is refused and closes nothing', async () => {
    const home = fixture(new FakeChannel(1));
    const away = fixture(new FakeChannel(2, 'cuda'), home.progress, 'cuda:0');
    const { stream } = home.device;
    const x = away.device.zeros([4, 4]);
    const refused: unknown[] = [];
    stream.hold(async () => void refused.push(await rejectionOf(away.device.close())), { timeoutMs: 10_000 });
    const held = stream.timeline.last;
    // A stream of the other device that no program made does a part of it.
    stream.copy(x, x.transpose().clone().transpose());
    const helper = [...away.core.timelines].find(({ label }) => label.startsWith('copies-'))!;
    away.channel.completeAll();
    away.channel.complete(helper.slot, 1);
    await reach(home, stream, held - 1);
    expect(refused).toEqual([expect.any(StateError)]);
    expect([away.device.state, helper.isComplete]).toEqual(['open', false]);
  });

  test('for the close of a device whose memory a held stream will use is refused', async () => {
    const home = fixture(new FakeChannel(1));
    const away = fixture(new FakeChannel(2), home.progress, 'cpu:1');
    const { stream } = home.device;
    const x = away.device.zeros(4);
    const refused: unknown[] = [];
    stream.hold(async () => void refused.push(await rejectionOf(away.device.close())), { timeoutMs: 10_000 });
    const held = stream.timeline.last;
    stream.copy(x, new Float32Array(4));
    away.channel.completeAll();
    await reach(home, stream, held - 1);
    expect(refused).toEqual([expect.any(StateError)]);
    expect(away.device.state).toBe('open');
  });

  test('for the close of another stream that gets room only from the held stream is refused and closes nothing', async () => {
    const all = fixture();
    const { channel, device } = all;
    const [held, other] = [device.createStream(), device.createStream({ label: 'other' })];
    channel.completeAll();
    const refused: unknown[] = [];
    const operation = held.hold(
      async () => {
        channel.refusal = Status.LIMIT;
        refused.push(await rejectionOf(other.close()));
        channel.refusal = Status.OK;
      },
      { timeoutMs: 10_000 },
    );
    await settle(all.progress);
    expect(refused).toEqual([expect.any(StateError)]);
    await reach(all, held);
    await operation.done;
    // As before the call: it takes work, and is closed by the next.
    other.fill(other.zeros(1), 1);
    expect(channel.opcodes(other.timeline.slot)).not.toContain('STREAM_DESTROY');
    await closeStream(all, other);
    expect(channel.opcodes(other.timeline.slot)).toContain('STREAM_DESTROY');
    expect(() => other.empty(1)).toThrow(/Stream other .* is closed/);
  });
});
