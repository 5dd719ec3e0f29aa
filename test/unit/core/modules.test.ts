// Modules on a fake channel: the requests to the channel, the entries of launches, and the reports of variables that cannot be bound.
import { describe, expect, test, vi } from 'vitest';
import { cudaModule } from '../../../src/cuda-module.js';
import { ArgumentError, CompileError, DeviceLostError, type MillraceError, UpstreamError } from '../../../src/core/base/errors.js';
import { i32 } from '../../../src/core/elements/dtype.js';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { Access, ArgKind, LaunchArg, LaunchRecord, MAX_LAUNCH_ARGS, Status } from '../../../src/protocol/protocol.gen.js';
import { thrownBy } from '../../support/wait.js';
import { fixture, type Submitted, turn } from './fake-channel.js';

const SOURCE = `
__constant__ int limits[2];
__device__ int count;
extern "C" __global__ void add(int* x) { count += x[0]; }
extern "C" __global__ void get(int* x) { x[0] = count; }
`;
const PARAMS = { x: inout(i32) };
const one = { grid: 1, block: 1 } as const;

function made() {
  const parts = fixture();
  const module = cudaModule(SOURCE);
  const [add, get] = [module.kernel('add', PARAMS), module.kernel('get', PARAMS)] as const;
  return { ...parts, module, add, get, x: parts.device.zeros(1, 'i32') };
}

/** Kind, access and handle of each entry of a launch. */
function entriesOf({ view }: Submitted): readonly (readonly [number, number, number])[] {
  return Array.from({ length: view.getUint32(LaunchRecord.ARG_COUNT, true) }, (_, n) => {
    const at = LaunchRecord.BYTE_SIZE + n * LaunchArg.BYTE_SIZE;
    return [view.getUint8(at + LaunchArg.KIND), view.getUint8(at + LaunchArg.ACCESS), view.getUint32(at + LaunchArg.HANDLE, true)];
  });
}

const badSize = (): CompileError => new CompileError('ERR_MILLRACE_COMPILE', 'K705: another size', '', []);

describe('requests of a module to its device', () => {
  test('one load for any number of kernels and variables', () => {
    const { channel, device, module, add, get, x } = made();
    device.stream.launch(add as Kernel<typeof PARAMS>, one, { x });
    device.stream.launch(get as Kernel<typeof PARAMS>, one, { x });
    module.global(device, 'count', i32, 1);
    void device.compile(module, add).catch(() => undefined);
    expect([...channel.modules.keys()]).toEqual([1]);
    expect(channel.builds.size).toBe(2);
    cudaModule(SOURCE).global(device, 'count', i32, 1);
    expect([...channel.modules.keys()]).toEqual([1, 2]);
  });

  test('one binding per variable, however often it is requested', () => {
    const { channel, device, module } = made();
    const [first, second] = [module.global(device, 'count', i32, 1), module.global(device, 'count', 'i32', [])];
    expect(second.storage).toBe(first.storage);
    expect(second.shape).toEqual([]);
    expect([...channel.variables.values()]).toMatchObject([{ module: 1, name: 'count', byteLength: 4 }]);
    const records = channel.records.length;
    first[Symbol.dispose]();
    expect(channel.records.length).toBe(records);
    expect([first.isDisposed, second.isDisposed]).toEqual([true, false]);
  });

  test('none on a destroyed device, or on a value that is not a device', async () => {
    const { channel, device, module } = made();
    expect(thrownBy(() => module.global({} as never, 'count', i32, 1))).toBeInstanceOf(ArgumentError);
    channel.completeAll();
    const destroyed = device.destroy();
    expect(thrownBy(() => module.global(device, 'count', i32, 1))).toMatchObject({ name: 'DeviceLostError', reason: 'closed' });
    expect(channel.variables.size).toBe(0);
    await destroyed;
  });
});

test('a stream that waits for a variable is shown to wait for a build', () => {
  const { channel, device, module } = made();
  channel.completeAll();
  device.stream.fill(module.global(device, 'count', i32, 1), 1);
  const { slot } = device.stream.timeline;
  channel.parked = [{ stream: slot, reason: 'point', deferred: 1 }];
  expect(device.inspect().streams[0]?.waitingFor?.kind).toBe('compile');
});

