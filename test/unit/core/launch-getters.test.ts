// A launch whose shape or arguments have getters that make other calls: both submit the same records as separate calls.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { inout, input, type Kernel } from '../../../src/core/kernels/kernel.js';
import type { DeviceArray } from '../../../src/core/api/array.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { ArgKind, LaunchArg, LaunchFlag, LaunchRecord } from '../../../src/protocol/protocol.gen.js';
import { FakeChannel, type Fixture, fixture, shiftKernel } from './fake-channel.js';
import { open, waitsOf } from './opened.js';

const kernel = {
  ...shiftKernel(inout(f32)),
  name: 'outer',
  params: { n: i32, x: input(f32), y: inout(f32), m: i32 },
  abi: 'shaped',
} as unknown as Kernel;
const other = { ...shiftKernel(inout(f32)), name: 'inner', abi: 'shaped', indexRank: 0 } as unknown as Kernel;

interface Rig extends Fixture {
  readonly stream: Stream;
  readonly x: DeviceArray;
  readonly y: DeviceArray;
  readonly z: DeviceArray;
}

function rig(): Rig {
  const all = open();
  const { stream } = all.device;
  return { ...all, stream, x: stream.empty(100), y: stream.empty(100), z: stream.empty(100) };
}

/** The bytes of the launches, except the bytes that a scalar does not write. */
const launches = ({ channel }: Fixture): number[][] =>
  channel.records
    .filter(({ opcode }) => opcode === 'LAUNCH')
    .map(({ view }) => {
      for (let at = LaunchRecord.BYTE_SIZE; at < view.byteLength; at += LaunchArg.BYTE_SIZE)
        if (view.getUint8(at) === ArgKind.SCALAR) view.setUint32(at + LaunchArg.HANDLE, 0, true);
      return [...new Uint8Array(view.buffer)];
    });

const shape = { threads: 10, block: 5, sharedBytes: 0, label: 'mine' };
const argsOf = ({ x, y }: Rig) => ({ n: -7, x, y, m: 9 });
/** After a launch that uses every field. */
const inner = ({ stream, z }: Rig) =>
  stream.launch(other, { threads: [3, 4], block: [2, 2], sharedBytes: 64, cooperative: true, label: 'theirs' }, { y: z } as never);

/** The object, whose property `name` makes a call before it gives its value. */
function calling<T extends object>(of: T, name: keyof T, call: () => void): T {
  const value = of[name];
  return Object.defineProperty({ ...of }, name, {
    enumerable: true,
    get: () => {
      call();
      return value;
    },
  });
}

let expected: { readonly outer: number[]; readonly inner: number[] } | undefined;

/** The records of the two as separate calls. */
function alone(): NonNullable<typeof expected> {
  if (expected !== undefined) return expected;
  const one = rig();
  one.stream.launch(kernel, shape, argsOf(one) as never);
  const two = rig();
  // Kernels have their handles in the order of their first launch.
  two.stream.launch(kernel, shape, argsOf(two) as never);
  inner(two);
  return (expected = { outer: launches(one)[0]!, inner: launches(two)[1]! });
}

afterEach(() => {
  expected = undefined;
});

describe.each<[string, (all: Rig) => void]>([
  ['launches', inner],
  ['fills', ({ stream, z }) => void stream.fill(z, 3)],
  ['copies', ({ stream, z, y }) => void stream.copy(z.subarray(0, 50), y.subarray(50, 100))],
  ['makes an array', ({ stream }) => void stream.zeros(5)],
  ['launches what is refused', (all) => expect(() => all.stream.launch(other, { threads: -1 }, { y: all.z } as never)).toThrow(/threads/)],
])('a getter that %s', (_, call) => {
  test.each(['threads', 'block', 'sharedBytes', 'label'] as const)('as %s of the shape leaves the launch as it was', (name) => {
    const all = rig();
    all.device.core.kernelRegistry.of(kernel);
    const operation = all.stream.launch(
      kernel,
      calling(shape, name, () => call(all)),
      argsOf(all) as never,
    );
    expect(launches(all).at(-1)).toEqual(alone().outer);
    expect(operation.label).toBe('mine');
  });

  test.each(['n', 'x', 'y', 'm'] as const)('as the argument %s leaves the launch as it was', (name) => {
    const all = rig();
    all.device.core.kernelRegistry.of(kernel);
    const operation = all.stream.launch(kernel, shape, calling(argsOf(all), name, () => call(all)) as never);
    expect(launches(all).at(-1)).toEqual(alone().outer);
    expect(operation.label).toBe('mine');
  });
});

