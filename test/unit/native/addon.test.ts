// The addon's functions called as the workers and the core call them, on the CPU device and from one thread.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { growableSharedBuffer } from '../../../src/core/channel/host-buffers.js';
import type { Binding } from '../../../src/native/binding.js';
import { loadBinding } from '../../../src/native/load.js';
import { Encoder } from '../../../src/protocol/encoder.js';
import {
  GraphDefinition,
  GraphNodeHead,
  HandleKind,
  IPC_HANDLE_BYTES,
  MAX_STREAMS,
  LaunchGraphRecord,
  LaunchRecord,
  Opcode,
  RecordHeader,
  Status,
  TimelineSlot,
} from '../../../src/protocol/protocol.gen.js';

const PAGE = 4096;
const GENERATION = 1 << 22;

const binding: Binding = loadBinding();
const encoder = new Encoder();
let channel = 0;
let stream = 0;

/** A handle whose index nobody has. */
const handle = (kind: HandleKind): number => binding.reserveHandles(channel, kind, 1) + GENERATION;

function submit(bytes: number): number {
  encoder.call(channel, bytes);
  binding.submit();
  const ticket = encoder.answer;
  expect(ticket).toBeGreaterThan(0);
  return ticket;
}

/** Until the stream has come so far: asks the addon, which is all that a thread without a port can do. */
async function reached(ticket: number): Promise<void> {
  while (!binding.arm(channel, stream, ticket)) await new Promise(setImmediate);
}

function open(): number {
  const [timelineBytes, arenaBytes] = [MAX_STREAMS * TimelineSlot.BYTE_SIZE, 2 ** 20];
  const timeline = growableSharedBuffer(timelineBytes, timelineBytes);
  const arena = growableSharedBuffer(PAGE, arenaBytes);
  const views = [new Uint8Array(timeline, 0, timelineBytes), new Uint8Array(arena, 0, PAGE)] as const;
  const opened = binding.openDevice('cpu', 0, ...views, arenaBytes, 1000, false, 0, 0, 2 ** 32, 0, 0, 0, 0);
  binding.attach(opened, false);
  return opened;
}

async function close(opened: number): Promise<void> {
  binding.detach(opened);
  await binding.closeDevice(opened);
}

const failing = (status: Status): unknown => expect.objectContaining({ status });
const thrown = (call: () => unknown): unknown => {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
};

beforeAll(() => {
  binding.openPort(encoder.block, () => {});
  channel = open();
  stream = binding.reserveStream(channel);
  expect(binding.streamHandle(channel, stream)).toBeUndefined();
  submit(encoder.streamCreate(stream, 0));
});

afterAll(async () => {
  submit(encoder.streamDestroy(stream));
  await close(channel);
  binding.closePort();
});

describe('owner', () => {
  test('a graph is defined by bytes, and its launches fail with the node that cannot run', async () => {
    const launchGraph = (graph: number): number => {
      const view = new DataView(encoder.block.buffer);
      encoder.nop(stream);
      view.setUint16(RecordHeader.OPCODE, Opcode.LAUNCH_GRAPH, true);
      view.setUint32(RecordHeader.SIZE, LaunchGraphRecord.BYTE_SIZE, true);
      view.setUint32(LaunchGraphRecord.GRAPH, graph, true);
      view.setUint32(LaunchGraphRecord.ARG_COUNT, 0, true);
      return submit(LaunchGraphRecord.BYTE_SIZE);
    };
    const kernel = handle(HandleKind.KERNEL);
    binding.failKernel(channel, kernel, Status.COMPILE);
    const bytes = new Uint8Array(GraphDefinition.BYTE_SIZE + GraphNodeHead.BYTE_SIZE + LaunchRecord.BYTE_SIZE);
    const view = new DataView(bytes.buffer);
    const head = GraphDefinition.BYTE_SIZE;
    const record = head + GraphNodeHead.BYTE_SIZE;
    view.setUint32(GraphDefinition.NODE_COUNT, 1, true);
    view.setUint32(head + GraphNodeHead.DEVICE, channel, true);
    view.setUint32(head + GraphNodeHead.RECORD_BYTES, LaunchRecord.BYTE_SIZE, true);
    view.setUint16(record + RecordHeader.OPCODE, Opcode.LAUNCH, true);
    view.setUint32(record + RecordHeader.SIZE, LaunchRecord.BYTE_SIZE, true);
    view.setUint32(record + LaunchRecord.KERNEL, kernel, true);
    for (let at = LaunchRecord.GRID_X; at <= LaunchRecord.BLOCK_Z; at += 4) view.setUint32(record + at, 1, true);
    const graphs = [handle(HandleKind.GRAPH), handle(HandleKind.GRAPH)] as const;
    binding.defineGraph(channel, graphs[0], bytes);
    // It was copied.
    bytes.fill(0xff);
    binding.defineGraph(channel, graphs[1], bytes);
    const first = launchGraph(graphs[0]);
    await reached(launchGraph(graphs[1]));
    const failures = binding.failures(channel, stream, 0, 100).records.filter(({ last }) => last >= first);
    expect(failures).toEqual([
      expect.objectContaining({ status: Status.COMPILE, kernel, node: 0 }),
      expect.objectContaining({ status: Status.INTERNAL, note: 'malformed record' }),
    ]);
    expect(failures[1]).not.toHaveProperty('node');
    // Some at a time.
    const { id } = failures[0]!;
    const all = binding.failures(channel, stream, 0, 100).records;
    const from = all.findIndex((each) => each.id === id);
    const part = binding.failures(channel, stream, from, 1);
    expect([part.records.map((each) => each.id), part.rest]).toEqual([[id], 1]);
    expect(binding.failures(channel, stream, from + 1, 1)).toMatchObject({ records: [{ note: 'malformed record' }], rest: 0 });
  });
});

