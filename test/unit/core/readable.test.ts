// Arrays as web streams over a device that advances when the test says so.
import { describe, expect, test } from 'vitest';
import { boxesOf } from '../../../src/core/elements/index-boxes.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { finish, fixture, settle, turn } from './fake-channel.js';

const copies = (opcodes: readonly string[]): number => opcodes.filter((opcode) => opcode.startsWith('COPY')).length;

describe('a stream of an array', () => {
  test('that is canceled keeps a chunk only until the device has finished with it', async () => {
    const all = fixture();
    const { core, device } = all;
    const reader = device.zeros(1000, 'u8').toReadable({ chunkBytes: 100 }).getReader();
    const read = reader.read();
    await turn();
    expect(core.arena.liveBytes).toBe(100);
    await reader.cancel('enough');
    expect(await read).toEqual({ done: true, value: undefined });
    await turn();
    expect([core.arena.liveBytes, core.arena.isSettling]).toEqual([0, true]);
    finish(all);
    core.arena.reclaim();
    expect(core.arena.isSettling).toBe(false);
    const before = all.channel.records.length;
    await settle(all.progress);
    expect(all.channel.records.length).toBe(before);
  });

  test('waits for room while the device is full', async () => {
    const all = fixture();
    const { channel, device } = all;
    const x = device.zeros(10, 'u8');
    channel.refusal = Status.LIMIT;
    const reader = x.toReadable().getReader();
    const read = reader.read();
    await turn();
    expect(copies(channel.opcodes())).toBe(0);
    channel.refusal = Status.OK;
    for (let n = 0; n < 10; n++) {
      finish(all);
      await turn();
    }
    expect((await read).value?.byteLength).toBe(10);
    expect((await reader.read()).done).toBe(true);
  });

  test('leaves no listener at the signal when it has ended', async () => {
    const all = fixture();
    const listeners: string[] = [];
    const signal = new AbortController().signal;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    Object.assign(signal, {
      addEventListener: (...args: Parameters<typeof add>) => (listeners.push(args[0]), add(...args)),
      removeEventListener: (...args: Parameters<typeof remove>) => (listeners.pop(), remove(...args)),
    });
    const reader = all.device.zeros(10, 'u8').toReadable({ signal }).getReader();
    const read = reader.read();
    await turn();
    expect(listeners).toHaveLength(1);
    for (let n = 0; n < 5; n++) {
      finish(all);
      await turn();
    }
    await read;
    expect([(await reader.read()).done, listeners.length]).toEqual([true, 0]);
  });
});

test('the boxes of a range have its elements in order, and their number is small', () => {
  for (const shape of [[7], [2, 3], [3, 1, 4], [2, 3, 2, 5]]) {
    const length = shape.reduce((product, extent) => product * extent, 1);
    for (let from = 0; from < length; from++) {
      for (let to = from + 1; to <= length; to++) {
        const boxes = boxesOf(shape, from, to);
        const found = boxes.flatMap(({ index, length: own }) => {
          const elements = flatOf(shape, index);
          expect(elements).toHaveLength(own);
          return elements;
        });
        expect(found).toEqual(Array.from({ length: to - from }, (_, n) => from + n));
        expect(boxes.length).toBeLessThanOrEqual(2 * shape.length - 1);
      }
    }
  }
});

/** The elements that an index names, as numbers in flat order. */
function flatOf(shape: readonly number[], index: readonly unknown[]): number[] {
  return shape.reduce<number[]>(
    (starts, extent, axis) => {
      const at = index[axis];
      const [first, end] = typeof at === 'number' ? [at, at + 1] : Array.isArray(at) ? (at as [number, number]) : [0, extent];
      return starts.flatMap((start) => Array.from({ length: end - first }, (_, n) => start * extent + first + n));
    },
    [0],
  );
}
