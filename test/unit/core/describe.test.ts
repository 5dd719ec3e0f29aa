// The library's objects in logs: one line each, and finite JSON.
import assert, { AssertionError } from 'node:assert';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { cudaModule } from '../../../src/cuda-module.js';
import { ArgumentError } from '../../../src/core/base/errors.js';
import { thrownBy } from '../../support/wait.js';
import { fixture } from './fake-channel.js';

function objects() {
  const { channel, device } = fixture();
  const stream = device.createStream({ label: 'mine', priority: -1 });
  const array = stream.empty([2, 3]);
  const pinned = device.pinned(4, 'u8');
  channel.completeAll();
  const operation = stream.fill(array, 1);
  const event = stream.record();
  return { channel, device, stream, array, pinned, operation, event };
}

test('each object is one line for util.inspect', () => {
  const { channel, device, stream, array, pinned, operation, event } = objects();
  expect(inspect(device)).toBe('Device cpu:0, fake (open)');
  expect(inspect(stream)).toBe('Stream mine of cpu:0 (1 pending)');
  expect(inspect(array)).toBe('DeviceArray f32 [2, 3] on cpu:0');
  expect(inspect(pinned)).toBe('PinnedArray u8 [4] of cpu:0');
  expect(inspect(operation)).toBe(`Operation ${operation.id}, fill on stream mine of cpu:0 (pending)`);
  expect(inspect(event)).toBe('DeviceEvent of cpu:0 (pending)');
  channel.completeAll();
  expect(inspect([operation, event])).toMatch(/^\[\n.*\(complete\),\n.*\(complete\)\n\]$/);
});

test('kernels and modules are one line each, and stay frozen', () => {
  const twice = kernel('twice', { x: inout(f32), by: f32 }, ({ x, by }, { i }) => {
    x[i] = x[i]! * by;
  });
  const module = cudaModule('__device__ int total; extern "C" __global__ void put(int* x) { x[0] = total; }');
  const put = module.kernel('put', { x: inout(i32) });
  expect([twice, twice.specialize({}), put].map((one) => inspect(one))).toEqual([
    'Kernel twice(x, by)',
    'Kernel twice(x, by)',
    'Kernel put(x)',
  ]);
  expect(JSON.parse(JSON.stringify({ twice, put }))).toEqual({
    twice: { name: 'twice', params: { x: { kind: 'array', dtype: 'f32', access: 'inout', rank: 1 }, by: expect.anything() } },
    put: { name: 'put', params: { x: { kind: 'array', dtype: 'i32', access: 'inout', rank: 1 } } },
  });
  expect([twice, put].every((one) => Object.isFrozen(one))).toBe(true);
});

test('each object is a few facts for JSON.stringify', () => {
  const { device, stream, array, pinned, operation, event } = objects();
  const plain: unknown = JSON.parse(JSON.stringify({ device, stream, array, pinned, operation, event }));
  expect(plain).toEqual({
    device: { id: 'cpu:0', backend: 'cpu', name: 'fake', state: 'open' },
    stream: { label: 'mine', device: 'cpu:0', priority: -1, ordering: 'tracked', pending: 1 },
    array: { dtype: 'f32', shape: [2, 3], device: 'cpu:0', isDisposed: false },
    pinned: { dtype: 'u8', shape: [4], device: 'cpu:0', isDisposed: false },
    operation: { id: operation.id, kind: 'fill', bytes: 24, stream: 'mine', device: 'cpu:0', isComplete: false },
    event: { device: 'cpu:0', isComplete: false },
  });
});

test('disposed and closed objects are still described', async () => {
  const { device, array, pinned, event } = objects();
  for (const disposable of [array, pinned, event]) disposable[Symbol.dispose]();
  await device.destroy();
  expect([device, array, pinned].map((object) => inspect(object))).toEqual([
    'Device cpu:0, fake (closed)',
    'DeviceArray f32 [2, 3] on cpu:0 (disposed)',
    'PinnedArray u8 [4] of cpu:0 (disposed)',
  ]);
  expect(inspect(event)).toMatch(/^DeviceEvent of cpu:0/);
});

test('an error that holds one of them can be logged', () => {
  const { stream } = objects();
  const other = fixture().device.createEvent();
  let error: unknown;
  try {
    stream.record(other);
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(ArgumentError);
  expect(JSON.parse(JSON.stringify(error))).toMatchObject({
    code: (error as ArgumentError).code,
    argument: (error as ArgumentError).argument,
  });
  expect((error as ArgumentError).value).toBe(other);
});

test('an assertion that fails prints few lines of the objects, and different objects are never equal', () => {
  const { device, stream, array, pinned, operation, event } = objects();
  const texture = device.createTexture({ data: new Float32Array(16), shape: [4, 4] });
  const graph = stream.capture((captured) => captured.fill(array, 0));
  const lines = (value: unknown): number => inspect(value, { customInspect: false, depth: 1000 }).split('\n').length;
  for (const object of [stream, array, pinned, operation, event, texture, graph]) expect(lines(object)).toBeLessThan(20);
  // The device shows its AbortSignal and its default stream.
  expect(lines(device)).toBeLessThan(60);
  const pairs = [
    [array, stream.empty([2, 3])],
    [pinned, device.pinned(4, 'u8')],
    [stream, device.createStream({ label: 'mine', priority: -1 })],
    [event, stream.record()],
    [graph, stream.capture((captured) => captured.fill(array, 0))],
  ];
  for (const [one, other] of pairs) {
    expect(() => assert.deepEqual(one, other)).toThrow(AssertionError);
    expect(one).not.toEqual(other);
    expect(() => assert.equal(one, other)).toThrow(AssertionError);
  }
});

test('the log of an uncaught ArgumentError shows no object that was passed, so no key of a shared device', () => {
  const { device, array } = objects();
  const { key } = device.share().address;
  for (const wrong of [device.share(), device, array, { token: device.share() }]) {
    const error = thrownBy(() => device.adopt(wrong, 'f32'));
    const text = inspect(error, { customInspect: false, depth: 1000 });
    expect(text.slice(text.indexOf('{')).split('\n').length).toBeLessThan(8);
    expect(text + JSON.stringify(error)).not.toContain(key);
    expect((error as ArgumentError).value).toBe(wrong);
  }
});
