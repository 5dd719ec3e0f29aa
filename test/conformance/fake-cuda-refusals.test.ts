// A driver call that fails once: the program's result is right, or an error says that it is not there. Every call of a small
// program fails in turn.
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { afterAll, expect, test } from 'vitest';
import {
  type Device,
  DeviceLostError,
  elapsed,
  f32,
  inout,
  input,
  InternalError,
  kernel,
  MillraceError,
  openDevice,
  output,
  type Stream,
} from 'millrace';
import { IS_LONG } from '../support/long.js';
import { CPU_SUPPORTS, type Target } from '../support/target.js';
import { hold } from '../support/latch.js';
import { eventually, rejectionOf } from '../support/wait.js';

const DEVICES = 64;
const control = path.join(os.tmpdir(), `millrace-refusals-${process.pid}`);
const log = `${control}.log`;
writeFileSync(control, '');
process.env['MILLRACE_FAKE_CUDA_FAIL'] = `@${control}`;
process.env['MILLRACE_FAKE_CUDA_LOG'] = log;
process.env['MILLRACE_FAKE_CUDA_DEVICES'] = String(DEVICES);
afterAll(() => {
  rmSync(control);
  rmSync(log, { force: true });
});

const LENGTH = 256;
const plusOne = kernel('plus_one', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i]! + 1;
});
const doubled = kernel('doubled', { y: inout(f32) }, ({ y }, { i }) => {
  y[i] = 2 * y[i]!;
});

const EXPECTED = ['y 8', 'pinned 8', 'there 9', 'x 5', 'graph 8', 'again 10', 'share 18'];

/** What the program reads, or that it got an error instead. Rejects with the error if a device was lost. */
async function run(device: Device, other: Device): Promise<string[]> {
  const seen: string[] = [];
  const note = async (name: string, read: () => Promise<Iterable<number>>): Promise<void> => {
    try {
      seen.push(`${name} ${[...new Set(await read())].join()}`);
    } catch (error) {
      if (!(error instanceof MillraceError) || error instanceof InternalError || error instanceof DeviceLostError) throw error;
      seen.push(`${name} failed`);
    }
  };
  await using one = device.createStream({ ordering: 'explicit' });
  await using two = device.createStream({ timing: true });
  using x = one.zeros(LENGTH);
  using y = one.zeros(LENGTH);
  using there = other.zeros(LENGTH);
  using further = other.zeros(LENGTH);
  using pinned = device.pinned(LENGTH);
  one.fill(x, 3);
  one.launch(plusOne, LENGTH, { x, y });
  const start = one.record(device.createEvent({ timing: true }));
  two.waitStream(one);
  two.launch(doubled, LENGTH, { y });
  const end = two.record(device.createEvent({ timing: true }));
  one.waitEvent(end);
  const copied = one.copy(pinned, y);
  await note('y', () => y.read());
  await note('pinned', async () => {
    await copied.done;
    return pinned.data;
  });
  await elapsed(start, end).catch(() => undefined);
  other.stream.copy(there, y);
  other.stream.launch(plusOne, LENGTH, { x: there, y: further });
  await note('there', () => further.read());
  one.copy(x, new Float32Array(LENGTH).fill(4));
  one.fill(x.view([0, LENGTH, 2]), 5);
  one.fill(x.view([1, LENGTH, 2]), 5);
  await note('x', () => x.read());
  const graph = one.capture({ value: f32 }, (stream, { value }) => {
    stream.fill(x, value);
    stream.launch(plusOne, LENGTH, { x, y });
  });
  two.launch(graph, { value: 7 });
  await note('graph', () => y.read());
  two.launch(graph, { value: 9 });
  await note('again', () => y.read());
  await note('share', async () => {
    const [partition] = await device.partition([1]);
    device.createStream({ partition }).launch(doubled, LENGTH, { y: x });
    await partition.close();
    return x.read();
  });
  await graph.close();
  start[Symbol.dispose]();
  end[Symbol.dispose]();
  return seen;
}

/** The driver's calls since the last time, without the watching of unfinished work. */
function takeCalls(): string[] {
  const lines = readFileSync(log, 'utf8').split('\n');
  truncateSync(log);
  return lines.filter((line) => line !== '' && !/ cu(?:Stream|Event)Query /.test(line));
}

function nameRefused(calls: readonly string[]): string | undefined {
  return /(cu\w+) .*fails=/.exec(calls.find((call) => call.includes('fails=')) ?? '')?.[1];
}

/** Opens pairs of devices; a lost one is never opened again. */
class Pairs {
  #next = 0;
  async open(): Promise<{ device: Device; other: Device }> {
    const device = await openDevice(`cuda:${this.#next++}`);
    const other = await openDevice(`cuda:${this.#next++}`);
    for (const each of [device, other]) {
      each.errors$.subscribe();
      await each.compile(plusOne, doubled);
    }
    return { device, other };
  }
}
const pairs = new Pairs();

/** Fails the n-th call of a function, `*` for any, once. */
function fail(specification: string): void {
  writeFileSync(control, specification);
}

const TARGET: Target = { name: 'fake-cuda', spec: 'cuda:0', supports: CPU_SUPPORTS, open: () => openDevice('cuda:0') };

