import { firstValueFrom, from, lastValueFrom, map, of, Subject, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { DeviceArray } from '../../../src/core/faces/array.js';
import { input, type Kernel } from '../../../src/core/kernels/kernel.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { cpu$, cpuTasks, download$, launch$, overlap, upload$, type CpuPool } from '../../../src/reactive/index.js';
import { deferred, fakeDevice, settleAll, type Deferred, type FakeArray } from './fakes.js';

const params = { x: input(f32) };
const kernel = { name: 'k', params } as unknown as Kernel<typeof params>;

interface Stages {
  double(data: Float32Array): number[];
  fail(reason: string): Promise<never>;
  readonly version: string;
}

/** A pool of one function; `calls` are its open tasks. */
function fakePool(): {
  readonly pool: CpuPool;
  readonly calls: {
    readonly task: unknown;
    readonly name: string | undefined;
    readonly signal: AbortSignal | undefined;
    readonly work: Deferred<unknown>;
  }[];
} {
  const calls: ReturnType<typeof fakePool>['calls'] = [];
  const pool: CpuPool = {
    run: (task, opts) => {
      const work = deferred<unknown>();
      calls.push({ task, name: opts?.name, signal: opts?.signal, work });
      return work.promise;
    },
  };
  return { pool, calls };
}

describe('upload$, launch$, download$', () => {
  it('make a chain on a lane, whose arrays serve item after item', async () => {
    const { device, streams, arrays } = fakeDevice();
    const run = overlap(device, [1, 2, 3, 4], { depth: 1 }, (item, lane) =>
      of(new Float32Array(8).fill(item)).pipe(
        upload$(lane),
        launch$(
          lane,
          kernel,
          (x) => x.shape,
          (x) => ({ x }),
        ),
        download$(lane),
      ),
    );
    const sums: number[] = [];
    for await (const pinned of run) sums.push(pinned.data.reduce((sum, value) => sum + value, 0));
    expect(sums).toEqual([8, 16, 24, 32]);
    expect(arrays.length).toBe(2);
    expect(streams[0]?.log.slice(0, 3)).toEqual(['copy 8', 'launch k [8] x', 'copy 8']);
  });

  it('give every value of one item an array of its own', async () => {
    const { device, arrays } = fakeDevice();
    const run = overlap(device, [1, 2], { depth: 1 }, (item, lane) =>
      from([item, item * 10]).pipe(
        map((value) => new Float32Array([value])),
        upload$(lane),
      ),
    );
    const seen: number[][] = [];
    const iterator = run[Symbol.asyncIterator]();
    for (let at = 0; at < 2; at++) {
      const pair = [await iterator.next(), await iterator.next()].map((result) => result.value as unknown as FakeArray);
      seen.push(pair.map((array) => array.data[0] ?? -1));
    }
    await iterator.return?.();
    expect(seen).toEqual([
      [1, 10],
      [2, 20],
    ]);
    expect(arrays.length).toBe(2);
  });

  it('make fresh arrays on a stream, in the shape asked for, and leave them to the receiver', async () => {
    const { device, arrays } = fakeDevice();
    const stream = device.createStream();
    const uploaded = await lastValueFrom(of(new Float32Array(6), new Float32Array(6)).pipe(upload$(stream, { shape: [2, 3] }), toArray()));
    expect(uploaded.map((array) => array.shape)).toEqual([
      [2, 3],
      [2, 3],
    ]);
    const pinned = await firstValueFrom(of(uploaded[0] as DeviceArray<'f32'>).pipe(download$(stream)));
    expect(pinned.shape).toEqual([2, 3]);
    expect(arrays.some((array) => array.isDisposed)).toBe(false);
  });

  it('refuse what has no element type', async () => {
    const { device } = fakeDevice();
    const bad = new DataView(new ArrayBuffer(8)) as unknown as Float32Array;
    await expect(lastValueFrom(of(bad).pipe(upload$(device.createStream())))).rejects.toThrow(
      'upload$ takes typed arrays and pinned arrays.',
    );
  });
});

describe('cpu$', () => {
  it('hands over the very array, by the name of the task, and passes the result on', async () => {
    const { pool, calls } = fakePool();
    const data = new Float32Array(new SharedArrayBuffer(16));
    const result = firstValueFrom(of(data).pipe(cpu$(cpuTasks<Stages>(pool), 'double', (value) => value)));
    expect(calls[0]).toMatchObject({ name: 'double' });
    expect(calls[0]?.task).toBe(data);
    calls[0]?.work.resolve([2]);
    expect(await result).toEqual([2]);
  });

  it('runs one task at a time unless told otherwise', async () => {
    const { pool, calls } = fakePool();
    const tasks = cpuTasks<Stages>(pool);
    const one = lastValueFrom(
      from([1, 2]).pipe(
        cpu$(tasks, 'double', (value) => new Float32Array([value])),
        toArray(),
      ),
    );
    expect(calls.length).toBe(1);
    calls[0]?.work.resolve([1]);
    await settleAll();
    expect(calls.length).toBe(2);
    calls[1]?.work.resolve([2]);
    expect(await one).toEqual([[1], [2]]);
    const two = lastValueFrom(
      from([3, 4]).pipe(
        cpu$(tasks, 'double', (value) => new Float32Array([value]), { concurrency: 2 }),
        toArray(),
      ),
    );
    expect(calls.length).toBe(4);
    calls[3]?.work.resolve([4]);
    calls[2]?.work.resolve([3]);
    expect(await two).toEqual([[4], [3]]);
  });

  it('fails with its task, and aborts it when nobody listens any more', async () => {
    const { pool, calls } = fakePool();
    const tasks = cpuTasks<Stages>(pool);
    const failed = lastValueFrom(of('why').pipe(cpu$(tasks, 'fail', (reason) => reason)));
    calls[0]?.work.reject(new Error('bad task'));
    await expect(failed).rejects.toThrow('bad task');
    const left = new Subject<string>();
    const subscription = left.pipe(cpu$(tasks, 'fail', (reason) => reason)).subscribe();
    left.next('never mind');
    expect(calls[1]?.signal?.aborted).toBe(false);
    subscription.unsubscribe();
    expect(calls[1]?.signal?.aborted).toBe(true);
  });

  it('knows the tasks of a module and nothing else of it', () => {
    const tasks = cpuTasks<Stages>(fakePool().pool);
    // @ts-expect-error version is no function
    const version = (): unknown => tasks.run('version', undefined);
    // @ts-expect-error double takes a Float32Array
    const wrongArgument = (): unknown => tasks.run('double', 'text');
    const right = (): Promise<number[]> => tasks.run('double', new Float32Array(1));
    expect([version, wrongArgument, right].length).toBe(3);
  });
});
