// What a capture lists, and what a launch of its graph submits, on a channel without a device.
import { expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import type { CaptureBody } from '../../../src/core/api/condition.js';
import type { Recorder } from '../../../src/core/api/recorder.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { GraphDefinition, GraphNodeHead, GraphPatch } from '../../../src/protocol/protocol.gen.js';
import type { DeviceEvent } from '../../../src/core/api/event.js';
import { FakeChannel, fixture, shiftKernel } from './fake-channel.js';

const step = shiftKernel(inout(f32));

test('a stream that joins before any node comes after what the first one waits for', () => {
  const { device } = fixture();
  const [a, b, c] = [device.createStream(), device.createStream(), device.createStream()];
  const [x, y] = [a.zeros(4), a.zeros(4)];
  const graph = a.capture(() => {
    b.waitStream(a);
    b.fill(x, 1); // 0
    a.waitStream(b);
    c.waitStream(a);
    c.fill(y, 1); // 1, after 0
  });
  expect(graph.edges).toEqual([[0, 1]]);
});

test('the definition has the records, their dependencies and the places of the slots', () => {
  const { channel, core, device } = fixture();
  const { stream } = device;
  const x = stream.zeros(4);
  const graph = stream.capture({ k: inout(f32) }, (s, { k }) => {
    s.fill(x, 1);
    s.launch(step, 4, { y: k });
  });
  const [definition] = channel.graphs.values();
  const view = new DataView(definition!.buffer);
  const word = (at: number): number => view.getUint32(at, true);
  expect([word(GraphDefinition.NODE_COUNT), word(GraphDefinition.PATCH_COUNT), word(GraphDefinition.ENTRY_COUNT)]).toEqual([2, 1, 2]);
  const first = GraphDefinition.BYTE_SIZE;
  expect([word(first + GraphNodeHead.DEVICE), word(first + GraphNodeHead.AFTER_COUNT)]).toEqual([core.channel.id, 0]);
  const second = first + GraphNodeHead.BYTE_SIZE + word(first + GraphNodeHead.RECORD_BYTES);
  expect(word(second + GraphNodeHead.AFTER_COUNT)).toBe(1);
  expect(word(second + GraphNodeHead.BYTE_SIZE)).toBe(0);
  const patches = second + GraphNodeHead.BYTE_SIZE + 8 + word(second + GraphNodeHead.RECORD_BYTES);
  expect([word(patches + GraphPatch.NODE), word(patches + GraphPatch.ARG), word(patches + GraphPatch.ENTRY)]).toEqual([1, 0, 0]);
  expect(definition!.byteLength).toBe(patches + GraphPatch.BYTE_SIZE);
  using k = stream.zeros(4);
  stream.launch(graph, { k });
  expect(() => stream.launch(graph, { k: x })).toThrow('which the graph itself uses');
  expect(() => stream.launch(graph, {} as never)).toThrow('missing');
  // @ts-expect-error the values are missing
  expect(() => stream.launch(graph)).toThrow('values for k');
});

test('what a capture does not take throws at the call, and the capture goes on', () => {
  const { device } = fixture();
  const { stream } = device;
  const outside = device.createStream();
  const x = stream.zeros(4);
  const earlier = outside.record();
  let reasons: unknown[] = [];
  const reasonOf = (call: () => unknown): void => {
    try {
      call();
      reasons.push(undefined);
    } catch (error) {
      reasons.push((error as { readonly reason?: string }).reason);
    }
  };
  const graph = stream.capture((s) => {
    const operation = s.fill(x, 1);
    for (const call of [
      () => stream.isComplete,
      () => stream.synchronize(),
      () => device.synchronize(),
      () => operation.done,
      () => operation.isComplete,
      () => x.read(),
      () => s.copy(x, new Float32Array(4)),
      () => s.copy(new Float32Array(4), x),
      () => s.waitEvent(earlier),
      () => stream.waitStream(outside),
      () => stream.nativeHandle,
      () => s.hold(() => undefined, { timeoutMs: 1 }),
      () => stream.capture(() => undefined),
      () => stream.close(),
    ])
      reasonOf(call);
    s.fill(x, 2);
  });
  expect(graph.nodes.length).toBe(2);
  expect(reasons).toEqual([
    'query',
    'host-wait',
    'host-wait',
    'host-wait',
    'query',
    'readback',
    'unsupported-node',
    'readback',
    'isolation',
    'isolation',
    'unsupported-node',
    'unsupported-node',
    'already-capturing',
    'host-wait',
  ]);
  reasons = [];
  reasonOf(() => stream.capture(() => undefined));
  const event = stream.capture((s) => {
    s.fill(x, 1);
    reasonOf(() => outside.waitStream(stream));
    return s.record() as never;
  });
  expect(event.nodes.length).toBe(1);
  expect(reasons).toEqual(['empty', undefined]);
});

test('a slot has no value in JavaScript, and is for kernels of the device that launches the graph', () => {
  const { device, progress } = fixture();
  const other = fixture(new FakeChannel(8), progress, 'cpu:1');
  const { stream } = device;
  const x = stream.zeros(4);
  const there = other.device.createStream();
  const graph = stream.capture({ y: inout(f32), k: f32 }, (s, { y, k }) => {
    expect(() => Number(k) * 2).toThrow('Slot k has no value');
    expect(() => Number(y)).toThrow('Slot y has no value');
    there.waitStream(stream);
    expect(() => there.launch(step, 4, { y })).toThrow('slot y for arrays of device cpu:0');
    s.fill(x, 1);
  });
  expect(graph.nodes.length).toBe(1);
});

test('a capture refuses calls that would end a device or change the current stream', () => {
  const { device } = fixture();
  const { stream } = device;
  const side = device.createStream();
  const x = stream.zeros(4);
  stream.capture((s) => {
    expect(() => device.setCurrentStream(side)).toThrow('use stream.run');
    expect(() => device.close()).toThrow('a device cannot be closed');
    s.fill(x, 1);
  });
  expect(device.stream).toBe(stream);
});

test('a wait for what was captured says what to do', () => {
  const { device } = fixture();
  const { stream } = device;
  const side = device.createStream();
  const x = stream.zeros(4);
  let event!: DeviceEvent;
  stream.capture((s) => {
    s.fill(x, 1);
    event = s.record();
  });
  expect(() => side.waitEvent(event)).toThrow('launch the graph and wait for the launch');
});

test('the types of conditions take a CaptureBody, and refuse async functions', () => {
  const check = (s: Recorder, go: DeviceArray<'i32'>, body: CaptureBody, maybe: CaptureBody | undefined, list: CaptureBody[]): void => {
    s.captureIf(go, body);
    s.captureIf(go, undefined, body);
    s.captureIf(go, maybe, maybe);
    s.captureWhile(go, body);
    s.captureSwitch(go, list);
    // @ts-expect-error an async function
    s.captureIf(go, async () => undefined);
    // @ts-expect-error an async function
    s.captureIf(go, undefined, async () => undefined);
    // @ts-expect-error an async function
    s.captureWhile(go, async () => undefined);
  };
  expect(check).toBeTypeOf('function');
});
