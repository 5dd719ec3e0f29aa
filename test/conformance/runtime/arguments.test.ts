// Chapter 6, first half: bad input. One row per mistake: the class and the content of the message. The stream continues
// after each.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  elapsed,
  EventTimingError,
  StateError,
  UnsupportedError,
  type Device,
  type DeviceArray,
  type Kernel,
  type Stream,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

interface Scene {
  readonly device: Device;
  readonly stream: Stream;
  readonly x: DeviceArray<'u32'>;
  readonly floats: DeviceArray<'f32'>;
  readonly disposed: DeviceArray<'u32'>;
}
interface Mistake {
  readonly title: string;
  readonly call: (scene: Scene) => unknown;
  readonly error: typeof ArgumentError | typeof StateError;
  /** Parts of the message: the value and its limit. */
  readonly shows: (device: Device) => readonly (string | RegExp)[];
}

const block = (...size: [number, number?, number?]) => ({ grid: 1, block: size });
const launch =
  (shape: unknown, args?: unknown) =>
  ({ stream, x }: Scene) =>
    stream.launch(mixKernel as Kernel, shape as never, (args ?? { x, k: 0 }) as never);

const MISTAKES: readonly Mistake[] = [
  { title: 'a negative size', call: ({ device }) => device.zeros(-1), error: ArgumentError, shows: () => ['-1'] },
  { title: 'a fractional size', call: ({ device }) => device.empty([2, 1.5]), error: ArgumentError, shows: () => ['1.5'] },
  { title: 'a size that is not a number', call: ({ device }) => device.zeros('4' as never), error: ArgumentError, shows: () => ['4'] },
  { title: 'NaN as a size', call: ({ device }) => device.zeros(Number.NaN), error: ArgumentError, shows: () => ['NaN'] },
  { title: 'a size beyond exact integers', call: ({ device }) => device.zeros([2 ** 40, 2 ** 40]), error: ArgumentError, shows: () => [] },
  {
    title: "a byte length over the device's memory",
    call: ({ device }) => device.empty(device.info.totalMemoryBytes + 1, 'u8'),
    error: ArgumentError,
    shows: (device) => [String(device.info.totalMemoryBytes + 1), String(device.info.totalMemoryBytes)],
  },
  { title: 'an unknown element type', call: ({ device }) => device.zeros(4, 'f128' as never), error: ArgumentError, shows: () => ['f128'] },
  { title: 'an array as the stream of a clone', call: ({ x }) => x.clone(x as never), error: ArgumentError, shows: () => ['DeviceArray'] },
  { title: 'a negative pinned size', call: ({ device }) => device.pinned(-8), error: ArgumentError, shows: () => ['-8'] },
  {
    title: 'data that does not fit its shape',
    call: ({ device }) => device.from(new Float32Array(5), { shape: [2, 3] }),
    error: ArgumentError,
    shows: () => ['5', '6'],
  },
  {
    title: 'a fill value of the wrong kind',
    call: ({ stream, x }) => stream.fill(x, 'one' as never),
    error: ArgumentError,
    shows: () => ['one'],
  },
  {
    title: 'a fill value outside the element type',
    call: ({ stream, x }) => stream.fill(x, -1),
    error: ArgumentError,
    shows: () => ['-1', 'u32'],
  },
  {
    title: 'a disposed array to fill',
    call: ({ stream, disposed }) => stream.fill(disposed, 1),
    error: StateError,
    shows: () => [/disposed/i],
  },
  {
    title: 'a disposed array to copy from',
    call: ({ stream, x, disposed }) => stream.copy(x, disposed),
    error: StateError,
    shows: () => [/disposed/i],
  },
  {
    title: 'a disposed array to launch on',
    call: (scene) => launch(1, { x: scene.disposed, k: 0 })(scene),
    error: StateError,
    shows: () => [/disposed/i],
  },
  {
    title: 'an array of another element type',
    call: (scene) => launch(1, { x: scene.floats, k: 0 })(scene),
    error: ArgumentError,
    shows: () => ['f32', 'u32'],
  },
  {
    title: 'a value that is not a kernel',
    call: ({ stream, x }) => stream.launch({} as never, 1, { x } as never),
    error: ArgumentError,
    shows: () => [/kernel/i],
  },
  { title: 'a block of zero threads', call: launch(block(0)), error: ArgumentError, shows: () => ['0'] },
  {
    title: 'a block over the limit of the device',
    call: (scene) => launch(block(scene.device.info.maxThreadsPerBlock * 2))(scene),
    error: ArgumentError,
    shows: (device) => [String(device.info.maxThreadsPerBlock * 2), String(device.info.maxThreadsPerBlock), device.info.id],
  },
  {
    title: 'a block whose product is over the limit',
    call: (scene) => launch(block(scene.device.info.maxThreadsPerBlock / 2, 4))(scene),
    error: ArgumentError,
    shows: (device) => [String(device.info.maxThreadsPerBlock)],
  },
  { title: 'a fractional block', call: launch(block(1.5)), error: ArgumentError, shows: () => ['1.5'] },
  { title: 'a negative grid', call: launch({ grid: -2, block: 1 }), error: ArgumentError, shows: () => ['-2'] },
  { title: 'a negative number of threads', call: launch(-3), error: ArgumentError, shows: () => ['-3'] },
  {
    title: 'a value that is not an event',
    call: ({ stream }) => stream.waitEvent({} as never),
    error: ArgumentError,
    shows: () => [/event/i],
  },
  {
    title: 'a value that is not a stream',
    call: ({ stream }) => stream.waitStream({} as never),
    error: ArgumentError,
    shows: () => [/stream/i],
  },
  {
    title: 'a fractional priority',
    call: ({ device }) => device.createStream({ priority: 0.5 }),
    error: ArgumentError,
    shows: () => ['0.5'],
  },
  {
    title: 'an unknown ordering',
    call: ({ device }) => device.createStream({ ordering: 'loose' as never }),
    error: ArgumentError,
    shows: () => ['loose'],
  },
];