test('S218 what follows a wait that the driver refuses runs after it', { timeout: 60_000 }, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const { device, other } = await pairs.open();
  const waits: Record<string, (waiting: Stream, awaited: Stream) => void> = {
    stream: (waiting, awaited) => void waiting.waitStream(awaited),
    event: (waiting, awaited) => void waiting.waitEvent(awaited.record()),
    none: () => undefined,
  };
  for (const [name, wait] of Object.entries(waits)) {
    for (const on of [device, other]) {
      await using awaited = device.createStream({ ordering: name === 'none' ? 'tracked' : 'explicit' });
      await using waiting = on.createStream({ ordering: name === 'none' ? 'tracked' : 'explicit' });
      using x = awaited.zeros(LENGTH);
      using y = on.zeros(LENGTH);
      await Promise.all([device.synchronize(), on.synchronize()]);
      const latch = await hold(TARGET, awaited);
      await latch.reached.done;
      takeCalls();
      fail('cuStreamWaitEvent:1:304');
      awaited.fill(x, 5);
      wait(waiting, awaited);
      const copy = waiting.copy(y, x);
      await eventually('the driver refused', () => readFileSync(log, 'utf8').includes('fails=304'));
      fail('');
      await latch[Symbol.asyncDispose]();
      await copy.done;
      expect([name, new Set(await y.read())]).toEqual([name, new Set([5])]);
    }
  }
  await Promise.all([device.close(), other.close()]);
});

test('S615 a call of the driver that fails once makes no result wrong', { timeout: 120_000 }, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const { device, other } = await pairs.open();
  expect(await run(device, other)).toEqual(EXPECTED);
  takeCalls();
  const refused = new Set<string>();
  for (let n = 1, isOver = false; !isOver; n += IS_LONG ? 1 : 2) {
    // The other one is said to be out of memory, for which streams wait.
    fail(`*:${n}:${n % 4 < 2 ? 304 : 2}`);
    const seen = await run(device, other);
    fail('');
    const calls = takeCalls();
    const refusal = nameRefused(calls);
    if (refusal !== undefined) refused.add(refusal);
    isOver = calls.length < n;
    const allowed = EXPECTED.map((right) => expect.toBeOneOf([right, `${right.split(' ')[0]} failed`]));
    expect([refusal, device.state, other.state, ...seen]).toEqual([refusal, 'open', 'open', ...allowed]);
  }
  // Every second call is refused, so it depends on their number which functions are.
  expect(refused.size).toBeGreaterThan(10);
  expect(await run(device, other)).toEqual(EXPECTED);
  await Promise.all([device.close(), other.close()]);
});

for (const isolation of ['thread', 'process'] as const) {
  test(`S615 an error has the driver's own explanation, in a device of a ${isolation}`, { timeout: 60_000 }, async (context) => {
    if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
    process.env['MILLRACE_FAKE_CUDA_SAYS'] = 'no luck\nask again';
    const device = await openDevice('cuda:5', { isolation });
    await device.ones(LENGTH).read();
    fail('cuMemsetD32Async:1:1');
    const error = await rejectionOf(device.full(LENGTH, 2).read());
    fail('');
    delete process.env['MILLRACE_FAKE_CUDA_SAYS'];
    const { cause = error } = error as Error;
    expect((cause as Error).message).toContain('; the driver: no luck; ask again (CUDA_ERROR_INVALID_VALUE)');
    await device.close();
  });
}

test('S823 a driver without green contexts refuses partitions, and the device works on', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  await using device = await openDevice('cuda:6');
  for (const missing of ['cuDeviceGetDevResource:1:500', 'cuGreenCtxCreate:1:801']) {
    fail(missing);
    const error = await rejectionOf(device.partition([1]));
    expect(error).toMatchObject({ name: 'UnsupportedError', capability: 'partitions' });
    expect((error as Error).message).toContain('CUDA 12.5');
  }
  fail('');
  const [partition] = await device.partition([1]);
  await partition.close();
});

test('S826 kernels captured on a stream of a partition are nodes of its green context, and others are not', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  await using device = await openDevice('cuda:6');
  const [partition] = await device.partition([1]);
  using y = device.ones(LENGTH);
  const stream = device.createStream({ partition });
  const graphs = [stream, device.stream].map((each) => each.capture((s) => s.launch(doubled, LENGTH, { y })));
  takeCalls();
  for (const graph of graphs) await device.stream.launch(graph).done;
  const nodes = takeCalls().filter((call) => call.includes('cuGraphAddKernelNode'));
  expect(nodes.map((call) => call.includes('multiprocessors=2'))).toEqual([true, false]);
  expect(await y.read()).toEqual(new Float32Array(LENGTH).fill(4));
  await partition.close();
});

test('S615 a device opens, or an error says why not', { timeout: 60_000 }, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  takeCalls();
  // Behind these calls the library loads its own kernels.
  for (let n = 1; n <= 13; n += IS_LONG ? 1 : 3) {
    fail(`*:${n}:304`);
    const opened = await openDevice(`cuda:${DEVICES - 1}`).catch((error: unknown) => error);
    fail('');
    const refusal = nameRefused(takeCalls());
    expect(refusal).toBeDefined();
    if (opened instanceof MillraceError) {
      // UNAVAILABLE: where the timeline cannot be page-locked.
      const code = refusal === 'cuMemHostRegister' ? 'ERR_MILLRACE_UNAVAILABLE' : 'ERR_MILLRACE_LAUNCH';
      expect([refusal, opened.code]).toEqual([refusal, code]);
      continue;
    }
    await using device = opened as Device;
    using x = device.ones(4);
    expect([refusal, await x.read()]).toEqual([refusal, new Float32Array([1, 1, 1, 1])]);
  }
});

test('S612 further devices open after others were lost, at addresses that the driver still has page-locked', {
  timeout: 60_000,
}, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  for (let n = 0; n < 3; n++) {
    const device = await openDevice(`cuda:${DEVICES - 2 - n}`);
    fail('cuMemsetD32Async:1:719');
    const error = await rejectionOf(device.full(LENGTH, 2).read());
    fail('');
    expect(error).toBeInstanceOf(DeviceLostError);
    await device.close();
  }
});
