import { firstValueFrom, from, lastValueFrom, map, of, Subject, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import { ArgumentError, LimitError, StateError } from '../../../src/core/base/errors.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { cpuStage, cpuTasks, download, launch, overlap, upload, type CpuPool } from '../../../src/reactive/index.js';
import { fixture } from '../core/fake-channel.js';
import { deferred, settleAll, type Deferred } from './fakes.js';

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

/** A device whose operations complete when they are submitted. */
function prompt() {
  const made = fixture();
  const { channel } = made;
  const submit = channel.submit.bind(channel);
  channel.submit = (bytes) => {
    const ticket = submit(bytes);
    if (ticket > 0) channel.complete(channel.records.at(-1)!.stream, ticket);
    return ticket;
  };
  const count = (opcode: string): number => channel.opcodes().filter((other) => other === opcode).length;
  return { ...made, count };
}

describe('upload, launch, download', () => {
  it('give every value of one item a separate array', async () => {
    const { device, count } = prompt();
    const seen: DeviceArray[][] = [];
    const run = overlap(device, [1, 2], { depth: 1 }, (item, lane) =>
      from([item, item * 10]).pipe(
        map((value) => new Float32Array([value])),
        upload(lane),
        toArray(),
        map((arrays) => seen.push(arrays)),
      ),
    );
    for await (const _ of run);
    expect(new Set(seen.flat()).size).toBe(4);
    expect(seen.flat().every(({ isDisposed }) => isDisposed)).toBe(true);
    expect([count('ALLOC'), count('FREE')]).toEqual([2, 2]);
  });

  it('make new arrays on a stream, in the requested shape, which the first download disposes', async () => {
    const { device } = prompt();
    const { stream } = device;
    const uploaded = await lastValueFrom(of(new Float32Array(6), new Float32Array(6)).pipe(upload(stream, { shape: [2, 3] }), toArray()));
    expect(uploaded.map((array) => array.shape)).toEqual([
      [2, 3],
      [2, 3],
    ]);
    const result = await firstValueFrom(of(uploaded[0]!).pipe(download(stream)));
    expect(result).toEqual(new Float32Array(6));
    expect(uploaded.map(({ isDisposed }) => isDisposed)).toEqual([true, false]);
    const own = device.zeros(4);
    await firstValueFrom(of(own).pipe(download(stream)));
    expect(own.isDisposed).toBe(false);
  });

  it('return a pinned array with pinned: true', async () => {
    const { device } = prompt();
    const pinned = await firstValueFrom(of(device.zeros([2, 3])).pipe(download(device.stream, { pinned: true })));
    expect([pinned.shape, pinned.isDisposed]).toEqual([[2, 3], false]);
  });

  it('leak nothing when the copy is refused', async () => {
    const { device, channel, count } = prompt();
    const submit = channel.submit.bind(channel);
    channel.submit = (bytes) => {
      // The allocation is accepted, the next record is refused, and then the free is accepted.
      channel.submit = (refused) => {
        channel.submit = submit;
        return refused > 0 ? -Status.LIMIT : 0;
      };
      return submit(bytes);
    };
    await expect(lastValueFrom(of(new Float32Array(6)).pipe(upload(device.stream)))).rejects.toThrow(LimitError);
    expect([count('ALLOC'), count('FREE')]).toEqual([1, 1]);
  });

  it('name what they got in place of a device array, and of the function that returns the arguments', async () => {
    const { device } = prompt();
    const stream = device.createStream();
    const mistaken = of<DeviceArray>(new Float32Array(2) as never).pipe(download(stream));
    await expect(lastValueFrom(mistaken)).rejects.toThrow('download takes device arrays, not Float32Array: upload it first.');
    const noShape = (): unknown => launch(stream, {} as never, {} as never, undefined as never);
    expect(noShape).toThrow(ArgumentError);
    expect(noShape).toThrow('args (undefined) is not a function');
  });

  it('do not make an operation the result of a stage, which would not have waited for it', async () => {
    const { device } = prompt();
    const run = overlap(device, [1], {}, async (n, lane) => lane.stream.fill(lane.empty(4), n));
    await expect(lastValueFrom(run)).rejects.toThrow('The result of the stage is an operation (fill) that nothing has awaited');
  });

  it('refuse a shape of another number of elements, and an array that an earlier download has disposed', async () => {
    const { device } = prompt();
    const { stream } = device;
    await expect(lastValueFrom(of(new Float32Array(3)).pipe(upload(stream, { shape: [2, 2] })))).rejects.toThrow(ArgumentError);
    const array = await lastValueFrom(of(new Float32Array(3)).pipe(upload(stream)));
    const download$ = of(array).pipe(download(stream));
    expect(await lastValueFrom(download$)).toEqual(new Float32Array(3));
    await expect(lastValueFrom(download$)).rejects.toThrow(StateError);
  });

  it('refuse a value without an element type', async () => {
    const { device } = fixture();
    const bad = new DataView(new ArrayBuffer(8)) as unknown as Float32Array;
    await expect(lastValueFrom(of(bad).pipe(upload(device.createStream())))).rejects.toThrow(
      'upload takes typed arrays and pinned arrays, not',
    );
  });
});

describe('cpuStage', () => {
  it('runs as many tasks at a time as the pool has threads, or `concurrency`, and keeps their order by default', async () => {
    const { pool, calls } = fakePool();
    const tasks = cpuTasks<Stages>(pool);
    const one = lastValueFrom(
      from([1, 2]).pipe(
        cpuStage(tasks, 'double', (value) => new Float32Array([value])),
        toArray(),
      ),
    );
    expect(calls.length).toBe(1);
    calls[0]?.work.resolve([1]);
    await settleAll();
    expect(calls.length).toBe(2);
    calls[1]?.work.resolve([2]);
    expect(await one).toEqual([[1], [2]]);
    const stage = (opts?: { readonly concurrency?: number; readonly ordered?: boolean }, threads?: number): Promise<unknown[]> =>
      lastValueFrom(
        from([3, 4, 5]).pipe(
          cpuStage(cpuTasks<Stages>({ ...pool, ...(threads && { threads }) }), 'double', (value) => new Float32Array([value]), opts),
          toArray(),
        ),
      );
    for (const [opts, threads, expected] of [
      [{ concurrency: 2 }, undefined, [3, 4, 5]],
      [{}, 2, [3, 4, 5]],
      [{ ordered: false }, 2, [4, 3, 5]],
    ] as const) {
      calls.length = 0;
      const results = stage(opts, threads);
      expect(calls.length).toBe(2);
      calls[1]?.work.resolve([4]);
      await settleAll();
      calls[0]?.work.resolve([3]);
      await settleAll();
      expect(calls.length).toBe(3);
      calls[2]?.work.resolve([5]);
      expect(await results).toEqual(expected.map((value) => [value]));
    }
  });

  it('fails with its task, and aborts it when the subscriber leaves', async () => {
    const { pool, calls } = fakePool();
    const tasks = cpuTasks<Stages>(pool);
    const failed = lastValueFrom(of('why').pipe(cpuStage(tasks, 'fail', (reason) => reason)));
    calls[0]?.work.reject(new Error('bad task'));
    await expect(failed).rejects.toThrow('bad task');
    const left = new Subject<string>();
    const subscription = left.pipe(cpuStage(tasks, 'fail', (reason) => reason)).subscribe();
    left.next('never mind');
    expect(calls[1]?.signal?.aborted).toBe(false);
    subscription.unsubscribe();
    expect(calls[1]?.signal?.aborted).toBe(true);
  });

  it('has types of the functions of a module and of nothing else in it', () => {
    const tasks = cpuTasks<Stages>(fakePool().pool);
    // @ts-expect-error version is no function
    const version = (): unknown => tasks.run('version', undefined);
    // @ts-expect-error double takes a Float32Array
    const wrongArgument = (): unknown => tasks.run('double', 'text');
    const right = (): Promise<number[]> => tasks.run('double', new Float32Array(1));
    expect([version, wrongArgument, right].length).toBe(3);
  });
});
