// Chapter 10, sixth part: the parameters of a capture, and the values that each launch gives.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  f32,
  f64,
  i32,
  i64,
  inout,
  input,
  kernel,
  MillraceError,
  output,
  StateError,
  u32,
  u8,
  type ArraySlot,
  type Graph,
  type Params,
  type ScalarSlot,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, shiftKernel, weaveKernel, workOf, woven } from '../../support/graphs.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

const scalars = kernel(
  'scalars',
  { a: f32, b: f64, c: i32, d: i64, e: u8, floats: output(f64), longs: output(i64) },
  ({ a, b, c, d, e, floats, longs }) => {
    floats[0] = a;
    floats[1] = b;
    floats[2] = c;
    floats[3] = e;
    longs[0] = d;
  },
);
const sizes = kernel('sizes', { image: input(f32, 2), out: output(i32) }, ({ image, out }) => {
  out[0] = image.shape[0];
  out[1] = image.shape[1];
});

const firstOf = kernel('first_of', { x: input(u32), y: inout(u32) }, ({ x, y }) => {
  y[0] = x[0]!;
});

/** Launches with values that the types refuse, too. */
type AnyGraph = Graph<Params>;

defineChapter((target) => {
  describe('10 graphs: values of launches', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1012', 'the slots tell their names and types', async () => {
      const { device } = chapter;
      using y = device.zeros(4, 'u32');
      const seen: (ScalarSlot | ArraySlot)[] = [];
      const graph = device.stream.capture({ k: u32, x: input(u32), z: output(f32, 2), w: inout(i64) }, (s, { k, x, z, w }) => {
        seen.push(k, x, z, w);
        s.launch(weaveKernel, { grid: 1, block: 4 }, { x, y, k });
      });
      expect(seen.map(({ slot, name, dtype }) => [slot, name, dtype])).toEqual([
        ['scalar', 'k', 'u32'],
        ['array', 'x', 'u32'],
        ['array', 'z', 'f32'],
        ['array', 'w', 'i64'],
      ]);
      expect(seen.slice(1).map((slot) => [(slot as ArraySlot).rank, (slot as ArraySlot).access])).toEqual([
        [1, 'in'],
        [2, 'out'],
        [1, 'inout'],
      ]);
      await graph.close();
    });

    rule('S1012', 'scalars of each launch reach the kernels exactly', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using floats = device.zeros(4, 'f64');
      using longs = device.zeros(1, 'i64');
      const graph = stream.capture({ a: f32, b: f64, c: i32, d: i64, e: u8 }, (s, slots) => {
        s.launch(scalars, 1, { ...slots, floats, longs });
      });
      const values = [
        { a: 0.1, b: 0.1, c: -(2 ** 31), d: 2n ** 62n + 1n, e: 255 },
        { a: -1e-30, b: Math.PI, c: 2 ** 31 - 1, d: -(2n ** 63n), e: 0 },
        { a: Infinity, b: -0, c: 0, d: 77, e: 7 },
      ];
      for (const given of values) {
        stream.launch(graph, given);
        const { a, b, c, d, e } = given;
        expect([...(await floats.read())]).toEqual([Math.fround(a), b, c, e]);
        expect([...(await longs.read())]).toEqual([BigInt(d)]);
      }
      await graph.close();
      await stream.close();
    });

    rule('S1012', 'each launch uses its own values, however many wait, and changing the object afterwards has no effect', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.zeros(1, 'u32');
      const graph = stream.capture({ k: u32, twice: u32 }, (s, { k, twice }) => {
        s.launch(mixKernel, ONE, { x, k });
        other.waitStream(stream);
        other.launch(mixKernel, ONE, { x, k: twice });
        s.launch(mixKernel, ONE, { x, k });
      });
      await using latch = await hold(target, stream, mixKernel);
      const values = { k: 0, twice: 0 };
      let expected = 0;
      for (let k = 0; k < 500; k++) {
        values.k = k;
        values.twice = 2 * k;
        stream.launch(graph, values);
        for (const each of [k, 2 * k, k]) expected = mixed(expected, each, 1);
      }
      values.k = 9999;
      latch.open();
      expect((await x.read())[0]).toBe(expected);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1012', 'each launch uses its own arrays, with their lengths', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using out = device.zeros(2, 'i32');
      const graph = stream.capture({ image: input(f32, 2) }, (s, { image }) => void s.launch(sizes, 1, { image, out }));
      using small = device.zeros([2, 3]);
      using large = device.zeros([40, 50]);
      for (const image of [small, large, large.view([0, 7]), small]) {
        stream.launch(graph, { image });
        expect([...(await out.read())]).toEqual([...image.shape]);
      }
      await graph.close();
      // The bounds of a checked access are those of the array that the launch gives.
      using y = device.zeros(4, 'i32');
      using four = device.full(4, 4, 'i32');
      using three = device.full(3, 3, 'i32');
      const shift = stream.capture({ x: input(i32) }, (s, { x }) => void s.launch(shiftKernel, 4, { x, y, by: 0 }));
      const fault = await rejectionOf(stream.launch(shift, { x: three }).done);
      expect(fault).toBeInstanceOf(BoundsError);
      expect([(fault as BoundsError).limit, (fault as BoundsError).index]).toEqual([3, 3]);
      stream.launch(shift, { x: four });
      expect([...(await y.read())]).toEqual([4, 4, 4, 4]);
      await shift.close();
      await stream.close();
    });

    rule('S1012', 'arrays of queued launches are used in their order, also when they are disposed right after the call', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using y = device.zeros(4, 'u32');
      const shape = { grid: 1, block: 4 } as const;
      const graph = stream.capture({ x: input(u32), z: inout(u32) }, (s, { x, z }) => {
        s.launch(weaveKernel, shape, { x, y: z, k: 1 });
        s.launch(weaveKernel, shape, { x: z, y, k: 2 });
      });
      await device.synchronize();
      await using latch = await hold(target, other, weaveKernel);
      let [left, expected] = [0, 0];
      for (let n = 0; n < 40; n++) {
        using x = other.full(4, n, 'u32');
        using z = other.full(4, 100 + n, 'u32');
        const launched = stream.launch(graph, { x, z });
        if (n === 0) {
          await witness(stream);
          expect(launched.isComplete).toBe(false);
        }
        left = woven(n, 100 + n, 1);
        expected = woven(left, expected, 2);
      }
      latch.open();
      expect([...(await y.read())]).toEqual([expected, expected, expected, expected]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1012', 'missing, surplus and wrong values are refused at the call by name, and nothing is launched', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full([2, 2], 1, 'i32');
      using y = device.zeros(4, 'i32');
      using floats = device.zeros([2, 2]);
      using flat = device.zeros(4, 'i32');
      using pinned = device.pinned(4, 'i32');
      const gone = device.zeros([2, 2], 'i32');
      gone[Symbol.dispose]();
      const add = kernel('add', { image: input(i32, 2), out: inout(i32), by: i32 }, ({ image, out, by }, { i }) => {
        out[i] = out[i]! + image[0]![0]! + by;
      });
      const graph = stream.capture({ by: i32, image: input(i32, 2) }, (s, { by, image }) => {
        s.launch(add, 4, { by, image, out: y });
      }) as never as AnyGraph;
      const launch = stream.launch.bind(stream) as (graph: AnyGraph, ...values: unknown[]) => unknown;
      const bad: readonly (readonly [name: RegExp, values: unknown])[] = [
        [/by|image|values/, undefined],
        [/by|image|values/, null],
        [/by|image|values/, 7],
        [/image/, { by: 1 }],
        [/by/, { image: x }],
        [/\bz\b/, { by: 1, image: x, z: 1 }],
        [/by/, { by: undefined, image: x }],
        [/by/, { by: '1', image: x }],
        [/by/, { by: 0.5, image: x }],
        [/by/, { by: Number.NaN, image: x }],
        [/by/, { by: 2 ** 31, image: x }],
        [/by/, { by: -(2 ** 31) - 1, image: x }],
        [/by/, { by: x, image: x }],
        [/by/, { by: true, image: x }],
        [/image/, { by: 1, image: 1 }],
        [/image/, { by: 1, image: null }],
        [/image/, { by: 1, image: floats }],
        [/image/, { by: 1, image: flat }],
        [/image/, { by: 1, image: pinned }],
        [/image/, { by: 1, image: new Int32Array(4) }],
        [/image/, { by: 1, image: x.transpose() }],
      ];
      for (const [name, values] of bad) {
        const error = thrownBy(() => launch(graph, values));
        expect(error, String(name)).toBeInstanceOf(ArgumentError);
        expect(error.message).toMatch(name);
      }
      expect(thrownBy(() => launch(graph))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => launch(graph, { by: 1, image: gone }))).toBeInstanceOf(StateError);
      expect([...(await y.read())]).toEqual([0, 0, 0, 0]);
      await (launch(graph, { by: 1, image: x }) as { readonly done: Promise<unknown> }).done;
      // Nothing is kept from the launch before.
      expect(thrownBy(() => launch(graph, { by: 1 }))).toBeInstanceOf(ArgumentError);
      expect([...(await y.read())]).toEqual([2, 2, 2, 2]);
      await graph.close();
      await stream.close();
    });

    rule('S1012', 'a graph without parameters takes no values', async () => {
      const { device } = chapter;
      using x = device.zeros(1, 'u32');
      const graph = device.stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 })) as never as AnyGraph;
      expect(thrownBy(() => device.stream.launch(graph, { k: 1 } as never))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => device.stream.launch(graph, 7 as never))).toBeInstanceOf(ArgumentError);
      expect((await x.read())[0]).toBe(0);
      await graph.close();
    });

    rule('S1012', 'a slot goes to kernel parameters of its type only, in its own capture', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'u32');
      const params = { k: u32, f: f32, a: input(u32), wide: input(u32, 2), out: output(u32) };
      let stale: ScalarSlot<'u32'> | undefined;
      const shape = { grid: 1, block: 4 } as const;
      const graph = stream.capture(params, (s, { k, f, a, wide, out }) => {
        stale = k;
        for (const bad of [
          () => s.launch(mixKernel, ONE, { x, k: f as never }),
          () => s.launch(mixKernel, ONE, { x, k: a as never }),
          () => s.launch(mixKernel, ONE, { x: k as never, k: 1 }),
          // It is declared as read only, and as written only.
          () => s.launch(mixKernel, ONE, { x: a as never, k: 1 }),
          () => s.launch(weaveKernel, shape, { x: out as never, y: x, k }),
          () => s.launch(shiftKernel, 4, { x: a as never, y: out as never, by: 0 }),
          () => s.fill(x, f as never),
          () => s.fill(a as never, 1),
          () => s.copy(a as never, x),
          () => s.launch(firstOf, 1, { x: wide, y: x }),
        ]) {
          expect(thrownBy(bad), String(bad)).toBeInstanceOf(ArgumentError);
        }
        s.launch(weaveKernel, shape, { x: a, y: x, k });
      });
      expect(workOf(graph)).toHaveLength(1);
      expect(thrownBy(() => stream.launch(mixKernel, ONE, { x, k: stale! }))).toBeInstanceOf(ArgumentError);
      const other = stream.capture({ k: u32 }, (s, { k }) => {
        const error = thrownBy(() => s.launch(mixKernel, ONE, { x, k: stale! }));
        expect(error instanceof ArgumentError || error instanceof MillraceError).toBe(true);
        s.launch(mixKernel, ONE, { x, k });
      });
      await Promise.all([graph.close(), other.close()]);
      await stream.close();
    });

    rule('S1012', 'a slot is no shape of a launch', async () => {
      const { device } = chapter;
      using x = device.zeros(4, 'u32');
      using y = device.zeros(4, 'u32');
      const graph = device.stream.capture({ n: i32 }, (stream, { n }) => {
        for (const [shape, argument] of [
          [n, 'shape'],
          [{ threads: n }, 'threads'],
          [{ threads: 4, block: n }, 'block'],
          [{ grid: n, block: 4 }, 'grid'],
        ]) {
          const error = thrownBy(() => stream.launch(firstOf, shape as never, { x, y }));
          expect(error).toMatchObject({ argument });
          expect(error.message).toMatch(/\(ScalarSlot\) is a slot: the shape of a launch is fixed at the capture/);
        }
        stream.launch(firstOf, 1, { x, y });
      });
      await graph.close();
    });

    rule('S1012', 'an array that the graph uses in conflict with the slot is refused', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using read = device.full(4, 2, 'u32');
      using written = device.zeros(4, 'u32');
      using free = device.zeros(4, 'u32');
      const shape = { grid: 1, block: 4 } as const;
      const graph = stream.capture({ a: input(u32), b: inout(u32) }, (s, { a, b }) => {
        s.launch(weaveKernel, shape, { x: a, y: written, k: 1 });
        s.launch(weaveKernel, shape, { x: read, y: b, k: 1 });
      });
      for (const bad of [
        { a: written, b: free },
        { a: written.view([0, 4]), b: free },
        { a: read, b: written },
        { a: free, b: read },
        { a: free, b: read.subarray(0, 4) },
      ]) {
        expect(thrownBy(() => stream.launch(graph, bad))).toBeInstanceOf(ArgumentError);
      }
      expect([...(await written.read())]).toEqual([0, 0, 0, 0]);
      // Reading what the graph reads is no conflict.
      await stream.launch(graph, { a: read, b: free }).done;
      expect([(await written.read())[0], (await free.read())[0]]).toEqual([woven(2, 0, 1), woven(2, 0, 1)]);
      await graph.close();
      await stream.close();
    });

    rule('S1012', 'a slot that no operation uses must be given all the same', async () => {
      const { device } = chapter;
      using x = device.zeros(1, 'u32');
      const graph = device.stream.capture({ unused: f32 }, (s) => void s.launch(mixKernel, ONE, { x, k: 1 }));
      expect(thrownBy(() => device.stream.launch(graph, {} as never))).toBeInstanceOf(ArgumentError);
      await device.stream.launch(graph, { unused: 1 }).done;
      expect((await x.read())[0]).toBe(mixed(0, 1, 1));
      await graph.close();
    });
  });
});
