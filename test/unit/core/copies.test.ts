// Copies between arrays of several devices of two backends, on streams of any of them: executed in random orders, they leave
// the same memory as a sequential program, and every temporary is freed.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import { ArgumentError, LimitError } from '../../../src/core/base/errors.js';
import { PeerRoute, Status } from '../../../src/protocol/protocol.gen.js';
import type { Stream } from '../../../src/core/api/stream.js';
import type { PinnedArray } from '../../../src/core/api/pinned.js';
import { offsetsOf, World } from './simulated.js';

const SHAPE = [4, 6];
const LENGTH = 24;

type End = DeviceArray<'i16'> | PinnedArray<'i16'> | Int16Array;

interface Memory {
  readonly array: DeviceArray<'i16'> | PinnedArray<'i16'>;
  readonly expected: Int16Array;
}

/** Ways to look at 2 x 3 elements of an array, at a row or a column, and at all of it. */
const BLOCKS: readonly ((x: DeviceArray<'i16'>) => DeviceArray<'i16'>)[] = [
  (x) => x.view([0, 2], [0, 3]),
  (x) => x.view([1, 4, 2], [undefined, undefined, 2]),
  (x) => x.transpose().view([0, 6, 3], [0, 3]),
  (x) => x.view([undefined, undefined, -3], [5, 2, -1]),
  (x) => x.view(1).reshape([2, 3]),
  (x) => x.subarray(7, 13).reshape([2, 3]),
  (x) => x.view([2, 4], [undefined, undefined, -2]),
];
const LINES: readonly ((x: DeviceArray<'i16'>) => DeviceArray<'i16'>)[] = [
  (x) => x.view(1),
  (x) => x.view(undefined, 2),
  (x) => x.view(2, [undefined, undefined, -1]),
  (x) => x.view(3, [1, undefined, 2]),
  (x) => x.subarray(3, 20),
  (x) => x.reshape(LENGTH).view([undefined, undefined, 5]),
];

/** The offsets of an operand's elements in its memory. */
function placesOf(end: End): number[] {
  if (!('storage' in end)) return Array.from(end, (_, n) => n);
  const first = end.byteOffset / 2;
  if (!('strides' in end)) return Array.from({ length: end.length }, (_, n) => first + n);
  return offsetsOf(end.shape.map((extent, axis) => [extent, end.strides[axis]!] as const)).map((at) => first + at);
}

interface Step {
  readonly kind: 'blocks' | 'lines' | 'flat' | 'fill' | 'in' | 'out' | 'clone';
  readonly stream: number;
  readonly ends: readonly [number, number];
  readonly views: readonly [number, number];
  readonly offsets: readonly [number, number, number];
  /** Records executed afterwards. */
  readonly run: number;
}

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom('blocks', 'blocks', 'blocks', 'lines', 'lines', 'flat', 'flat', 'fill', 'in', 'out', 'clone'),
    stream: fc.nat(100),
    ends: fc.tuple(fc.nat(100), fc.nat(100)),
    views: fc.tuple(fc.nat(100), fc.nat(100)),
    offsets: fc.tuple(fc.nat(8), fc.nat(8), fc.nat(8)),
    run: fc.nat(12),
  }),
  { minLength: 1, maxLength: 14 },
);

const pick = <T>(list: readonly T[], at: number): T => list[at % list.length]!;

