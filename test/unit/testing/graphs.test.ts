// Graphs on the channel of a test device, from the bytes of their definitions.
import { describe, expect, test } from 'vitest';
import { createTestClock } from '../../../src/testing/clock.js';
import { f32, inout, kernel } from '../../../src/index.js';
import { TestChannel } from '../../../src/testing/channel.js';
import { filledIn, graphEffect, graphMs, type GraphNode, type NodeStep, readGraph } from '../../../src/testing/graphs.js';
import { testKernel } from '../../../src/testing/kernels.js';
import type { Block, Effect } from '../../../src/testing/memory.js';
import { groupOf } from '../../../src/testing/device-group.js';
import {
  Access,
  ArgKind,
  CopyRecord,
  FillRecord,
  FreeGraphRecord,
  GraphDefinition,
  GraphNodeHead,
  GraphPatch,
  HandleKind,
  LaunchArg,
  LaunchGraphRecord,
  LaunchRecord,
  NopRecord,
  Opcode,
  RecordHeader,
  Status,
} from '../../../src/protocol/protocol.gen.js';

function record(opcode: number, bytes: number, fields: Readonly<Record<number, number>>): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(bytes));
  view.setUint16(RecordHeader.OPCODE, opcode, true);
  view.setUint32(RecordHeader.SIZE, bytes, true);
  for (const [at, value] of Object.entries(fields)) view.setUint32(Number(at), value, true);
  return new Uint8Array(view.buffer);
}

const arg = (kind: ArgKind, access: number, handle: number): Uint8Array =>
  Uint8Array.of(kind, access, 4, 0, ...new Uint8Array(Uint32Array.of(handle, 0, 0).buffer));

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

