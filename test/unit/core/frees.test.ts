// What is given back while the device has no room for the record that does it.
import { describe, expect, test } from 'vitest';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { eventually, turn } from '../../support/wait.js';
import { fixture, reach, settle } from './fake-channel.js';

describe('disposing inside of a hold, which keeps a full device full', () => {
  test.each([
    ['an event with timing', 'FREE_EVENT'],
    ['an array', 'FREE'],
  ])('of %s is tried again at intervals, not on every turn', async (what, opcode) => {
    const all = fixture();
    const { channel, device } = all;
    const stream = device.createStream();
    const owner = what === 'an array' ? stream.empty(4) : stream.record({ timing: true });
    channel.completeAll();
    let refused = 0;
    const { submit } = channel;
    channel.submit = (bytes) => {
      if (channel.refusal !== Status.OK) refused++;
      return submit.call(channel, bytes);
    };
    const held = device.createStream();
    const turns = 200;
    const operation = held.hold(
      async () => {
        channel.refusal = Status.LIMIT;
        owner[Symbol.dispose]();
        for (let n = 0; n < turns; n++) await turn();
      },
      { timeoutMs: 10_000 },
    );
    await reach(all, held, held.timeline.last - 1);
    await eventually('the hold is over', () => channel.released.length === 1);
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(turns / 4);
    expect(channel.opcodes()).not.toContain(opcode);
    channel.refusal = Status.OK;
    await reach(all, held);
    await settle(all.progress);
    await operation.done;
    await eventually('it is freed', () => channel.opcodes().includes(opcode));
  });
});