/** Pseudo-random numbers from a seed. */
function random(seed: number): (count: number) => number {
  let state = seed | 1;
  return (count) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

class Program {
  readonly world: World = new World();
  readonly memories: Memory[] = [];
  readonly hostCompleted: (readonly [Int16Array, Int16Array])[] = [];
  readonly clones: DeviceArray<'i16'>[] = [];
  readonly choose: (count: number) => number;
  refused = 0;
  /** The only stream used, an explicit one: its operations are still in stream order. */
  readonly #only: Stream | undefined;
  #next = 100;

  constructor(seed: number, isAlone: boolean) {
    this.choose = random(seed);
    this.world.add('cuda', 'cuda:0');
    this.world.add('cuda', 'cuda:1');
    this.world.add('cpu', 'cpu:0');
    this.world.add('cpu', 'cpu:1');
    for (const { device } of this.world.fixtures) {
      const values = Int16Array.from({ length: LENGTH }, () => this.#next++);
      this.memories.push({ array: device.from(values, { dtype: 'i16', shape: SHAPE }), expected: values });
      const pinned = device.pinned(SHAPE, 'i16');
      pinned.data.set(values);
      this.memories.push({ array: pinned, expected: values.slice() });
    }
    if (!isAlone) return;
    this.#only = pick(this.world.fixtures, seed).device.createStream({ ordering: 'explicit' });
    for (const { device } of this.world.fixtures) this.#only.waitStream(device.defaultStream);
  }

  do({ kind, stream: at, ends, views, offsets: [dstOffset, srcOffset, count], run }: Step): void {
    const stream = this.#only ?? this.#stream(at);
    const { device } = stream;
    const arrays = this.memories.filter(({ array }) => 'strides' in array);
    const [to, from] =
      kind === 'flat' ? [pick(this.memories, ends[0]), pick(this.memories, ends[1])] : [pick(arrays, ends[0]), pick(arrays, ends[1])];
    switch (kind) {
      case 'blocks':
        this.#copy(
          stream,
          to,
          pick(BLOCKS, views[0])(to.array as DeviceArray<'i16'>),
          from,
          pick(BLOCKS, views[1])(from.array as DeviceArray<'i16'>),
          {},
        );
        break;
      case 'lines': {
        const [dst, src] = [pick(LINES, views[0])(to.array as DeviceArray<'i16'>), pick(LINES, views[1])(from.array as DeviceArray<'i16'>)];
        const range = { dstOffset: dstOffset % 3, srcOffset: srcOffset % 3, count: count % 3 };
        this.#copy(stream, to, dst, from, src, views[0] % 2 === 0 ? range : {});
        break;
      }
      case 'flat':
        this.#copy(stream, to, to.array, from, from.array, { dstOffset, srcOffset, count });
        break;
      case 'fill': {
        const own = arrays.find(({ array }) => (array as DeviceArray).device === device)!;
        const view = pick([...BLOCKS, ...LINES], views[0])(own.array as DeviceArray<'i16'>);
        const value = this.#next++;
        stream.fill(view, value);
        for (const place of placesOf(view)) own.expected[place] = value;
        break;
      }
      case 'in': {
        const view = pick([...BLOCKS, ...LINES], views[0])(to.array as DeviceArray<'i16'>);
        const values = Int16Array.from({ length: view.length }, () => this.#next++);
        stream.copy(view, values);
        for (const [n, place] of placesOf(view).entries()) to.expected[place] = values[n]!;
        values.fill(-1);
        break;
      }
      case 'out': {
        const view = pick([...BLOCKS, ...LINES], views[0])(from.array as DeviceArray<'i16'>);
        const into = new Int16Array(view.length);
        stream.copy(into, view);
        this.hostCompleted.push([into, Int16Array.from(placesOf(view), (place) => from.expected[place]!)]);
        break;
      }
      default: {
        const own = arrays.find(({ array }) => (array as DeviceArray).device === device)!;
        const view = pick(BLOCKS, views[0])(own.array as DeviceArray<'i16'>);
        const clone = view.clone(stream);
        this.clones.push(clone);
        const into = new Int16Array(view.length);
        stream.copy(into, clone);
        this.hostCompleted.push([into, Int16Array.from(placesOf(view), (place) => own.expected[place]!)]);
        // Its memory is freed after the copy above.
        clone[Symbol.dispose]();
      }
    }
    this.world.run(this.choose, run);
  }

  readonly #streams: Stream[] = [];

  #stream(at: number): Stream {
    const { device } = pick(this.world.fixtures, at);
    if (at % 3 === 0) return device.defaultStream;
    return (this.#streams[at % 8] ??= device.createStream());
  }

  #copy(stream: Stream, to: Memory, dst: End, from: Memory, src: End, range: object): void {
    const {
      dstOffset = 0,
      srcOffset = 0,
      count = src.length - srcOffset,
    } = range as { dstOffset?: number; srcOffset?: number; count?: number };
    const [into, outOf] = [placesOf(dst).slice(dstOffset, dstOffset + count), placesOf(src).slice(srcOffset, srcOffset + count)];
    const isBad = outOf.length < count || into.length < count || (to === from && into.some((place) => outOf.includes(place)));
    const before = this.world.channels.map(({ records }) => records.length);
    try {
      stream.copy(dst as DeviceArray<'i16'>, src as DeviceArray<'i16'>, range);
    } catch (error) {
      expect(error).toBeInstanceOf(ArgumentError);
      expect((error as ArgumentError).code).toBe('ERR_MILLRACE_COPY');
      expect([isBad, this.world.channels.map(({ records }) => records.length)]).toEqual([true, before]);
      this.refused++;
      return;
    }
    expect(isBad).toBe(false);
    const values = outOf.map((place) => from.expected[place]!);
    for (const [n, place] of into.entries()) to.expected[place] = values[n]!;
  }

  async end(): Promise<void> {
    await this.world.settle(this.choose);
    for (const [into, expected] of this.hostCompleted) expect(into).toEqual(expected);
    for (const { array, expected } of this.memories) {
      if (!('strides' in array)) {
        expect(Int16Array.from(array.data)).toEqual(expected);
        continue;
      }
      const read = array.read();
      await this.world.settle(this.choose);
      expect(await read).toEqual(expected);
      array[Symbol.dispose]();
    }
    await this.world.settle(this.choose);
    for (const channel of this.world.channels) expect([channel.liveStaging, channel.memory.size]).toEqual([0, 0]);
  }
}

describe('copies of any kind between devices', () => {
  test.each([
    ['on tracked streams', false],
    ['on one stream that tracks nothing', true],
  ])(
    '%s give the same memory as a sequential program',
    async (_, isAlone) => {
      let staged = 0;
      let refused = 0;
      await fc.assert(
        fc.asyncProperty(fc.nat(1_000_000), steps, async (seed, program) => {
          const running = new Program(seed, isAlone);
          for (const step of program) running.do(step);
          await running.end();
          staged += running.world.channels.reduce((most, { mostStaging }) => most + mostStaging, 0);
          refused += running.refused;
        }),
        { numRuns: 150, seed: 22 },
      );
      expect([staged > 0, refused > 0]).toEqual([true, true]);
    },
    60_000,
  );
});

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));

