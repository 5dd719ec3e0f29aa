// Arrays of a lane where the device refuses one: the lane goes on with what it has.
import { describe, expect, it } from 'vitest';
import { LimitError } from '../../../src/core/base/errors.js';
import { OwnedLane } from '../../../src/reactive/lane.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { fixture } from '../core/fake-channel.js';

function open() {
  const made = fixture();
  const { device } = made;
  return { ...made, lane: new OwnedLane(device, device.stream, 0).begin(new AbortController().signal) };
}

describe('a refused array', () => {
  it('leaves no disposed one under its key', () => {
    const { channel, lane } = open();
    const first = lane.array('x', 4);
    channel.refusal = Status.LIMIT;
    expect(() => lane.array('x', 8)).toThrow(LimitError);
    channel.refusal = Status.OK;
    const again = lane.array('x', 4);
    expect([again === first || !first.isDisposed, again.isDisposed]).toEqual([again === first, false]);
    const pinned = lane.pinned('y', 4);
    expect(() => lane.pinned('y', 2 ** 40)).toThrow(/exceeds/);
    expect(lane.pinned('y', 4).isDisposed).toBe(false);
    expect(pinned.length).toBe(4);
  });

  it("that is detached stays the lane's, and nothing is left of its copy", () => {
    const { channel, lane } = open();
    lane.array('x', 8);
    const front = lane.array('x', 4);
    const submit = channel.submit.bind(channel);
    let accepts = 1;
    channel.submit = (bytes) => (accepts-- === 0 ? -Status.LIMIT : submit(bytes));
    expect(() => lane.detach(front)).toThrow(LimitError);
    expect(channel.opcodes().filter((opcode) => opcode === 'FREE')).toHaveLength(1);
    expect(front.isDisposed).toBe(false);
    expect(lane.array('x', 4)).toBe(front);
    const copy = lane.detach(front);
    expect([copy.isDisposed, front.isDisposed]).toEqual([false, true]);
  });
});
