// A turn's arrays: they are disposed with it, must not be results, and may be refused by the device.
import { describe, expect, it } from 'vitest';
import { LimitError, StateError } from '../../../src/core/base/errors.js';
import { LaneAbort } from '../../../src/reactive/lane-abort.js';
import { LaneMemory } from '../../../src/reactive/lane-memory.js';
import { LaneTurn } from '../../../src/reactive/lane.js';
import { Meter } from '../../../src/reactive/meter.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { output } from '../../../src/core/kernels/kernel.js';
import { fixture, shiftKernel } from '../core/fake-channel.js';

function open() {
  const made = fixture();
  const { device } = made;
  const slot = { index: 0, device, stream: device.stream, memory: new LaneMemory() };
  return { ...made, slot, lane: new LaneTurn(slot, new AbortController(), 1, new Meter(() => 0)) };
}

describe('the signal of a turn', () => {
  it('is made when it is asked for, and tells of an earlier abort', () => {
    const { slot } = open();
    const reason = new Error('enough');
    const early = new LaneAbort();
    const late = new LaneAbort();
    const lanes = [early, late].map((abort) => new LaneTurn(slot, abort, 1, new Meter(() => 0)));
    const calls: string[] = [];
    const { signal } = lanes[0]!;
    signal.addEventListener('abort', () => calls.push('signal'));
    early.onAbort(() => calls.push('first'));
    early.onAbort(() => calls.push('removed'))();
    for (const abort of [early, late]) abort.abort(reason);
    early.abort(new Error('later'));
    expect(calls).toEqual(['signal', 'first']);
    expect(lanes.map((lane) => [lane.signal.aborted, lane.signal.reason])).toEqual([
      [true, reason],
      [true, reason],
    ]);
    expect(lanes[0]!.signal).toBe(signal);
    late.abort();
    const plain = new LaneAbort();
    plain.abort();
    expect(plain.signal.reason).toBeInstanceOf(DOMException);
  });
});

describe('an array of a turn', () => {
  it('is made as on the stream', () => {
    const { lane } = open();
    const made = [lane.empty([2, 3]), lane.zeros(4, 'i32'), lane.ones(1), lane.full(2, 7, 'u8'), lane.from(new Float64Array(3))];
    expect(made.map(({ dtype, shape }) => [dtype, shape])).toEqual([
      ['f32', [2, 3]],
      ['i32', [4]],
      ['f32', [1]],
      ['u8', [2]],
      ['f64', [3]],
    ]);
  });

  it('is disposed with the turn, and every later use throws', async () => {
    const { lane, channel, device } = open();
    const [array, pinned] = [lane.empty(8), lane.pinned(8)];
    const view = array.subarray(2);
    lane.end();
    expect([array, view, pinned].map(({ isDisposed }) => isDisposed)).toEqual([true, true, true]);
    expect(() => device.stream.fill(view, 1)).toThrow(StateError);
    expect(() => device.stream.copy(pinned, device.zeros(8))).toThrow(StateError);
    await expect(array.read()).rejects.toThrow(StateError);
    expect(channel.opcodes().filter((opcode) => opcode === 'FREE')).toHaveLength(1);
    lane.end();
    expect(channel.opcodes().filter((opcode) => opcode === 'FREE')).toHaveLength(1);
  });

  it('that the stage disposed is not disposed again, and cannot be detached', () => {
    const { lane, channel } = open();
    const array = lane.empty(4);
    array[Symbol.dispose]();
    expect(() => lane.detach(array)).toThrow('was disposed');
    lane.end();
    expect(channel.opcodes().filter((opcode) => opcode === 'FREE')).toHaveLength(1);
  });

  it('stays usable when it was detached; a view of it cannot be detached', () => {
    const { lane, device } = open();
    const array = lane.empty(4);
    expect(() => lane.detach(array.subarray(1))).toThrow('is a view of an array of this lane');
    expect(() => lane.detach(device.empty(4))).toThrow('was not made by this lane');
    expect(lane.detach(array)).toBe(array);
    expect(() => lane.detach(array)).toThrow('was detached before');
    lane.end();
    expect(array.isDisposed).toBe(false);
    for (const late of [() => lane.empty(1), () => lane.pinned(1), () => lane.detach(array)])
      expect(late).toThrow('Lane 0 was used after the stage had ended for this item.');
  });

  it('that is refused leaks nothing', () => {
    const { lane, channel } = open();
    channel.refusal = Status.LIMIT;
    expect(() => lane.empty(4)).toThrow(LimitError);
    channel.refusal = Status.OK;
    expect(() => lane.pinned(2 ** 40)).toThrow(/exceeds/);
    lane.end();
    expect(channel.opcodes()).toEqual(['STREAM_CREATE']);
  });
});

describe('the result of a stage', () => {
  it('must not be memory of the turn', () => {
    const { lane, device } = open();
    const [array, pinned] = [lane.empty(8), lane.pinned(8)];
    for (const own of [array, array.subarray(2), pinned, pinned.subarray(2), pinned.data.subarray(1), { pinned }, [1, array]]) {
      expect(() => lane.checkResult(own)).toThrow(/memory of lane 0/);
    }
    const other = device.pinned(8);
    for (const result of [undefined, null, 7, other, other.data, [other], new Map([['x', array]]), lane.detach(array)]) {
      expect(() => lane.checkResult(result)).not.toThrow();
    }
  });
});

it('a launch that finished ends its turn, also when nothing has told yet that its kernel is built', async () => {
  const { lane, core } = open();
  const plan = core.kernelRegistry.of(shiftKernel(output(f32)));
  expect(plan.isBuilding).toBe(true);
  lane.addOperation('launch shift', Promise.resolve(), plan);
  await expect(lane.finished).resolves.toBeUndefined();
});
