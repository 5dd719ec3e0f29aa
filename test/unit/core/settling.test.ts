// A promise of an operation rejects with the operation's own failure, also if that is reported late.
import { describe, expect, test } from 'vitest';
import { LaunchError, type MillraceError, StateError, UpstreamError } from '../../../src/core/base/errors.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { rejectionOf } from '../../support/wait.js';
import { type Fixture, fixture, turn } from './fake-channel.js';

test("an upstream failure has the first cause, although its stream's failures were not read", async () => {
  const { channel, device } = fixture();
  const [a, b] = [device.createStream(), device.createStream()];
  const x = a.zeros(4);
  const filled = a.timeline.last;
  const read = b.copy(b.zeros(4), x);
  channel.fail(a.timeline.slot, { id: 1, first: filled, last: filled, status: Status.LAUNCH_FAILED, note: 'refused' });
  const { last } = b.timeline;
  channel.fail(b.timeline.slot, { id: 2, first: last, last, status: Status.UPSTREAM, cause: 1 });
  channel.completeAll();
  const seen: MillraceError[] = [];
  device.core.errors.add({ next: (error) => seen.push(error) });
  const error = await rejectionOf(read.done);
  expect(error).toBeInstanceOf(UpstreamError);
  expect(error?.cause).toBeInstanceOf(LaunchError);
  // Reported with it, and not again.
  await turn();
  await turn();
  expect(seen).toEqual([]);
});

test('a wait that needed no record does not fail with the operation before it', async () => {
  const { channel, device } = fixture();
  const { stream } = device;
  const x = device.zeros(4);
  const fill = stream.fill(x, 1);
  const { slot, last } = stream.timeline;
  const waits = [stream.waitEvent(device.createEvent()), stream.waitStream(stream)];
  expect(stream.timeline.last).toBe(last);
  channel.fail(slot, { id: 1, first: last, last, status: Status.LAUNCH_FAILED, note: 'refused' });
  channel.completeAll();
  for (const wait of waits) await wait.done;
  await expect(fill.done).rejects.toBeInstanceOf(LaunchError);
});

describe('waits with options', () => {
  test('bad options are refused before anything waits', async () => {
    const { channel, device, holds }: Fixture = fixture();
    const fill = device.stream.fill(device.zeros(4), 1);
    const event = device.stream.record();
    const bad = { timeoutMs: -1 };
    await expect(fill.synchronize(bad)).rejects.toThrow(/timeoutMs/);
    await expect(event.synchronize(bad)).rejects.toThrow(/timeoutMs/);
    await expect(device.createEvent().synchronize(bad)).rejects.toThrow(/timeoutMs/);
    expect(holds).toEqual([]);
    channel.completeAll();
  });

  test('an aborted signal rejects the wait for an event that was never recorded', async () => {
    const { device } = fixture();
    await expect(device.createEvent().synchronize({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'ABORT_ERR' });
  });
});

describe('read({ into })', () => {
  test('of an array that is detached meanwhile rejects, and its staging memory is reused', async () => {
    const { channel, core, device } = fixture();
    const x = device.zeros(4);
    const live = core.arena.liveBytes;
    const into = new Float32Array(4);
    const read = x.read({ into });
    structuredClone(into, { transfer: [into.buffer] });
    channel.completeAll();
    await expect(read).rejects.toBeInstanceOf(StateError);
    expect(core.arena.liveBytes).toBe(live);
  });
});
