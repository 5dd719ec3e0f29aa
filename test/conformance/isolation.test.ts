// A device in a process of its own. The project `isolated` runs the chapters on such a device; this file has what is only true of it.
import { readdirSync, readFileSync } from 'node:fs';
import { CPU_DEVICES } from '../support/two-cpu-devices.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ArgumentError, cudaKernel, type Device, f32, inout, openDevice, StateError, UnsupportedError } from 'millrace';
import { linesOf, runProgram } from '../process/child.js';

const ONES = '1 1 1 1 1 1 1 1';
const TWO = { MILLRACE_CPU_DEVICES: String(CPU_DEVICES) };
const add = cudaKernel('add', { x: inout(f32) }, 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1; }');

/** Resolves when there is no such process. Long enough for a busy machine. */
async function endOf(pid: number): Promise<boolean> {
  for (let look = 0; look < 400; look++) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

const processOf = (stdout: string): number => Number(/^process (\d+)$/m.exec(stdout)?.[1]);

describe('beside a device of this process', () => {
  let apart: Device;
  let here: Device;
  beforeAll(async () => {
    [apart, here] = await Promise.all([openDevice('cpu:0', { isolation: 'process' }), openDevice('cpu:1')]);
  });
  afterAll(() => Promise.all([apart.close(), here.close()]));

  test('S630 a device is open with one isolation', async () => {
    await expect(openDevice('cpu:0', { isolation: 'thread' })).rejects.toThrow(StateError);
    await expect(openDevice('cpu:1', { isolation: 'process' })).rejects.toThrow(StateError);
    await expect(openDevice('cpu:1', { isolation: 'none' as never })).rejects.toThrow("neither 'thread' nor 'process'");
    await using again = await openDevice('cpu:0', { isolation: 'process' });
    expect(again.isSameDevice(apart)).toBe(true);
  });

  test('S630 arrays of every size go to it and come back', async () => {
    // Parts of the arena, buffers of their own, borrowed and transferred memory, and buffers that the device lends.
    for (const length of [1, 1000, 100_000, 3_000_000]) {
      const values = Float32Array.from({ length }, (_, at) => at % 1000);
      const shared = new Float32Array(new SharedArrayBuffer(4 * length));
      shared.set(values);
      const transferred = values.slice();
      using x = apart.from(values);
      using y = apart.from(shared);
      using z = apart.empty(length, 'f32');
      const copied = apart.stream.copy(z, transferred, { transfer: true });
      using pinned = apart.pinned(length, 'f32');
      await apart.stream.copy(pinned, x).done;
      await copied.done;
      expect(transferred.length).toBe(0);
      for (const read of [await x.read(), await y.read(), await z.read(), pinned.data]) {
        expect(Buffer.from(read.buffer, read.byteOffset, read.byteLength).equals(Buffer.from(values.buffer))).toBe(true);
      }
    }
  });

  test('S633 what needs an address, a handle or another device is refused at the call', async () => {
    const x = apart.zeros(8, 'f32');
    const y = here.zeros(8, 'f32');
    const shared = new Float32Array(new SharedArrayBuffer(32));
    const calls: readonly (() => unknown)[] = [
      () => x.nativePointer,
      () => apart.stream.nativeHandle,
      () => apart.stream.external({ reads: { x } }, () => undefined),
      () => apart.wrapStream(1n),
      () => apart.pin(shared),
      () => apart.share(),
      () => x.share(),
      () => here.stream.copy(y, x),
      () => apart.stream.copy(y, x),
      () => apart.stream.copy(x, y),
      () => here.stream.copy(y, apart.pinned(8, 'f32')),
      () => here.stream.launch(add, { grid: 1, block: 8 }, { x: x as never }),
      () => apart.stream.launch(add, { grid: 1, block: 8 }, { x: here.pinned(8, 'f32') as never }),
      () => here.peers.grant(apart),
      () => apart.peers.grant(here),
    ];
    for (const call of calls) {
      const refused = await new Promise((resolve) => resolve(call())).catch((error: unknown) => error);
      expect(refused, String(call)).toBeInstanceOf(UnsupportedError);
      expect((refused as UnsupportedError).capability, String(call)).toMatch(/^isolation$|^wrapStream$/);
      expect((refused as UnsupportedError).message, String(call)).toMatch(/\. (?:Open it without|Go through memory)|wrap streams/);
    }
  });

  test('S633 a wait for a stream or an event of the other device is refused, whether that has come so far or not', async () => {
    for (const [waiting, awaited] of [
      [apart, here],
      [here, apart],
    ] as const) {
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      const held = awaited.stream.hold(() => released, { timeoutMs: 60_000 });
      const event = awaited.stream.record();
      const refused = (): void => {
        for (const wait of [() => waiting.stream.waitEvent(event), () => waiting.stream.waitStream(awaited.stream)])
          expect(wait).toThrow(/\(isolation 'process'\)\. Await that work in JavaScript/);
      };
      refused();
      release();
      await Promise.all([held.done, event.done]);
      refused();
      await waiting.synchronize();
    }
  });

  test('S633 a copy between the devices goes through an ordinary array', async () => {
    const x = apart.from(new Float32Array([1, 2, 3]));
    const y = here.zeros(3, 'f32');
    await here.stream.copy(y, await x.read()).done;
    expect([...(await y.read())]).toEqual([1, 2, 3]);
  });
});

const spin = cudaKernel('spin', { x: inout(f32) }, 'extern "C" __global__ void spin(float* x) { while (*(volatile float*)x == 0) { } }');
const ONE = { grid: 1, block: 1 };

describe('work that does not end', () => {
  test('S634 a kernel that does not end within launchTimeoutMs loses the device, which opens again', async () => {
    const device = await openDevice('cpu:0', { isolation: 'process', launchTimeoutMs: 200 });
    await using other = await openDevice('cpu:1');
    const x = device.zeros(1, 'f32');
    const stream = device.createStream({ label: 'spinning' });
    const lost = { name: 'DeviceLostError', reason: 'hung', restartNeeds: 'reopen' };
    const launch = stream.launch(spin, ONE, { x });
    await expect(launch.done).rejects.toMatchObject(lost);
    await expect(x.read()).rejects.toMatchObject(lost);
    await expect(device.lost).resolves.toMatchObject({ ...lost, stream: 'spinning', operation: { kind: 'launch', label: 'spin' } });
    expect((await device.lost).message).toContain('launch spin on stream spinning did not end within 200 ms');
    using y = other.ones(8, 'f32');
    expect([...(await y.read())]).toEqual(Array(8).fill(1));
    await using again = await openDevice('cpu:0', { isolation: 'process', launchTimeoutMs: 200 });
    using z = again.ones(8, 'f32');
    expect([...(await z.read())]).toEqual(Array(8).fill(1));
  });

  test('S634 what has not begun, and work that goes on, is not ended', async () => {
    await using device = await openDevice('cpu:0', { isolation: 'process', launchTimeoutMs: 250 });
    using x = device.ones(8, 'f32');
    const held = device.createStream();
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const hold = held.hold(() => released, { timeoutMs: 60_000 });
    const waiting = device.createStream();
    waiting.waitStream(held);
    const behind = waiting.launch(add, { grid: 1, block: 8 }, { x });
    using y = device.zeros(8, 'f32');
    let launches = 0;
    for (const end = performance.now() + 1000; performance.now() < end; launches++) {
      await device.stream.launch(add, { grid: 1, block: 8 }, { x: y }).done;
    }
    release();
    await Promise.all([hold.done, behind.done]);
    expect([...(await y.read())]).toEqual(Array(8).fill(launches));
    expect([...(await x.read())]).toEqual(Array(8).fill(2));
  });

  test('S634 the option is for a process of its own', async () => {
    for (const launchTimeoutMs of [0, 1.5, 2 ** 31]) {
      await expect(openDevice('cpu:0', { isolation: 'process', launchTimeoutMs })).rejects.toThrow(ArgumentError);
    }
    await expect(openDevice('cpu:0', { launchTimeoutMs: 100 })).rejects.toThrow("needs isolation: 'process'");
  });

  test('S631 the error names the operation that had not ended', async () => {
    const device = await openDevice('cpu:0', { isolation: 'process' });
    const text = 'extern "C" void abort(); extern "C" __global__ void aborts(float* x) { abort(); }';
    const launch = device.stream.launch(cudaKernel('aborts', { x: inout(f32) }, text), ONE, { x: device.zeros(1, 'f32') });
    const error = await launch.done.catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'DeviceLostError', reason: 'fault', operation: { label: 'aborts' } });
    expect((error as Error).message).toMatch(
      /was ended by SIGABRT, before launch aborts on stream \S+ had ended; openDevice gives a new one/,
    );
    await device.close();
  }, 60_000);

  for (const reader of ['nobody', 'done', 'lost'] as const) {
    test(`S608 a loss that ends operations reaches errors$ once, if nothing else tells it: read by ${reader}`, async () => {
      const device = await openDevice('cpu:0', { isolation: 'process' });
      const seen: Error[] = [];
      const completed = new Promise<void>((complete) => {
        device.errors$.subscribe({ next: (error) => void seen.push(error), complete });
      });
      const text = 'extern "C" void abort(); extern "C" __global__ void ends(float* x) { abort(); }';
      const x = device.zeros(1, 'f32');
      const launch = device.stream.launch(cudaKernel('ends', { x: inout(f32) }, text), ONE, { x });
      device.stream.fill(x, 1);
      if (reader === 'done') await expect(launch.done).rejects.toMatchObject({ name: 'DeviceLostError' });
      if (reader === 'lost') await device.lost;
      await completed;
      const told = { name: 'DeviceLostError', reason: 'fault', operation: { label: 'ends' } };
      expect(seen).toMatchObject(reader === 'nobody' ? [told] : []);
      await device.close();
    }, 60_000);
  }

  test('S632 destroy ends the process of a kernel that does not end', async () => {
    const device = await openDevice('cpu:0', { isolation: 'process' });
    const launch = device.stream.launch(spin, ONE, { x: device.zeros(1, 'f32') });
    const done = expect(launch.done).rejects.toMatchObject({ name: 'DeviceLostError', reason: 'closed' });
    await device.destroy();
    await done;
    expect(device.state).toBe('closed');
  }, 60_000);
});