describe('a launch from a getter', () => {
  test('equals a separate launch, and its operation has its own label', () => {
    const all = rig();
    all.device.core.kernelRegistry.of(kernel);
    let label: string | undefined;
    all.stream.launch(kernel, shape, calling(argsOf(all), 'y', () => (label = inner(all).label)) as never);
    expect(launches(all)[0]).toEqual(alone().inner);
    expect(label).toBe('theirs');
  });

  test('of a launch by a list works too', () => {
    const all = rig();
    const list: number[] = calling([10] as never, 0, () => inner(all)) as never;
    const threads = Object.setPrototypeOf(Object.assign(list, { length: 1 }), Array.prototype) as number[];
    const asArray = new Proxy([10], { get: (of, key) => (key === '0' ? threads[0] : Reflect.get(of, key)) });
    all.device.core.kernelRegistry.of(kernel);
    all.stream.launch(kernel, { ...shape, threads: asArray }, argsOf(all) as never);
    expect(launches(all).at(-1)).toEqual(alone().outer);
  });

  test('may be nested, and leaves no flags behind', () => {
    const all = rig();
    all.device.core.kernelRegistry.of(kernel);
    const deep = calling(argsOf(all), 'x', () => inner(all));
    all.stream.launch(
      kernel,
      calling(shape, 'threads', () => void all.stream.launch(kernel, shape, deep as never)),
      argsOf(all) as never,
    );
    const flags = launches(all).map((bytes) => new DataView(Uint8Array.from(bytes).buffer).getUint32(LaunchRecord.FLAGS, true));
    expect(flags).toEqual([LaunchFlag.COOPERATIVE, 0, 0]);
    expect(launches(all)[1]).toEqual(alone().outer);
    expect(launches(all)[2]).toEqual(alone().outer);
  });

  test('that throws makes the outer launch throw, and nothing of either is kept', () => {
    const all = rig();
    const before = all.channel.records.length;
    const thrower = calling(argsOf(all), 'y', () => all.stream.launch(other, 0.5, { y: all.z } as never));
    expect(() => all.stream.launch(kernel, shape, thrower as never)).toThrow(/whole number/);
    expect(all.channel.records).toHaveLength(before);
    all.stream.launch(kernel, shape, argsOf(all) as never);
    expect(launches(all)).toHaveLength(1);
  });
});

test('the launch waits for work that a getter of an argument submits to another stream', () => {
  const all = rig();
  const { device, channel, stream } = all;
  const side = device.createStream();
  stream.launch(kernel, shape, calling(argsOf(all), 'm', () => void side.fill(all.y, 1)) as never);
  expect(waitsOf(channel, stream)).toContain(side.timeline.slot);
});

test('what a getter of an argument submits to a stream of another device is waited for', () => {
  const all = rig();
  const { channel, stream } = all;
  const away = fixture(new FakeChannel(2), all.progress, 'cpu:1');
  const side = away.device.createStream();
  const target = side.empty(100);
  stream.launch(kernel, shape, calling(argsOf(all), 'm', () => void side.copy(target, all.y as never)) as never);
  expect(waitsOf(channel, stream)).toContain(side.timeline.slot);
});

test.each(['tracked', 'checked'] as const)('arguments that share memory are read once (%s)', (ordering) => {
  const { device, x } = rig();
  const stream = device.createStream({ ordering });
  stream.waitStream(device.stream);
  const reads: string[] = [];
  const args = { n: -7, x: x.subarray(0, 50), y: x.subarray(40, 90), m: 9 };
  const seen = new Proxy(args, {
    get: (of, key) => {
      reads.push(String(key));
      return Reflect.get(of, key) as unknown;
    },
  });
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const launch = () => stream.launch(kernel, shape, seen as never);
  if (ordering === 'checked') expect(launch).toThrow(/gets the same bytes .* for its parameters x and y,/);
  else launch();
  expect(warned).toHaveBeenCalledTimes(ordering === 'checked' ? 0 : 1);
  warned.mockRestore();
  expect(reads).toEqual(['n', 'x', 'y', 'm']);
  // No bytes of an empty array are those of another.
  args.x = x.subarray(60, 60);
  launch();
});

test('the options of host functions and copies are read once, before anything is submitted', () => {
  const { stream, x, y, channel } = rig();
  const options = (): { readonly label: string } => {
    let reads = 0;
    return {
      get label() {
        if (reads++ > 0) throw new Error('read twice');
        return 'once';
      },
    };
  };
  expect(stream.host(() => undefined, options()).label).toBe('once');
  expect(stream.copy(x, y, options()).label).toBe('once');
  const before = channel.records.length;
  const bad = {
    get label(): string {
      throw new Error('mine');
    },
  };
  expect(() => stream.hold(async () => undefined, Object.defineProperty({ timeoutMs: 1 }, 'label', { get: () => bad.label }))).toThrow(
    'mine',
  );
  expect(() => stream.copy(x, y, bad)).toThrow('mine');
  expect(channel.records).toHaveLength(before);
});