const launch = (handle: number, ...args: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => {
  const grid = { [LaunchRecord.GRID_X]: 1, [LaunchRecord.GRID_Y]: 1, [LaunchRecord.GRID_Z]: 1 };
  const block = { [LaunchRecord.BLOCK_X]: 1, [LaunchRecord.BLOCK_Y]: 1, [LaunchRecord.BLOCK_Z]: 1 };
  const bytes = LaunchRecord.BYTE_SIZE + args.length * LaunchArg.BYTE_SIZE;
  const head = record(Opcode.LAUNCH, bytes, { ...grid, ...block, [LaunchRecord.KERNEL]: handle, [LaunchRecord.ARG_COUNT]: args.length });
  return joined([head.subarray(0, LaunchRecord.BYTE_SIZE), ...args]);
};

interface Written {
  readonly device?: number;
  readonly record: Uint8Array;
  readonly after?: readonly number[];
}

function definition(nodes: readonly Written[], patches: readonly (readonly [node: number, arg: number, entry: number])[] = []): Uint8Array {
  const words = (...values: readonly number[]): Uint8Array => new Uint8Array(Uint32Array.from(values).buffer);
  const parts = nodes.flatMap(({ device = 0, record: bytes, after = [] }) => [
    words(device, after.length, bytes.length, 0),
    words(...after, ...(after.length % 2 === 0 ? [] : [0])),
    bytes,
  ]);
  const entries = Math.max(0, ...patches.map(([, , entry]) => entry + 1));
  return joined([words(nodes.length, patches.length, entries, 0), ...parts, ...patches.map((patch) => words(...patch, 0))]);
}

const block = (...bytes: readonly number[]): Block => ({ bytes: Uint8Array.from(bytes), poison: 0 });
const step = (ms: number, effect: Partial<Effect> = {}): NodeStep => ({
  ms,
  effect: { reads: [], writes: [], isWhole: false, run: () => undefined, ...effect },
});

describe('a definition', () => {
  test('is read with dependencies, records and patches', () => {
    expect([GraphDefinition.BYTE_SIZE, GraphNodeHead.BYTE_SIZE, GraphPatch.BYTE_SIZE]).toEqual([16, 16, 16]);
    const nop = record(Opcode.NOP, NopRecord.BYTE_SIZE, {});
    const call = launch(5, arg(ArgKind.SCALAR, 0, 0), arg(ArgKind.MEMORY, Access.WRITE, 0));
    const nodes = readGraph(
      definition(
        [
          { device: 3, record: nop },
          { record: nop, after: [0] },
          { record: call, after: [0, 1] },
        ],
        [[2, 1, 0]],
      ),
    );
    expect(nodes.map(({ device, after }) => [device, after])).toEqual([
      [3, []],
      [0, [0]],
      [0, [0, 1]],
    ]);
    expect(nodes[1]?.record).toEqual(nop);
    expect(nodes[2]?.patches).toEqual([{ arg: 1, entry: 0 }]);
    const entry = new DataView(joined([new Uint8Array(LaunchGraphRecord.BYTE_SIZE), arg(ArgKind.MEMORY, Access.READ, 9)]).buffer);
    const filled = filledIn(nodes[2] as GraphNode, entry);
    const at = LaunchRecord.BYTE_SIZE + LaunchArg.BYTE_SIZE;
    expect([filled.getUint32(at + LaunchArg.HANDLE, true), filled.getUint8(at + LaunchArg.ACCESS)]).toEqual([9, Access.WRITE]);
  });

  test('entries fill in the memory of copies, and all of a fill', () => {
    const [copy, fill] = [record(Opcode.COPY, CopyRecord.BYTE_SIZE, {}), record(Opcode.FILL, FillRecord.BYTE_SIZE, {})];
    new DataView(copy.buffer).setBigUint64(CopyRecord.SRC_OFFSET, 40n, true);
    const nodes = readGraph(
      definition(
        [
          { device: 0, record: copy },
          { device: 0, record: fill },
        ],
        [
          [0, 1, 0],
          [1, 0, 0],
          [1, 1, 1],
          [1, 2, 1],
        ],
      ),
    );
    const entries = [arg(ArgKind.MEMORY, 0, 9), arg(ArgKind.SCALAR, 0, 0)];
    entries.forEach((entry, n) => new DataView(entry.buffer).setBigUint64(LaunchArg.VALUE, BigInt(8 + n), true));
    const launched = new DataView(joined([new Uint8Array(LaunchGraphRecord.BYTE_SIZE), ...entries]).buffer);
    const [copied, filled] = nodes.map((node) => filledIn(node, launched)) as [DataView, DataView];
    expect([copied.getUint32(CopyRecord.DST_HANDLE, true), copied.getUint32(CopyRecord.SRC_HANDLE, true)]).toEqual([0, 9]);
    expect(copied.getBigUint64(CopyRecord.SRC_OFFSET, true)).toBe(48n);
    expect(filled.getUint32(FillRecord.HANDLE, true)).toBe(9);
    expect([FillRecord.OFFSET, FillRecord.PATTERN, FillRecord.COUNT].map((at) => filled.getBigUint64(at, true))).toEqual([8n, 9n, 9n]);
  });

  test('takes as long as its longest path', () => {
    const node = (...after: readonly number[]): GraphNode => ({ device: 0, after, record: new Uint8Array(0), patches: [] });
    expect(graphMs([node(), node(0), node(0), node(1, 2)], [step(1), step(5), step(2), step(4)])).toBe(10);
    expect(graphMs([], [])).toBe(0);
  });

  test('reads what no node has written as a whole before', () => {
    const [x, y] = [block(1), block(2)];
    y.poison = 7;
    const ran: number[] = [];
    const effect = graphEffect([step(0, { writes: [y], isWhole: true }), step(0, { reads: [x, y] })], (node) => ran.push(node));
    expect([effect.reads, effect.writes]).toEqual([[x], [y]]);
    effect.run();
    expect([y.poison, ran]).toEqual([0, [0, 1]]);
  });
});

describe('the channel', () => {
  const scale = kernel('scale', { x: inout(f32) }, ({ x }, { i }) => {
    x[i] = x[i]! * 2;
  });

  function bench(run: () => void) {
    const clock = createTestClock();
    const info = { ordinal: 0, maxThreadsPerBlock: 1024, maxSharedBytes: 1024, totalMemoryBytes: 1024 } as TestChannel['info'];
    const known = testKernel(scale, { ms: 5, run });
    const channel = new TestChannel(groupOf(clock), { info, maxPending: 10, kernels: [known], uploadMs: 0, downloadMs: 0 });
    const submit = (bytes: Uint8Array): number => {
      channel.encoder.block.set(bytes);
      return channel.submit(bytes.length);
    };
    const launchGraph = (graph: number): number =>
      submit(record(Opcode.LAUNCH_GRAPH, LaunchGraphRecord.BYTE_SIZE, { [LaunchGraphRecord.GRAPH]: graph }));
    return { clock, channel, submit, launchGraph };
  }

  test('runs the nodes of a graph when its time is over', async () => {
    let runs = 0;
    const { clock, channel, launchGraph } = bench(() => runs++);
    await channel.build(4, scale.build);
    channel.memory.set(1, block(0, 0, 0, 0));
    const x = [arg(ArgKind.MEMORY, Access.READ | Access.WRITE, 1), arg(ArgKind.SCALAR, 0, 1), ...Array(3).fill(arg(ArgKind.SCALAR, 0, 1))];
    const call = launch(4, ...x);
    expect(channel.reserveHandles(HandleKind.GRAPH, 1)).toBe(0);
    channel.defineGraph(
      1,
      definition([
        { device: channel.id, record: call },
        { device: channel.id, record: call, after: [0] },
      ]),
    );
    const ticket = launchGraph(1);
    await clock.advance(9);
    expect([runs, channel.arm(0, ticket)]).toEqual([0, false]);
    await clock.advance(1);
    expect([runs, channel.arm(0, ticket)]).toEqual([2, true]);
    expect(channel.failures(0, 0, 100).records).toEqual([]);
  });

  test('names the node that failed, and poisons all that the graph writes', async () => {
    const { clock, channel, submit, launchGraph } = bench(() => undefined);
    const written = block(0);
    channel.memory.set(1, written);
    const fill = record(Opcode.FILL, 48, { 16: 1, 20: 1, 32: 1 });
    channel.defineGraph(
      1,
      definition([
        { device: channel.id, record: fill },
        { device: channel.id, record: launch(4) },
      ]),
    );
    const ticket = launchGraph(1);
    await clock.advance(0);
    expect(channel.arm(0, ticket)).toBe(true);
    expect(channel.failures(0, 0, 100).records).toEqual([expect.objectContaining({ status: Status.COMPILE, kernel: 4, node: 1 })]);
    expect(written.poison).not.toBe(0);
    const freed = submit(record(Opcode.FREE_GRAPH, FreeGraphRecord.BYTE_SIZE, { [FreeGraphRecord.GRAPH]: 1 }));
    await clock.advance(0);
    expect(channel.arm(0, freed)).toBe(true);
  });
});