/** The processes of devices that this one has started. */
function deviceProcesses(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ');
        return Number(parent) === process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('device-process.cjs');
      } catch {
        return false; // It has ended meanwhile.
      }
    });
}

/** Resolves when no thread of the process runs any more. */
async function stop(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  const stateOf = (task: string): string => readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8').replace(/.*\) /, '')[0]!;
  while (!readdirSync(`/proc/${pid}/task`).every((task) => stateOf(task) === 'T')) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('a process that is stopped', () => {
  test('S634 within launchTimeoutMs, and a second at least, its device is lost; without it, destroy ends the process', async () => {
    const before = deviceProcesses();
    const watched = await openDevice('cpu:0', { isolation: 'process', launchTimeoutMs: 300 });
    const unwatched = await openDevice('cpu:1', { isolation: 'process' });
    using x = watched.zeros(1, 'f32');
    await watched.synchronize();
    const stopped = deviceProcesses().filter((one) => !before.includes(one));
    expect(stopped).toHaveLength(2);
    for (const one of stopped) await stop(one);
    const start = performance.now();
    const lost = { name: 'DeviceLostError', reason: 'hung', restartNeeds: 'reopen' };
    // Nothing that is awaited needs an answer of the process.
    await expect(watched.stream.fill(x, 1).done).rejects.toMatchObject(lost);
    expect(performance.now() - start).toBeLessThan(4000);
    const destroyed = unwatched.destroy();
    await using again = await openDevice('cpu:0', { isolation: 'process' });
    using y = again.ones(8, 'f32');
    expect((await y.read()).join(' ')).toBe(ONES);
    // The event loop goes on while destroy waits for its 5 s.
    let longest = 0;
    for (let last = performance.now(), isOver = false; !isOver; ) {
      isOver = await Promise.race([destroyed.then(() => true), new Promise<false>((resolve) => setTimeout(resolve, 20, false))]);
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }
    expect(longest).toBeLessThan(4000);
    expect(unwatched.state).toBe('closed');
    for (const one of stopped) expect(await endOf(one)).toBe(true);
  }, 60_000);

  test('S634 close of a device whose process is stopped resolves after launchTimeoutMs, and a second at least', async () => {
    const before = deviceProcesses();
    const device = await openDevice('cpu:0', { isolation: 'process', launchTimeoutMs: 300 });
    const [pid] = deviceProcesses().filter((one) => !before.includes(one));
    await stop(pid!);
    const start = performance.now();
    await device.close();
    expect(performance.now() - start).toBeLessThan(4000);
    expect(await endOf(pid!)).toBe(true);
  }, 60_000);

  test('S634 a device whose process goes on in time is not lost', async () => {
    const before = deviceProcesses();
    await using device = await openDevice('cpu:0', { isolation: 'process', launchTimeoutMs: 300 });
    const [pid] = deviceProcesses().filter((one) => !before.includes(one));
    await stop(pid!);
    await new Promise((resolve) => setTimeout(resolve, 500));
    process.kill(pid!, 'SIGCONT');
    using x = device.ones(8, 'f32');
    expect((await x.read()).join(' ')).toBe(ONES);
  }, 60_000);
});

describe('ends', () => {
  test('S632 closing the device ends its process', async () => {
    const ending = await runProgram('isolation', ['close']);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual([ONES, 'closed NaN']);
  });

  test('S632 the process ends with an owner whose event loop has nothing to do', async () => {
    const ending = await runProgram('isolation', ['leave']);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(await endOf(processOf(ending.stdout))).toBe(true);
  });

  test('S632 the process ends with an owner that exits while a kernel runs', async () => {
    const ending = await runProgram('isolation', ['exit']);
    expect(ending).toMatchObject({ code: 3, signal: null, stderr: '' });
    expect(await endOf(processOf(ending.stdout))).toBe(true);
  });

  test('S632 the process ends with an owner that is killed while a kernel runs', async () => {
    const ending = await runProgram('isolation', ['wait'], { kill: { when: 'running', signal: 'SIGKILL' } });
    expect(ending).toMatchObject({ signal: 'SIGKILL' });
    expect(await endOf(processOf(ending.stdout))).toBe(true);
  });

  test('S632 the process ends with a worker that is terminated', async () => {
    const ending = await runProgram('isolation', ['worker']);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(linesOf(ending)).toEqual([ONES, 'terminated NaN', 'zombies 0']);
  });

  test('S632 destroy settles although nothing else keeps the event loop', async () => {
    const ending = await runProgram('isolation', ['destroy']);
    expect(ending).toMatchObject({ code: 0, signal: null });
    expect(linesOf(ending)).toEqual(['destroyed NaN']);
  }, 60_000);

  const loses = async (which: string, reason: string): Promise<void> => {
    const ending = await runProgram('isolation', [which], { env: TWO });
    expect(ending).toMatchObject({ code: 0, signal: null });
    const lost = Array(4).fill(`DeviceLostError ${reason} reopen`);
    const call = which.startsWith('SIG') ? [`call DeviceLostError ${reason}`] : [];
    expect(linesOf(ending)).toEqual([ONES, ...call, ...lost, 'lost', 'other 2 2 2 2 2 2 2 2', ONES, 'closed NaN']);
  };

  test('S631 a segmentation fault ends the process of the device alone', () => loses('SIGSEGV', 'fault'));
  test('S631 the system kills the process of the device alone', () => loses('SIGKILL', 'worker-exit'));
  test('S631 a kernel that aborts ends the process of its device alone', () => loses('abort', 'fault'));
  test('S631 a kernel that exits ends the process of its device alone', () => loses('exits', 'worker-exit'));
  test('S631 a kernel that writes into the memory of the allocator ends the process of its device alone', () => loses('heap', 'fault'));
  test('S631 an address without memory loses the device, which opens again', () => loses('address', 'fault'));
});