/** Mistakes, with the errors of other systems and of Millrace, and where the error appears. */
const MISUSES: readonly (readonly [title: string, call: (scene: Scene) => unknown, error: new (...args: never) => Error])[] = [
  ['a priority that is no number', ({ device }) => device.createStream({ priority: '0' as never }), ArgumentError],
  ['a priority that is NaN', ({ device }) => device.createStream({ priority: Number.NaN }), ArgumentError],
  ['an event for timing and for other processes', ({ device }) => device.createEvent({ timing: true, interprocess: true }), ArgumentError],
  ['an event with an option that does not exist', ({ device }) => device.createEvent({ external: true } as object), ArgumentError],
  ['a record with an option that does not exist', ({ stream }) => stream.record({ external: true } as object), ArgumentError],
  ['a time of events without one', ({ stream }) => elapsed(stream.record(), stream.record()), EventTimingError],
  [
    'a time of what was never recorded',
    ({ device }) => elapsed(device.createEvent({ timing: true }), device.createEvent({ timing: true })),
    EventTimingError,
  ],
  ['a handle of an event that is not for other processes', ({ stream }) => stream.record().ipcHandle(), StateError],
  ['a negative release threshold', ({ device }) => device.pool.setReleaseThreshold(-1), ArgumentError],
  ['trimming to a negative size', ({ device }) => device.pool.trim(-1), ArgumentError],
  ['access of what is no device', ({ device }) => device.peers.grant('gpu' as never), ArgumentError],
  ['a current stream that is none', ({ device }) => device.setCurrentStream(device as never), ArgumentError],
  ['a run of no function', ({ stream }) => stream.run(undefined as never), ArgumentError],
  ['a hold without a limit', ({ stream }) => stream.hold(() => undefined, {} as never), ArgumentError],
  ['a list of lists', ({ device }) => device.from([[1], [2]] as never), ArgumentError],
  ['a host function that is none', ({ stream }) => stream.host({} as never), ArgumentError],
  ['page-locking an ordinary array', ({ device }) => device.pin(new Float32Array(2) as never), ArgumentError],
  ['a slice with the step 0', ({ x }) => x.view([0, 1, 0]), ArgumentError],
  ['a permutation that is none', ({ x }) => x.transpose([1]), ArgumentError],
  ['a shape of another size', ({ x }) => x.reshape(2), ArgumentError],
  ['a copy of itself', ({ stream, x }) => stream.copy(x, x), ArgumentError],
  ['an index outside', ({ x }) => x.item(1), ArgumentError],
];
/** Calls that a device does not support. */
const UNSUPPORTED: readonly (readonly [title: string, call: (scene: Scene) => unknown])[] = [
  ['a stream of somebody else', ({ device }) => device.wrapStream(8n)],
  ['an event for other processes', ({ device }) => device.createEvent({ interprocess: true })],
  ['memory for other processes', ({ device }) => device.interprocess(1, 'f32')],
];

