// Arrays of a lane where the device refuses one, or the stage disposed one: the lane goes on with what it has.
import { describe, expect, it } from 'vitest';
import { LimitError } from '../../../src/core/base/errors.js';
import { OwnedLane } from '../../../src/reactive/lane.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { fixture } from '../core/fake-channel.js';

function open() {
  const made = fixture();
  const { device } = made;
  const owned = new OwnedLane(device, device.stream, 0);
  return { ...made, owned, lane: owned.begin(new AbortController().signal) };
}

describe('a disposed array', () => {
  it('is made anew when it is asked for again', () => {
    const { lane } = open();
    const [array, pinned] = [lane.array('x', 4), lane.pinned('x', 4)];
    for (const disposed of [array, pinned]) disposed[Symbol.dispose]();
    expect([lane.array('x', 4), lane.pinned('x', 4)].map(({ isDisposed }) => isDisposed)).toEqual([false, false]);
    expect(lane.array('x', 4)).not.toBe(array);
  });

  it('that was a view leaves the memory it was a view of', () => {
    const { lane, channel } = open();
    lane.array('x', 8);
    const front = lane.array('x', 4);
    front[Symbol.dispose]();
    expect(lane.array('x', 4).isDisposed).toBe(false);
    expect(channel.opcodes().filter((opcode) => opcode === 'ALLOC')).toHaveLength(1);
  });

  it("is no longer the lane's to give away", () => {
    const { lane } = open();
    const array = lane.array('x', 4);
    array[Symbol.dispose]();
    expect(() => lane.detach(array)).toThrow(/detached or disposed before/);
  });
});

describe('the result of a stage', () => {
  it('is no memory of the lane', () => {
    const { owned, lane, device } = open();
    const [array, pinned] = [lane.array('x', 8), lane.pinned('x', 8)];
    for (const own of [array, array.subarray(2), pinned, pinned.subarray(2), pinned.data.subarray(1), { pinned }, [1, array]]) {
      expect(() => owned.checkResult(own)).toThrow(/memory of lane 0/);
    }
    // Of the same arena, and not the lane's.
    const other = device.pinned(8);
    expect(other.data.buffer).toBe(pinned.data.buffer);
    for (const result of [undefined, null, 7, other, other.data, [other], new Map([['x', array]]), lane.detach(array)]) {
      expect(() => owned.checkResult(result)).not.toThrow();
    }
  });
});

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
