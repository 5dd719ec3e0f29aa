// Kernels whose build failed, on a fake channel: the launches that fail, and the kernels that the next launch builds again.
import { expect, test } from 'vitest';
import { cudaModule } from '../../../src/cuda-module.js';
import {
  CompileError,
  InternalError,
  LaunchError,
  type MillraceError,
  OutOfMemoryError,
  UnavailableError,
  UnsupportedError,
} from '../../../src/core/base/errors.js';
import { i32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { HANDLE_INDEX_BITS, LaunchRecord, Opcode, Status } from '../../../src/protocol/protocol.gen.js';
import { fixture, settle, shiftKernel, type Submitted, turn } from './fake-channel.js';

const PARAM = inout(i32);
const one = { grid: 1, block: 1 } as const;
const LIMITS = { maxThreadsPerBlock: 1024, maxSharedBytes: 1 << 15, maxCooperativeBlocks: 32, blocksAtOnce: [] };
const absent = (): UnavailableError => new UnavailableError('ERR_MILLRACE_UNAVAILABLE', 'K701: No compiler.', []);

function made() {
  const parts = fixture();
  const kernel = shiftKernel(PARAM);
  const y = parts.device.zeros(1, 'i32');
  const named = ({ view }: Submitted): number => view.getUint32(LaunchRecord.KERNEL, true);
  const launches = (): number[] => parts.channel.records.filter(({ view }) => view.getUint8(0) === Opcode.LAUNCH).map(named);
  return { ...parts, kernel, y, launches };
}

test.each<[name: string, error: MillraceError]>([
  ['no compiler', absent()],
  ['too little time', new CompileError('ERR_MILLRACE_COMPILE', 'K704: long', '', [{ code: 'K704', line: 1, column: 1, message: 'long' }])],
  ['an image that does not load', new LaunchError('ERR_MILLRACE_LAUNCH', 'noexec')],
  ['no memory', new OutOfMemoryError('ERR_MILLRACE_MEMORY', 'none', 1, 0)],
])('after %s the next launch builds the kernel again, under another handle', async (_name, error) => {
  const { channel, device, kernel, y, launches } = made();
  const first = device.compile(kernel);
  device.stream.launch(kernel, one, { y });
  device.stream.launch(kernel, one, { y });
  expect(channel.builds.size).toBe(1);
  const [handle] = [...channel.builds.keys()] as [number];
  channel.builds.get(handle)?.reject(error);
  await expect(first).rejects.toBe(error);
  device.stream.launch(kernel, one, { y });
  device.createStream().launch(kernel, one, { y });
  const [, again] = [...channel.builds.keys()] as [number, number];
  expect(launches()).toEqual([handle, handle, again, again]);
  expect(again).not.toBe(handle);
  channel.builds.get(again)?.resolve({ compiler: '', fromCache: false, ms: 0, limits: LIMITS });
  await device.compile(kernel);
  device.stream.launch(kernel, one, { y });
  expect(channel.builds.size).toBe(2);
});

test.each<[name: string, error: MillraceError]>([
  [
    'a text that does not compile',
    new CompileError('ERR_MILLRACE_COMPILE', 'K702: no', '', [{ code: 'K702', line: 1, column: 1, message: 'no' }]),
  ],
  ['one that the device cannot run', new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', 'no', '')],
  ['a defect', new InternalError('ERR_MILLRACE_INTERNAL', 'no')],
])('%s is not built again', async (_name, error) => {
  const { channel, device, kernel, y, launches } = made();
  device.stream.launch(kernel, one, { y });
  const [handle] = [...channel.builds.keys()] as [number];
  channel.builds.get(handle)?.reject(error);
  await turn();
  device.stream.launch(kernel, one, { y });
  await expect(device.compile(kernel)).rejects.toBe(error);
  expect(launches()).toEqual([handle, handle]);
});

test("launches submitted before fail with the first build's error, and its handle index is reused after them", async () => {
  const { channel, device, kernel, y, progress } = made();
  const launched = device.stream.launch(kernel, one, { y });
  const [handle] = [...channel.builds.keys()] as [number];
  const error = absent();
  const { timeline } = device.stream;
  const ticket = timeline.last;
  channel.builds.get(handle)?.reject(error);
  await turn();
  void device.compile(kernel).catch(() => undefined);
  // A submitted record still names the first handle.
  const index = (one_: number): number => one_ & (2 ** HANDLE_INDEX_BITS - 1);
  const handles = (): number[] => [...channel.builds.keys()].map(index);
  expect(new Set(handles()).size).toBe(2);
  channel.fail(timeline.slot, { id: 1, first: ticket, last: ticket, status: Status.UNAVAILABLE, kernel: handle });
  channel.completeAll();
  const rejected = expect(launched.done).rejects.toBe(error);
  await settle(progress);
  await rejected;
  const other = shiftKernel(PARAM);
  void device.compile(other).catch(() => undefined);
  expect(handles()).toEqual([index(handle), handles()[1], index(handle)]);
});

test('a module whose build failed is loaded again under another number, with its kernels', async () => {
  const { channel, device, y } = made();
  const module = cudaModule('extern "C" __global__ void add(int* x) { x[0]++; }');
  const add = module.kernel('add', { x: inout(i32) });
  device.stream.launch(add, one, { x: y });
  expect([...channel.modules.keys()]).toEqual([1]);
  channel.modules.get(1)?.reject(absent());
  [...channel.builds.values()][0]?.reject(absent());
  await turn();
  device.stream.launch(add, one, { x: y });
  expect([...channel.modules.keys()]).toEqual([1, 2]);
  expect(channel.builds.size).toBe(2);
});