defineChapter((target) => {
  describe('6 failure: bad input', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    const misuse = async (call: (scene: Scene) => unknown, error: new (...args: never) => Error): Promise<void> => {
      const { device } = chapter;
      const stream = device.createStream();
      const disposed = stream.zeros(4, 'u32');
      disposed[Symbol.dispose]();
      using x = stream.zeros(1, 'u32');
      using floats = stream.zeros(1, 'f32');
      const thrown = await rejectionOf((async () => call({ device, stream, x, floats, disposed }))());
      expect(thrown).toBeInstanceOf(error);
      expect(thrown).toHaveProperty('code', expect.stringMatching(/^ERR_MILLRACE_/));
      stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k: 5 });
      expect((await x.read())[0]).toBe(mixed(0, 5, 1));
      await stream.close();
    };
    for (const [title, call, error] of MISUSES) {
      rule('S610', `${title} is refused with its class, and the stream goes on`, () => misuse(call, error));
    }
    for (const [title, call] of UNSUPPORTED) {
      rule('S610', `${title}, where there is none, is an UnsupportedError`, async () => {
        if (chapter.device.info.backend === 'cpu') await misuse(call, UnsupportedError);
      });
    }

    rule('S601', 'a list of numbers with a hole is refused wherever one is taken, and each number is read once', () => {
      const { device } = chapter;
      using x = device.zeros([2, 3, 4], 'u32');
      using flat = device.zeros(24, 'u32');
      // oxlint-disable no-sparse-arrays -- what is tested.
      const holes: Record<string, () => unknown> = {
        zeros: () => device.zeros([2, , 2] as never),
        full: () => device.full([, 2] as never, 1),
        empty: () => device.empty(Object.assign([], { length: 2 ** 31 })),
        pinned: () => device.pinned([2, , 2] as never),
        reshape: () => x.reshape([24, , 1] as never),
        transpose: () => x.transpose([0, , 2] as never),
        from: () => device.from([1, , 3] as never),
        'shape of from': () => device.from([1, 2, 3, 4], { shape: [2, , 2] as never }),
        threads: () => device.stream.launch(mixKernel, [, 4] as never, { x: flat, k: 1 }),
        grid: () => device.stream.launch(mixKernel, { grid: [1, , 1] as never, block: 1 }, { x: flat, k: 1 }),
        block: () => device.stream.launch(mixKernel, { grid: 1, block: [1, , 1] as never }, { x: flat, k: 1 }),
      };
      // oxlint-enable no-sparse-arrays
      device.stream.launch(mixKernel, { grid: 1, block: 1 }, { x: flat, k: 1 });
      for (const [what, call] of Object.entries(holes)) expect(thrownBy(call), what).toBeInstanceOf(ArgumentError);
      let reads = 0;
      const changing = new Proxy([2], { get: (list, name) => (name === '0' && ++reads > 1 ? Number.NaN : Reflect.get(list, name)) });
      using changed = device.zeros(changing);
      expect(changed.length).toBe(2);
    });

    for (const { title, call, error, shows } of MISTAKES) {
      rule('S601', `${title} is refused at the call, and the stream goes on`, async () => {
        const { device } = chapter;
        const stream = device.createStream();
        const disposed = stream.zeros(4, 'u32');
        disposed[Symbol.dispose]();
        using x = stream.zeros(1, 'u32');
        using floats = stream.zeros(1, 'f32');
        const pendingBefore = stream.record();
        const thrown = thrownBy(() => call({ device, stream, x, floats, disposed }));
        expect(thrown).toBeInstanceOf(error);
        for (const part of shows(device)) expect(thrown.message).toMatch(part);
        expect(thrown).toHaveProperty('code', expect.stringMatching(/^ERR_MILLRACE_/));
        stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k: 5 });
        expect((await x.read())[0]).toBe(mixed(0, 5, 1));
        expect(pendingBefore.isComplete).toBe(true);
        await stream.close();
      });
    }
  });
});
