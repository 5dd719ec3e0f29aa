// Calls with an option that does not exist, or with an AbortSignal in place of the options.
import { describe, expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import type { Device } from '../../../src/core/api/device.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { ArgumentError } from '../../../src/core/base/errors.js';
import { cpuTasks, download, overlap, upload } from '../../../src/reactive/index.js';
import { createCpuPool } from '../../../src/workers/cpu-pool.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { fixture, shiftKernel } from './fake-channel.js';

interface Made {
  readonly device: Device;
  readonly stream: Stream;
  readonly x: DeviceArray;
}

const WAIT = 'signal, timeoutMs';

/** By the call: the options that it has, and the call with others. `opts` is `never`, so that it fits every call. */
const CALLS: Record<string, readonly [known: string, call: (made: Made, opts: never) => unknown]> = {
  'device.createStream': ['priority, fullRange, label, ordering, partition, timing', ({ device }, opts) => device.createStream(opts)],
  'device.from': ['dtype, shape, transfer', ({ device }, opts) => device.from(new Float32Array(1), opts)],
  'device.synchronize': [WAIT, ({ device }, opts) => device.synchronize(opts)],
  'device.close': [WAIT, ({ device }, opts) => device.close(opts)],
  'stream.synchronize': [WAIT, ({ stream }, opts) => stream.synchronize(opts)],
  'stream.ready': [`${WAIT}, below`, ({ stream }, opts) => stream.ready(opts)],
  'stream.host': ['label, signal', ({ stream }, opts) => stream.host(() => undefined, opts)],
  'stream.hold': ['label, signal, timeoutMs', ({ stream }, opts) => stream.hold(() => undefined, opts)],
  'operation.synchronize': [WAIT, ({ stream, x }, opts) => stream.fill(x, 1).synchronize(opts)],
  'event.synchronize': [WAIT, ({ stream }, opts) => stream.record().synchronize(opts)],
  'array.read': [`${WAIT}, into`, ({ x }, opts) => x.read(opts)],
  'array.toReadable': ['chunkBytes, signal', ({ x }, opts) => x.toReadable(opts)],
  'shape of a launch': [
    'threads, grid, block, sharedBytes, cooperative, label',
    ({ stream, x }, opts) => stream.launch(shiftKernel(inout(f32)), opts, { y: x as DeviceArray<'f32'> }),
  ],
  createCpuPool: ['threads', (_, opts) => createCpuPool('stages.js', opts)],
  'pool.run': ['name, signal', (_, opts) => createCpuPool('stages.js').run(1, opts)],
  'tasks.run': ['signal', (_, opts) => cpuTasks<{ one(): 1 }>(createCpuPool('stages.js')).run('one', undefined as never, opts)],
  download: ['pinned', ({ stream }, opts) => download(stream, opts)],
  upload: ['shape', ({ stream }, opts) => upload(stream, opts)],
  'onError of overlap': [
    'retry, delayMs, backoff, maxDelayMs, when, then',
    ({ device }, opts) => overlap(device, [1], { onError: opts }, async () => 1),
  ],
};

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error;
  }
}

describe.each(Object.entries(CALLS))('%s', (_, [known, call]) => {
  const made = (): Made => {
    const { device } = fixture();
    const stream = device.createStream();
    return { device, stream, x: stream.zeros(4) };
  };
  const options = known.includes(',') ? `the options are ${known}` : `the only option is ${known}`;

  test('refuses an option that does not exist, and names those that do', async () => {
    const error = await errorOf(() => call(made(), { zzzz: 10 } as never));
    expect(error).toBeInstanceOf(ArgumentError);
    expect((error as Error).message).toBe(`There is no option 'zzzz'; ${options}.`);
  });

  test('refuses null', async () => {
    expect(await errorOf(() => call(made(), null as never))).toMatchObject({
      name: 'ArgumentError',
      message: expect.stringContaining('null'),
    });
  });

  test('refuses another object in place of the options', async () => {
    for (const [name, of] of [
      ['Stream', ({ stream }: Made) => stream],
      ['DeviceArray', ({ x }: Made) => x],
      ['Float32Array', () => new Float32Array(1)],
    ] as const) {
      const its = made();
      const error = await errorOf(() => call(its, of(its) as never));
      expect(error).toBeInstanceOf(ArgumentError);
      expect((error as Error).message).toBe(`The options (${name}) are not an object with options; ${options}.`);
    }
  });

  test('refuses an AbortSignal in place of the options', async () => {
    const error = await errorOf(() => call(made(), new AbortController().signal as never));
    expect(error).toBeInstanceOf(ArgumentError);
    const cure = known.includes('signal') ? 'pass { signal }' : options;
    expect((error as Error).message).toBe(`The options are an AbortSignal: ${cure}.`);
  });
});