describe('launches', () => {
  test('name the requested variables after their arguments', () => {
    const { channel, device, module, add, x } = made();
    device.stream.launch(add, one, { x });
    const limits = module.global(device, 'limits', i32, 2);
    const count = module.global(device, 'count', i32, 1);
    device.stream.launch(add, one, { x });
    const launches = channel.records.filter(({ opcode }) => opcode === 'LAUNCH').map(entriesOf);
    const argument = [ArgKind.MEMORY, Access.READ_WRITE, x.storage.handle];
    expect(launches).toEqual([
      [argument],
      [argument, [ArgKind.VARIABLE, Access.READ, limits.storage.handle], [ArgKind.VARIABLE, Access.READ_WRITE, count.storage.handle]],
    ]);
  });

  test('are refused when their entries exceed a record, and nothing was submitted', () => {
    const { channel, device } = fixture();
    const names = Array.from({ length: MAX_LAUNCH_ARGS }, (_, n) => `v${n}`);
    const module = cudaModule(
      `${names.map((name) => `__device__ int ${name};`).join('\n')}\nextern "C" __global__ void k(int* x) { x[0] = v0; }`,
    );
    const kernel = module.kernel('k', PARAMS);
    const x = device.zeros(1, 'i32');
    for (const name of names.slice(1)) module.global(device, name, i32, 1);
    device.stream.launch(kernel, one, { x });
    module.global(device, 'v0', i32, 1);
    const before = channel.records.length;
    expect(thrownBy(() => device.stream.launch(kernel, one, { x }))).toMatchObject({ limit: MAX_LAUNCH_ARGS, value: MAX_LAUNCH_ARGS + 1 });
    expect(channel.records.length).toBe(before);
    device.stream.fill(x, 1);
  });
});

describe('a variable that cannot be bound', () => {
  test('is the cause of failures of its uses, whichever is known first', async () => {
    const { channel, device, module, x } = made();
    const told: MillraceError[] = [];
    device.core.errors.add({ next: (error) => told.push(error) });
    const count = module.global(device, 'count', i32, 1);
    const fill = device.stream.fill(count, 1);
    const { slot, last } = device.stream.timeline;
    const [variable] = channel.variables.values();
    channel.fail(slot, { id: 1, first: last, last, status: Status.UPSTREAM, cause: variable!.failure });
    channel.completeAll();
    const done = fill.done.catch((error: unknown) => error);
    await turn();
    variable!.reject(badSize());
    const error = await done;
    expect(error).toBeInstanceOf(UpstreamError);
    expect((error as UpstreamError).cause).toBeInstanceOf(CompileError);
    await turn();
    await turn();
    expect(told).toEqual([]);
    device.stream.fill(x, 1);
  });

  test('because the device ended is not a separate failure', async () => {
    const { channel, device, module } = made();
    const told: MillraceError[] = [];
    device.core.errors.add({ next: (error) => told.push(error) });
    const count = module.global(device, 'count', i32, 1);
    channel.completeAll();
    channel.variables.get(count.storage.handle)!.reject(new DeviceLostError('ERR_MILLRACE_LOST', 'Device cpu:0 is closed.', 'closed'));
    for (let n = 0; n < 5; n++) await turn();
    expect(told).toEqual([]);
  });

  test('that was not used is reported once, and a new request looks for it again', async () => {
    const { channel, device, module, add, x } = made();
    const told: MillraceError[] = [];
    device.core.errors.add({ next: (error) => told.push(error) });
    const count = module.global(device, 'count', i32, 1);
    channel.completeAll();
    channel.variables.get(count.storage.handle)!.reject(badSize());
    await vi.waitFor(() => expect(told).toHaveLength(1));
    expect(told[0]).toBeInstanceOf(CompileError);
    device.stream.launch(add, one, { x });
    expect(entriesOf(channel.records.at(-1)!)).toHaveLength(1);
    expect(module.global(device, 'count', i32, 1).storage).not.toBe(count.storage);
    expect(channel.variables.size).toBe(2);
  });
});
