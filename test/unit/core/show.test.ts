// Values as messages show them; and memory of other realms, which is accepted like that of this realm.
import vm from 'node:vm';
import { describe, expect, test } from 'vitest';
import { show } from '../../../src/core/base/arguments.js';
import { dtypeOfHost, f32, isHostOf } from '../../../src/core/elements/dtype.js';
import { inout, type Kernel } from '../../../src/core/kernels/kernel.js';
import { fixture, shiftKernel } from './fake-channel.js';

const thrower = (): never => {
  throw new Error('theirs');
};
const cyclic: unknown[] = [1];
cyclic.push(cyclic);
const revoked = (of: object): object => {
  const { proxy, revoke } = Proxy.revocable(of, {});
  revoke();
  return proxy;
};
const manyNumbers = Array.from({ length: 1_000_000 }, () => 0.123456789);

const HOSTILE: readonly (readonly [name: string, value: unknown, shown: string | RegExp])[] = [
  ['a million numbers', manyNumbers, /^\[0\.123456789, .*, \.\.\.\] of 1000000 elements$/],
  ['a list that has itself', cyclic, '[1, [1, [1, a list of 2]]]'],
  ['lists in lists', [[[[[1]]]]], '[[[a list of 1]]]'],
  ['a list with a getter that throws', Object.defineProperty([1], 0, { get: thrower }), 'an object'],
  ['a long string', 'x'.repeat(1_000_000), `'${'x'.repeat(80)}...' of 1000000 characters`],
  ['a bigint of a million digits', 10n ** 100_000n, 'a bigint of more than 128 bits'],
  ['a negative one', -(10n ** 100_000n), 'a bigint of more than 128 bits'],
  ['a bigint', 5n, '5n'],
  ['a symbol', Symbol('s'.repeat(1000)), /^Symbol\(s+\.\.\.$/],
  ['a function', () => undefined, 'a function'],
  ['a class with a long name', { constructor: { name: 'N'.repeat(1000) } }, /^N+\.\.\.$/],
  ['an object without a prototype', Object.create(null), 'an object'],
  ['a constructor that is a getter and throws', Object.defineProperty({}, 'constructor', { get: thrower }), 'an object'],
  ['a name that is no string', { constructor: { name: 5 } }, 'an object'],
  ['a proxy that throws', new Proxy({}, { get: thrower }), 'an object'],
  ['a list that is a proxy and throws', new Proxy([], { get: thrower }), 'an object'],
  ['a revoked proxy', revoked({}), 'an object'],
  ['a revoked proxy of a list', revoked([]), 'an object'],
  ['null', null, 'null'],
  ['undefined', undefined, 'undefined'],
  ['a typed array', new Float32Array(1e6), 'Float32Array'],
];

describe.each(HOSTILE)('%s', (name, value, shown) => {
  test('is shown in a short line', () => {
    if (typeof shown === 'string') expect(show(value)).toBe(shown);
    else expect(show(value)).toMatch(shown);
    expect(show(value).length).toBeLessThan(400);
  });

  // `instanceof` itself throws for a revoked proxy.
  test.skipIf(name.startsWith('a revoked'))('is refused with a typed error in every argument position', () => {
    const { device, channel } = fixture();
    const { stream } = device;
    const y = device.zeros(4);
    const kernel = shiftKernel(inout(f32)) as unknown as Kernel;
    const before = channel.records.length;
    const bad = value as never;
    const calls: (() => unknown)[] = [
      () => stream.launch(kernel, 4, { y: bad } as never),
      () => stream.launch(kernel, { threads: 4, block: { bad } as never }, { y } as never),
      () => stream.fill(y, bad),
      () => stream.fill(bad, 1),
      () => device.full(4, bad),
      () => device.pin(bad),
      () => stream.waitStream(bad),
    ];
    if (value !== 5n) calls.push(() => device.wrapStream(bad));
    if (typeof value === 'bigint' && value !== 5n) calls.push(() => device.full(1, value, 'i64'));
    if (typeof value !== 'function') calls.push(() => stream.host(bad));
    if (value !== undefined) calls.push(() => stream.host(() => undefined, { label: 5, signal: bad } as never));
    if (!(value instanceof Float32Array)) calls.push(() => stream.copy(y, bad));
    for (const call of calls) {
      let thrown: unknown;
      try {
        call();
      } catch (error) {
        thrown = error;
      }
      expect(thrown, String(call)).toMatchObject({ name: 'ArgumentError', code: expect.stringContaining('ERR_MILLRACE') });
      expect((thrown as Error).message.length).toBeLessThan(1000);
    }
    expect(channel.records).toHaveLength(before);
  });
});

describe('memory of another realm', () => {
  const theirs = (text: string): never => vm.runInNewContext(text) as never;

  test('has the same types', () => {
    for (const [name, dtype] of [
      ['Float32Array', 'f32'],
      ['Float64Array', 'f64'],
      ['Uint8Array', 'u8'],
      ['Uint8ClampedArray', 'u8'],
      ['BigInt64Array', 'i64'],
      ['Uint16Array', 'u16'],
    ] as const)
      expect(dtypeOfHost(theirs(`new ${name}(2)`))).toBe(dtype);
    expect(isHostOf(theirs('new Uint16Array(2)'), 'f16')).toBe(true);
    expect(isHostOf(theirs('new Uint8ClampedArray(2)'), 'u8')).toBe(true);
    expect(isHostOf(theirs('new Uint8ClampedArray(2)'), 'bool')).toBe(false);
    for (const none of [
      'new DataView(new ArrayBuffer(8))',
      '[1]',
      'new Proxy(new Float32Array(1), {})',
      '({ [Symbol.toStringTag]: "Float32Array" })',
    ])
      expect(dtypeOfHost(theirs(none))).toBe(undefined);
    // An object that only inherits from a typed array has no memory.
    expect(dtypeOfHost(Object.create(Float32Array.prototype))).toBe(undefined);
  });

  test('is copied, borrowed, pinned and transferred', async () => {
    const { device, channel } = fixture();
    const x = device.zeros(40_000);
    device.stream.copy(x, theirs('new Float32Array(40000)'));
    const before = channel.registered.length;
    device.stream.copy(x, theirs('new Float32Array(new SharedArrayBuffer(160000))'));
    expect(channel.registered.length).toBe(before + 1);
    expect(device.pin(theirs('new Float32Array(new SharedArrayBuffer(16))')).dtype).toBe('f32');
    device.stream.copy(x, theirs('new Float32Array(40000)'), { transfer: true });
    expect(() => device.stream.copy(x, theirs('new Float32Array(new SharedArrayBuffer(160000))'), { transfer: true })).toThrow(
      /SharedArrayBuffer/,
    );
  });
});

test('detached memory is refused at the call', async () => {
  const { device, channel } = fixture();
  const x = device.zeros(4);
  const gone = new Float32Array(4);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  const before = channel.records.length;
  for (const call of [
    () => device.stream.copy(x, gone),
    () => device.stream.copy(gone, x),
    () => device.stream.copy(x, gone, { transfer: true }),
    () => device.pin(gone as never),
  ])
    expect(call).toThrow(expect.objectContaining({ name: 'ArgumentError', argument: expect.stringMatching(/src|dst|data/) }));
  const empty = device.zeros(0);
  await expect(empty.read({ into: gone })).rejects.toMatchObject({ name: 'ArgumentError', argument: 'into' });
  expect(channel.records.slice(before).filter(({ opcode }) => opcode === 'COPY')).toEqual([]);
  // Empty memory that is not detached is accepted.
  device.stream.copy(empty, new Float32Array(0));
  const read = empty.read({ into: new Float32Array(0) });
  channel.completeAll();
  expect(await read).toHaveLength(0);
});
