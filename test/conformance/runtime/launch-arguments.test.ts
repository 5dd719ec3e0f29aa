// Chapter 4, refused launches: each mistake is an ArgumentError of the call that names the argument, its value and the
// limit. The stream continues.
import { describe, expect, vi } from 'vitest';
import {
  ArgumentError,
  bool,
  cudaKernel,
  f16,
  f32,
  i32,
  i64,
  i8,
  inout,
  input,
  kernel,
  output,
  StateError,
  StreamHazardError,
  struct,
  u32,
  u64,
  vec,
} from 'millrace';
import type { Device, DeviceArray, Kernel, Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const flat = kernel('flat', { x: input(f32), y: inout(f32), n: i32 }, ({ x, y, n }, { i }) => {
  y[i] = x[i]! + n;
});
const square = kernel('square', { x: inout(f32, 2) }, ({ x }, { i, j }) => {
  x[i]![j] = x[i]![j]! + 1;
});
const narrow = kernel(
  'narrow',
  { y: inout(f32) },
  ({ y }, { i }) => {
    y[i] = y[i]! + 1;
  },
  { maxThreadsPerBlock: 64 },
);
const scalars = kernel(
  'scalars',
  { b: bool, c: i8, u: u32, k: i64, w: u64, out: output(f32) },
  ({ b, c, u, k, w, out }, { f32: single }) => {
    out[0] = b ? c + single(u) + single(k) + single(w) : 0;
  },
);
const last = kernel('last', { x: input(f32), y: output(f32), a: f32 }, ({ x, y, a }, { i }) => {
  y[i] = x[i]! + a;
});
const values = cudaKernel(
  'values',
  { p: struct({ x: inout(f32), n: i32 }), v: vec(f32, 2) },
  `struct P { float* x; int n; };
extern "C" __global__ void values(P p, float2 v) { if (threadIdx.x < p.n) p.x[threadIdx.x] += v.x + v.y; }`,
);
const halves = kernel('halves', { h: inout(f16) }, ({ h }, { i }) => {
  h[i] = h[i]! * 2;
});

interface Scene {
  readonly device: Device;
  readonly stream: Stream;
  readonly x: DeviceArray<'f32'>;
  readonly image: DeviceArray<'f32'>;
  readonly ints: DeviceArray<'i32'>;
}
interface Mistake {
  readonly title: string;
  readonly kernel: Kernel;
  readonly shape: unknown;
  readonly args: (scene: Scene) => object;
  readonly argument: string;
  readonly limit?: unknown;
  readonly message: RegExp;
}

const good = ({ x }: Scene): object => ({ x, y: x, n: 1 });
const scalarArgs = ({ x }: Scene, changed: object): object => ({ b: true, c: 1, u: 1, k: 1n, w: 1n, out: x, ...changed });
function ofShape(title: string, shape: unknown, argument: string, limit: unknown, message: RegExp): Mistake {
  return { title, kernel: flat as Kernel, shape, args: good, argument, limit, message };
}
function ofScalar(name: string, value: unknown, limit: unknown, message: RegExp): Mistake {
  const args = (scene: Scene): object => scalarArgs(scene, { [name]: value });
  return { title: `${String(value)} for ${name}`, kernel: scalars as Kernel, shape: 1, args, argument: name, limit, message };
}
function ofArgument(title: string, args: Mistake['args'], argument: string, limit: unknown, message: RegExp): Mistake {
  return { title, kernel: flat as Kernel, shape: 4, args, argument, limit, message };
}

const MISTAKES: readonly Mistake[] = [
  ofArgument('a missing array', ({ x }) => ({ x, n: 1 }), 'y', undefined, /Argument y of kernel flat is missing/),
  ofArgument(
    'a name in other letters',
    ({ x }) => ({ X: x, y: x, n: 1 }),
    'X',
    undefined,
    /Argument X \(did you mean x\?\) is not a parameter of kernel flat \(x, y, n\)/,
  ),
  ofArgument('a name of no parameter', ({ x }) => ({ x, weights: x, n: 1 }), 'weights', undefined, /Argument weights is not a parameter/),
  ofArgument('a missing scalar', ({ x }) => ({ x, y: x }), 'n', undefined, /Argument n of kernel flat is missing/),
  ofArgument(
    'one argument too many',
    ({ x }) => ({ x, y: x, n: 1, m: 2 }),
    'm',
    undefined,
    /m is not a parameter of kernel flat \(x, y, n\)/,
  ),
  ofArgument('a list', ({ x }) => [x, x, 1], 'args', undefined, /Kernel flat takes its arguments by name: \{ x, y, n \}/),
  ofArgument('a number for an array', ({ x }) => ({ x: 7, y: x, n: 1 }), 'x', undefined, /Argument x .*\(7\) is not a device array/),
  ofArgument('an array of the host', ({ x }) => ({ x, y: new Float32Array(4), n: 1 }), 'y', undefined, /is not a device array/),
  ofArgument('another element type', ({ x, ints }) => ({ x, y: ints, n: 1 }), 'y', 'f32', /has dtype i32; the kernel takes f32/),
  ofArgument('an array for a number', ({ x }) => ({ x, y: x, n: x }), 'n', undefined, /Argument n|n \(/),
  ofArgument('more dimensions', ({ x, image }) => ({ x, y: image, n: 1 }), 'y', 1, /has 2 dimensions; the kernel takes 1/),
  ofArgument(
    'an array that is not contiguous',
    ({ x, image }) => ({ x: image.view([0, 4], 0), y: x, n: 1 }),
    'x',
    undefined,
    /strides \[4\]\) is not contiguous/,
  ),
  {
    title: 'fewer dimensions',
    kernel: square as Kernel,
    shape: [2, 2],
    args: ({ x }) => ({ x }),
    argument: 'x',
    limit: 2,
    message: /has 1 dimensions; the kernel takes 2/,
  },
  {
    title: 'another element type of two bytes',
    kernel: halves as Kernel,
    shape: 2,
    args: ({ device }) => ({ h: device.zeros(2, 'u16') }),
    argument: 'h',
    limit: 'f16',
    message: /has dtype u16; the kernel takes f16/,
  },
  ofScalar('c', 128, 127, /128/),
  ofScalar('c', -129, -128, /-129/),
  ofScalar('u', -1, 0, /-1/),
  ofScalar('u', 2 ** 32, 2 ** 32 - 1, /4294967296/),
  ofScalar('k', 2n ** 63n, 2n ** 63n - 1n, /9223372036854775808/),
  ofScalar('k', -(2n ** 63n) - 1n, -(2n ** 63n), /\(-9223372036854775809n\) is below the minimum/),
  ofScalar('w', 2n ** 64n, 2n ** 64n - 1n, /exceeds the limit/),
  ofScalar('w', -1n, 0n, /\(-1n\) is below the minimum \(0n\)/),
  ofScalar('k', 0.5, undefined, /0\.5/),
  ofScalar('b', 'yes', undefined, /yes/),
  ofShape('threads beyond 32-bit indices', 2 ** 31, 'threads', 2 ** 31 - 1, /2147483648.*2147483647/),
  ofShape('a fraction of a thread', 1.5, 'threads', undefined, /1\.5/),
  ofShape('threads in dimensions that the kernel has no index for', [2, 2], 'threads', 1, /\(2\) differs from that of kernel flat \(1\)/),
  ofShape('threads in four dimensions', [1, 1, 1, 1], 'threads', 3, /\(4\) is not 1, 2 or 3/),
  ofShape('a grid without a block', { grid: 1 }, 'shape', undefined, /neither threads nor both grid and block/),
  ofShape('a grid beside threads', { threads: 4, grid: 4, block: 1 }, 'shape', undefined, /has threads \(4\) and a grid \(4\)/),
  ofShape('a grid of no blocks', { grid: 0, block: 32 }, 'grid', 1, /0/),
  ofShape('a block of no threads', { threads: 4, block: [4, 0] }, 'block', 1, /0/),
  ofShape('a negative size of shared memory', { threads: 4, sharedBytes: -1 }, 'sharedBytes', 0, /-1/),
  {
    title: 'a block beyond the bound of the kernel',
    kernel: narrow as Kernel,
    shape: { threads: 4, block: 65 },
    args: ({ x }) => ({ y: x }),
    argument: 'block',
    limit: 64,
    message: /\(65\) exceeds the limit of kernel narrow \(64\)/,
  },
];

defineChapter((target) => {
  describe('4 kernels: refused launches', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const { title, kernel: made, shape, args, argument, limit, message } of MISTAKES) {
      rule('S405', `${title}: refused with argument and limit, and the stream goes on`, async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = stream.ones(4);
        using image = stream.zeros([4, 4]);
        using ints = stream.zeros(4, 'i32');
        const error = thrownBy(() =>
          stream.launch(made, shape as never, args({ device, stream, x, image, ints }) as never),
        ) as ArgumentError;
        expect(error).toBeInstanceOf(ArgumentError);
        expect([error.argument, error.limit]).toEqual([argument, limit]);
        expect(error.message).toMatch(message);
        stream.launch(flat, 4, { x, y: x, n: 2 });
        expect([...(await x.read())]).toEqual([3, 3, 3, 3]);
        await stream.close();
      });
    }

    rule('S405', 'a disposed array is refused', () => {
      const { device } = chapter;
      using x = device.ones(4);
      const gone = device.ones(4);
      gone[Symbol.dispose]();
      const error = thrownBy(() => device.stream.launch(flat, 4, { x, y: gone, n: 1 }));
      expect(error).toBeInstanceOf(StateError);
    });

    rule('S405', 'a getter among the arguments that disposes or closes what the call has read already is a StateError', async () => {
      const { device } = chapter;
      const other = device.zeros(4);
      const calls: readonly (readonly [string, (stream: Stream, x: DeviceArray<'f32'>, end: () => number) => unknown])[] = [
        [
          'a scalar',
          (s, x, end) =>
            s.launch(last, 4, {
              x,
              y: other,
              get a() {
                return end();
              },
            }),
        ],
        [
          'the shape',
          (s, x, end) =>
            s.launch(
              last,
              {
                get grid() {
                  return end();
                },
                block: 4,
              },
              { x, y: other, a: 1 },
            ),
        ],
        [
          'a field',
          (s, x, end) =>
            s.launch(
              values,
              { grid: 1, block: 4 },
              {
                p: {
                  x,
                  get n() {
                    return end();
                  },
                },
                v: [1, 1],
              },
            ),
        ],
        [
          'a vector',
          (s, x, end) =>
            s.launch(
              values,
              { grid: 1, block: 4 },
              {
                p: { x, n: 4 },
                v: {
                  get x() {
                    return end();
                  },
                  y: 1,
                },
              },
            ),
        ],
        [
          'a copy',
          (s, x, end) =>
            s.copy(other, x, {
              get count() {
                return end();
              },
            }),
        ],
        [
          'a graph',
          (s, x, end) => {
            const graph = s.capture({ x: input(f32), a: f32 }, (c, slots) => c.launch(last, 4, { ...slots, y: other }));
            return s.launch(graph, {
              x,
              get a() {
                return end();
              },
            });
          },
        ],
        [
          'a captured launch',
          (s, x, end) =>
            s.capture((c) =>
              c.launch(last, 4, {
                x,
                y: other,
                get a() {
                  return end();
                },
              }),
            ),
        ],
      ];
      for (const [what, call] of calls) {
        for (const [how, end] of [
          ['dispose', (_: Stream, x: DeviceArray) => x[Symbol.dispose]()],
          ['close', (stream: Stream) => void stream.close()],
        ] as const) {
          if (how === 'close' && what === 'a captured launch') continue;
          const stream = device.createStream();
          const x = stream.ones(4);
          const ending = (): number => {
            end(stream, x);
            return 1;
          };
          expect(
            thrownBy(() => call(stream, x, ending)),
            `${what}: ${how}`,
          ).toBeInstanceOf(StateError);
          await stream.close();
        }
      }
      const stream = device.createStream();
      const x = stream.ones(4);
      const graph = stream.capture({ x: input(f32), a: f32 }, (c, slots) => c.launch(last, 4, { ...slots, y: other }));
      const closing = {
        x,
        get a() {
          return (void graph.close(), 1);
        },
      };
      expect(thrownBy(() => stream.launch(graph, closing))).toBeInstanceOf(StateError);
      stream.launch(last, 4, { x, y: other, a: 2 });
      expect([...(await other.read())]).toEqual([3, 3, 3, 3]);
      await stream.close();
    });

    rule(
      'S126',
      'overlapping bytes for two parameters, one of them written: a hazard on a checked stream, a warning once elsewhere',
      async () => {
        const { device } = chapter;
        const [stream, checked] = [device.createStream(), device.createStream({ ordering: 'checked' })];
        using x = device.zeros(8);
        const [low, middle, high] = [x.subarray(0, 4), x.subarray(2, 6), x.subarray(4, 8)];
        await device.synchronize();
        const hazard = (body: () => unknown): string => (thrownBy(body) as StreamHazardError).message;
        expect(hazard(() => checked.launch(last, 4, { x: low, y: middle, a: 1 }))).toMatch(
          /^The launch last on stream .* parameters x and y, .*inout/,
        );
        expect(hazard(() => checked.capture((s) => s.launch(last, 4, { x, y: x, a: 1 })))).toMatch(/parameters x and y/);
        expect(hazard(() => checked.capture({ p: inout(f32) }, (s, { p }) => s.launch(last, 4, { x: p, y: p, a: 1 })))).toMatch(/x and y/);
        expect(thrownBy(() => checked.launch(last, 4, { x, y: x, a: 1 }))).toBeInstanceOf(StreamHazardError);
        checked.launch(last, 4, { x: low, y: high, a: 1 });
        await checked.synchronize();
        const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
        try {
          const apart = stream.launch(last, 4, { x: low, y: high, a: 1 });
          // An earlier test of this process may have had the warning.
          const before = warned.mock.calls.length;
          stream.launch(last, 4, { x: low, y: middle, a: 1 });
          stream.launch(last, 4, { x, y: x, a: 1 });
          expect([before, warned.mock.calls.length <= 1]).toEqual([0, true]);
          for (const [message, options] of warned.mock.calls as unknown as [string, object][]) {
            expect(message).toMatch(/parameters x and y/);
            expect(options).toEqual({ type: 'MillraceWarning', code: 'MILLRACE_SAME_BYTES' });
          }
          await apart.done;
        } finally {
          warned.mockRestore();
        }
        await Promise.all([stream.close(), checked.close()]);
      },
    );

    rule('S410', 'a kernel without indices may be launched with threads of any dimensions', async () => {
      const { device } = chapter;
      const count = kernel('count', { out: inout(u32) }, ({ out }, { atomicAdd }) => {
        atomicAdd(out, 0, 1);
      });
      for (const [shape, threads] of [
        [7, 7],
        [[3, 5], 15],
        [[2, 3, 4], 24],
      ] as const) {
        using out = device.zeros(1, 'u32');
        device.stream.launch(count, shape, { out });
        expect([...(await out.read())], String(shape)).toEqual([threads]);
      }
    });
  });
});
