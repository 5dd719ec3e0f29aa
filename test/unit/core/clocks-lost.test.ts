// Order through a device that was lost before it established the order: waiting streams resume at once, so there is no order.
import { describe, expect, test } from 'vitest';
import { DeviceLostError, StreamHazardError } from '../../../src/core/base/errors.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { FakeChannel, type Fixture, fixture } from './fake-channel.js';

/** The writer's array is written, a stream of another device waits for that, and `follower` waits for that stream. */
function chain() {
  const kept = fixture(new FakeChannel(1));
  const gone = fixture(new FakeChannel(2), kept.progress, 'cpu:1');
  const checked = (all: Fixture): Stream => all.device.createStream({ ordering: 'checked' });
  const [writer, follower, early, late] = [checked(kept), checked(kept), checked(kept), checked(kept)];
  const between = checked(gone);
  const x = writer.ones(4);
  between.waitStream(writer);
  follower.waitStream(between);
  early.waitStream(follower);
  const lose = (): void => gone.core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
  return { kept, gone, writer, follower, early, late, between, x, lose };
}

describe('when a device is lost, checked streams', () => {
  test('lose their order through it, whether they had it before or merge it later', () => {
    const { early, late, follower, writer, x, lose } = chain();
    lose();
    late.waitStream(follower);
    for (const stream of [early, late]) {
      expect(() => stream.fill(x, 1)).toThrow(StreamHazardError);
    }
    early.waitStream(writer);
    expect(() => early.fill(x, 1)).not.toThrow();
  });

  test('have observed nothing through it', () => {
    const { kept, late, follower, early, writer, x, lose } = chain();
    lose();
    for (const { timeline } of [follower, early]) kept.channel.complete(timeline.slot, timeline.last);
    expect([follower.isComplete, early.isComplete, writer.isComplete]).toEqual([true, true, false]);
    expect(() => late.fill(x, 1)).toThrow(StreamHazardError);
  });

  test('keep the order of their own waits', () => {
    const { early, writer, x, lose } = chain();
    early.waitStream(writer);
    lose();
    expect(() => early.fill(x, 1)).not.toThrow();
  });

  test('keep the order that it had established, and that of a destroyed device, which runs to its end', async () => {
    const reached = chain();
    reached.gone.channel.completeAll();
    reached.lose();
    expect(() => reached.early.fill(reached.x, 1)).not.toThrow();
    const destroyed = chain();
    const ended = destroyed.gone.device.destroy();
    destroyed.late.waitStream(destroyed.follower);
    expect(() => destroyed.late.fill(destroyed.x, 1)).not.toThrow();
    await ended;
  });
});
