// Which slots the grid barriers of captured kernels use. On CUDA, two kernels that run at the same time with one slot would count each other's
// blocks.
import { expect, test } from 'vitest';
import { i32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import type { Recorder } from '../../../src/core/api/recorder.js';
import {
  GraphBody,
  GraphCondition,
  GraphDefinition,
  GraphNodeHead,
  LaunchArg,
  LaunchRecord,
  Opcode,
  RecordHeader,
} from '../../../src/protocol/protocol.gen.js';
import { open } from './opened.js';

const meeting = kernel('meeting', { x: inout(i32) }, ({ x }, { i, gridSync }) => {
  x[i] = x[i]! + 1;
  gridSync();
  x[i] = x[i]! + 1;
});
const SHAPE = { threads: 4, cooperative: true } as const;

/** The slots of the barriers in a definition, by node. */
function slotsOf(definition: Uint8Array): number[] {
  const view = new DataView(definition.buffer, definition.byteOffset, definition.byteLength);
  const word = (at: number): number => view.getUint32(at, true);
  const slots: number[] = [];
  let at = GraphDefinition.BYTE_SIZE;
  const nodes = (count: number): void => {
    for (let node = 0; node < count; node++) {
      const [after, bytes] = [word(at + GraphNodeHead.AFTER_COUNT), word(at + GraphNodeHead.RECORD_BYTES)];
      at += GraphNodeHead.BYTE_SIZE + 4 * (after + (after % 2));
      const last = at + bytes - LaunchArg.BYTE_SIZE;
      if (bytes === 0) {
        const bodies = word(at + GraphCondition.BODY_COUNT);
        at += GraphCondition.BYTE_SIZE;
        for (let body = 0; body < bodies; body++) {
          const inside = word(at + GraphBody.NODE_COUNT);
          at += GraphBody.BYTE_SIZE;
          nodes(inside);
        }
        continue;
      }
      if (view.getUint16(at + RecordHeader.OPCODE, true) === Opcode.LAUNCH && bytes > LaunchRecord.BYTE_SIZE)
        slots.push(Number(view.getBigUint64(last + LaunchArg.VALUE, true)));
      at += bytes;
    }
  };
  nodes(word(GraphDefinition.NODE_COUNT));
  return slots;
}

test('nodes of one stream share a slot, nodes of two streams do not, and no stream has the slot of a graph', () => {
  const { channel, device } = open();
  const [a, b] = [device.createStream(), device.createStream()];
  const [x, y] = [a.zeros(4, 'i32'), a.zeros(4, 'i32')];
  a.capture((s) => {
    s.launch(meeting, SHAPE, { x });
    b.waitStream(a);
    b.launch(meeting, SHAPE, { x: y });
    s.launch(meeting, SHAPE, { x });
  });
  const [first, second, third] = slotsOf([...channel.graphs.values()][0]!);
  expect(third).toBe(first);
  expect(second).not.toBe(first);
  const streams = [a, b, device.stream, device.createStream()].map(({ timeline }) => timeline.slot);
  expect(streams).not.toContain(first);
  expect(streams).not.toContain(second);
});

test('each copy of an embedded graph has slots of its own, in the bodies of conditions too', () => {
  const { channel, device } = open();
  const { stream } = device;
  const fork = device.createStream();
  using goOn = stream.zeros(1, 'i32');
  const inner = stream.capture({ x: inout(i32) }, (s, { x }) => void s.launch(meeting, SHAPE, { x }));
  const [x, y] = [stream.zeros(4, 'i32'), stream.zeros(4, 'i32')];
  const both = (s: Recorder): void => {
    fork.waitStream(stream);
    s.launch(inner, { x });
    fork.launch(inner, { x: y });
  };
  stream.capture(both);
  const conditional = stream.capture((s) => void s.captureIf(goOn, (body) => void body.launch(meeting, SHAPE, { x })));
  stream.capture((s) => {
    fork.waitStream(stream);
    s.launch(conditional);
    fork.launch(conditional);
  });
  const slots = [...channel.graphs.values()].flatMap(slotsOf);
  expect(slots).toHaveLength(6);
  expect(new Set(slots).size).toBe(6);
});

test('the slots of a closed graph serve others only when its launches have finished', () => {
  const { channel, device } = open();
  const stream = device.createStream({ ordering: 'explicit' });
  const x = stream.zeros(4, 'i32');
  const capture = (): number => {
    const graph = stream.capture((s) => void s.launch(meeting, SHAPE, { x }));
    stream.launch(graph);
    const [slot] = slotsOf([...channel.graphs.values()].at(-1)!);
    graph.close().catch(() => undefined); // The fake device ends before it has finished everything.
    return slot!;
  };
  const slots = Array.from({ length: 3 }, capture);
  expect(new Set(slots).size).toBe(3);
  expect(slots).not.toContain(device.createStream().timeline.slot);
  channel.completeAll();
  expect(slots).toContain(device.createStream().timeline.slot);
  expect(slots).toContain(capture());
});