describe('control', () => {
  test('the CPU device has nothing for other processes', () => {
    const ipc = new Uint8Array(IPC_HANDLE_BYTES);
    expect(thrown(() => binding.exportEvent(channel, handle(HandleKind.EVENT)))).toEqual(failing(Status.UNSUPPORTED));
    expect(thrown(() => binding.openEvent(channel, handle(HandleKind.EVENT), ipc))).toEqual(failing(Status.UNSUPPORTED));
    expect(thrown(() => binding.openMemory(channel, handle(HandleKind.MEMORY), ipc, 16))).toEqual(failing(Status.UNSUPPORTED));
    expect(thrown(() => binding.exportMemory(channel, handle(HandleKind.MEMORY)))).toEqual(failing(Status.STATE));
  });

  test("the error of a shared object that does not load contains the loader's message", () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-loading-'));
    const build = (name: string, text: string): string => {
      const path = join(folder, name);
      execFileSync('g++', ['-shared', '-fPIC', '-x', 'c++', '-o', path, '-'], { input: text });
      return path;
    };
    writeFileSync(join(folder, 'text.so'), 'not an image');
    const failures: readonly (readonly [path: string, message: RegExp])[] = [
      [join(folder, 'absent.so'), /copying the shared object of a kernel: .*absent\.so.*: No such file or directory/],
      [join(folder, 'text.so'), /loading the shared object of a kernel: .*(?:invalid ELF header|file too short)/],
      [
        build('lacking.so', 'int lacking(); int k() { return lacking(); }'),
        /loading the shared object of a kernel: .*undefined symbol: .*lacking/,
      ],
      [build('other.so', 'int other() { return 1; }'), /finding a kernel's entry in its shared object: .*undefined symbol: mr_entry_k/],
    ];
    try {
      for (const [path, message] of failures) {
        const install = { image: Buffer.from(path), entry: 'k', isBounded: false, isLaunching: false, isChecked: false };
        expect(() => binding.installKernel(channel, handle(HandleKind.KERNEL), install)).toThrow(message);
        if (!message.source.includes('entry')) expect(() => binding.loadModule(channel, 1, Buffer.from(path))).toThrow(message);
      }
      // The message is not repeated for another failure.
      expect(() => binding.setReleaseThreshold(channel + 1000, 1)).toThrow(/setReleaseThreshold(?!.*symbol)/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('turns are limited and granted in order', async () => {
    let granted = 0;
    let hear = (): void => {};
    binding.openCompilerSlots(() => {
      granted += binding.grantedCompilerSlots();
      hear();
    });
    const heard = (): Promise<void> =>
      new Promise((resolve) => {
        hear = resolve;
      });
    expect([binding.takeCompilerSlot(2), binding.takeCompilerSlot(2), binding.takeCompilerSlot(2), binding.takeCompilerSlot(2)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    // The function is unreferenced; the test runner keeps the thread alive.
    const first = heard();
    binding.releaseCompilerSlot();
    await first;
    expect(granted).toBe(1);
    binding.releaseCompilerSlot();
    binding.releaseCompilerSlot();
    binding.releaseCompilerSlot();
    // Passing on a turn that is not held has no effect.
    binding.releaseCompilerSlot();
    expect([binding.takeCompilerSlot(1), binding.takeCompilerSlot(1)]).toEqual([true, false]);
    const last = heard();
    binding.releaseCompilerSlot();
    await last;
    binding.releaseCompilerSlot();
    expect(granted + binding.grantedCompilerSlots()).toBe(3);
    expect(() => binding.takeCompilerSlot(0)).toThrow('takeCompilerSlot: wrong arguments');
    expect(() => binding.keepGroup(1, true)).toThrow('keepGroup: wrong arguments');
    expect(() => binding.keepFolder('relative', true)).toThrow('keepFolder: wrong arguments');
  });
});
