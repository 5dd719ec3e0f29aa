// Devices on fake channels, closed after each test: the thread's default device is the first that is open.
import { afterEach } from 'vitest';
import type { Stream } from '../../../src/core/api/stream.js';
import { WaitRecord } from '../../../src/protocol/protocol.gen.js';
import { type FakeChannel, type Fixture, fixture } from './fake-channel.js';

const opened: Fixture[] = [];

export function open(): Fixture {
  const made = fixture();
  opened.push(made);
  return made;
}

afterEach(async () => {
  for (const { device } of opened.splice(0)) await device.destroy();
});

/** The waits that a stream submitted, as the slots it waits for. */
export function waitsOf(channel: FakeChannel, stream: Stream): number[] {
  return channel.records
    .filter((record) => record.opcode === 'WAIT' && record.stream === stream.timeline.slot)
    .map(({ view }) => view.getUint32(WaitRecord.TARGET, true));
}