describe('a copy that takes several records', () => {
  test('goes through two pieces of page-locked memory, however large it is', async () => {
    const world = new World();
    const [cuda, cpu] = [world.add('cuda', 'cuda:0'), world.add('cpu', 'cpu:0')];
    const bytes = 100 * 2 ** 20;
    const values = Uint32Array.from({ length: bytes / 4 }, (_, n) => n ^ (n >>> 7));
    const stream = cpu.device.createStream({ ordering: 'explicit' });
    const x = stream.from(values);
    const y = cuda.device.empty(bytes / 4, 'u32');
    stream.waitStream(cuda.device.defaultStream);
    const before = cuda.core.arena.liveBytes;
    const operation = stream.copy(y, x);
    const copies = [cuda, cpu].map(({ channel }) => channel.opcodes().filter((opcode) => opcode === 'COPY').length);
    // One upload, and the halves of four pieces.
    expect(copies).toEqual([4, 5]);
    expect(
      world.channels[0]!.registered.filter(({ isLocked }) => isLocked).reduce((sum, { byteLength }) => sum + byteLength, 0),
    ).toBeLessThan(81 * 2 ** 20);
    await world.settle(random(5));
    await operation.done;
    cuda.core.arena.reclaim();
    expect(cuda.core.arena.liveBytes).toBe(before);
    const [arrived] = world.channels[0]!.memory.values();
    expect(Buffer.compare(arrived!, new Uint8Array(values.buffer))).toBe(0);
  });

  test('is refused before its first record if there is no room', () => {
    const world = new World();
    const [one, other] = [world.add('cuda', 'cuda:0'), world.add('cuda', 'cuda:1')];
    const [x, y] = [one.device.zeros(SHAPE, 'i16'), other.device.zeros(SHAPE, 'i16')];
    // The hidden streams of copies exist now.
    one.device.stream.copy(y.transpose(), x.transpose());
    const before = world.channels.map(({ records }) => records.length);
    world.channels[1]!.pendingRecords = 90;
    expect(() => one.device.stream.copy(y.transpose(), x.transpose())).toThrow(LimitError);
    expect(world.channels.map(({ records }) => records.length)).toEqual(before);
  });

  // Another thread may take the room after the check.
  test.each(Array.from({ length: 12 }, (_, accepts) => [accepts] as const))(
    'that is refused after %i records leaks no memory',
    async (accepts) => {
      const world = new World();
      let refusals = 0;
      const fixtures = [world.add('cuda', 'cuda:0'), world.add('cuda', 'cuda:1'), world.add('cpu', 'cpu:0')];
      for (const [from, to] of [
        [0, 1],
        [0, 2],
        [2, 1],
      ] as const) {
        for (const [at, refusing] of world.channels.entries()) {
          const x = fixtures[from]!.device.zeros(SHAPE, 'i16');
          const y = fixtures[to]!.device.zeros(SHAPE, 'i16');
          const { stream } = fixtures[at]!.device;
          world.run(random(accepts));
          refusing.accepts = accepts;
          let thrown: unknown;
          try {
            stream.copy(y.transpose(), x.transpose());
            stream.copy(new Int16Array(LENGTH), x.transpose());
            stream.copy(y.transpose(), new Int16Array(LENGTH));
          } catch (error) {
            thrown = error;
          }
          if (thrown !== undefined) expect(thrown).toBeInstanceOf(LimitError);
          refusing.accepts = -1;
          // Submitted records still use them.
          for (const array of [x, y]) array[Symbol.dispose]();
          world.run(random(at));
          refusals += thrown === undefined ? 0 : 1;
        }
      }
      await world.settle(random(accepts));
      // Frees that were refused are tried again.
      await turn();
      await world.settle(random(accepts));
      for (const { core } of fixtures) core.arena.reclaim();
      expect(fixtures.map(({ core }) => core.arena.liveBytes)).toEqual([0, 0, 0]);
      expect(world.channels.map((channel) => [channel.memory.size, channel.liveStaging])).toEqual(world.channels.map(() => [0, 0]));
      expect(refusals).toBeGreaterThan(0);
    },
  );

  test('fails with the failure of one of its records', async () => {
    const world = new World();
    const [one, other] = [world.add('cuda', 'cuda:0'), world.add('cuda', 'cuda:1')];
    const [x, y] = [one.device.zeros([6, 4], 'i16'), other.device.zeros(SHAPE, 'i16')];
    const told: Error[] = [];
    for (const { core } of [one, other]) core.errors.add({ next: (error) => told.push(error) });
    const operation = one.device.stream.copy(y.transpose(), x);
    const scatter = other.channel.records.findLast(({ opcode }) => opcode === 'COPY_STRIDED')!;
    other.channel.fail(scatter.stream, {
      id: 1,
      first: scatter.ticket,
      last: scatter.ticket,
      status: Status.LAUNCH_FAILED,
      note: 'no kernel',
    });
    const settled = expect(operation.done).rejects.toMatchObject({
      name: 'LaunchError',
      message: expect.stringContaining('no kernel') as string,
    });
    await world.settle();
    await settled;
    expect(told).toEqual([]);
  });

  test('tests the route between two devices once, and warns if it is not direct', async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error): void => void warnings.push(warning);
    process.on('warning', hear);
    try {
      const world = new World();
      const [one, other] = [world.add('cuda', 'cuda:0'), world.add('cuda', 'cuda:1')];
      const asked: unknown[] = [];
      for (const [to, route] of [
        [one, PeerRoute.DIRECT],
        [other, PeerRoute.STAGED],
      ] as const) {
        to.channel.answers.set('probePeer', (from) => {
          asked.push([to.channel.id, from]);
          return route;
        });
      }
      const [x, y] = [one.device.zeros(4), other.device.zeros(4)];
      for (let round = 0; round < 3; round++) {
        one.device.stream.copy(y, x);
        other.device.stream.copy(x, y);
        one.device.stream.copy(x, new Float32Array(4));
      }
      await new Promise((resolve) => setImmediate(resolve));
      expect(asked).toEqual([
        [other.channel.id, one.channel.id],
        [one.channel.id, other.channel.id],
      ]);
      expect(warnings.filter((warning) => 'code' in warning && warning.code === 'MILLRACE_PEER').map(({ message }) => message)).toEqual([
        'Copies from device cuda:0 to cuda:1 go through host memory and are slower: the direct route gave wrong bytes.',
      ]);
    } finally {
      process.off('warning', hear);
    }
  });
});
