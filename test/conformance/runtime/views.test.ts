// Chapter 3, third part: strided views.
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { ArgumentError, type DeviceArray, f32, input, kernel, output, StateError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { mixKernel } from '../../support/kernels.js';
import { hold } from '../../support/latch.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { everyIndex, modelOf, transposed, viewOf, type Slice } from '../../support/strided.js';
import { counted, DTYPES, valueOf, zerosOf } from '../../support/values.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

const SHAPE = [3, 4, 5] as const;
const LENGTH = 60;

const SLICES: readonly (readonly [title: string, index: readonly Slice[]])[] = [
  ['nothing named keeps all', []],
  ['undefined keeps an axis', [undefined, 2]],
  ['a number drops its axis', [1]],
  ['a negative number counts from the end', [-1, -2]],
  ['all axes dropped', [1, 2, 3]],
  [
    'start and stop',
    [
      [1, 3],
      [1, 3],
      [2, 5],
    ],
  ],
  ['negative ends', [[-2], [-3, -1]]],
  ['a step', [[], [0, 4, 2], [1, undefined, 3]]],
  ['a negative step', [undefined, [undefined, undefined, -1]]],
  ['a negative step of two, with ends', [[], [3, 0, -2], [-1, -6, -2]]],
  ['an empty slice', [[2, 2]]],
  ['a slice that starts behind its end', [undefined, [3, 1]]],
  [
    'ends far outside',
    [
      [-100, 100],
      [100, -100, -1],
    ],
  ],
];

defineChapter((target) => {
  describe('3 memory: views', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [title, index] of SLICES) {
      rule('S320', title, async () => {
        const { device } = chapter;
        using base = device.from(counted('i32', LENGTH), { shape: SHAPE });
        const model = viewOf(modelOf(SHAPE), ...index);
        using view = base.view(...index);
        expect([view.shape, view.length, view.byteLength]).toEqual([model.shape, model.at.length, 4 * model.at.length]);
        expect([...(await view.read())]).toEqual(model.at);
      });
    }

    rule('S320', 'any slices of slices match a model', async () => {
      const { device } = chapter;
      using base = device.from(counted('i32', LENGTH), { shape: SHAPE });
      const end = fc.option(fc.integer({ min: -7, max: 7 }), { nil: undefined });
      const slice = fc.oneof(
        fc.constant(undefined),
        fc.tuple(end, end, fc.option(fc.constantFrom(-3, -2, -1, 1, 2, 3), { nil: undefined })),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(slice, { maxLength: 3 }), fc.array(slice, { maxLength: 3 }), fc.boolean(), async (one, two, isTurned) => {
          let model = viewOf(modelOf(SHAPE), ...one);
          let view: DeviceArray<'i32'> = base.view(...one);
          if (isTurned) [model, view] = [transposed(model), view.transpose()];
          [model, view] = [viewOf(model, ...two), view.view(...two)];
          expect([view.shape, [...(await view.read())]]).toEqual([model.shape, model.at]);
        }),
        { numRuns: 60 },
      );
    });

    rule('S320', 'a view without elements is a place inside its array', async () => {
      const { device } = chapter;
      const lengthOf = kernel('lengthOf', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
        y[i] = x.length + 1;
      });
      using x = device.zeros([4, 0, 5]);
      using y = device.zeros(1);
      for (const view of [x.view([undefined, undefined, -1]), x.view(3, undefined, [4]), x.transpose().view(-1)]) {
        expect([view.length, (await view.read()).length]).toEqual([0, 0]);
        using copy = view.clone();
        expect(copy.shape).toEqual(view.shape);
        await device.stream.launch(lengthOf, 1, { x: view.reshape(0), y }).done;
        expect(await y.item()).toBe(1);
        device.stream.fill(y, 0);
      }
    });

    rule('S320', 'strides are in elements, and isContiguous follows from them', () => {
      using base = chapter.device.zeros(SHAPE, 'f64');
      expect([base.strides, base.isContiguous]).toEqual([[20, 5, 1], true]);
      const rows = [
        [base.view(undefined, [0, 4, 2]), [20, 10, 1], false],
        [base.view([undefined, undefined, -1]), [-20, 5, 1], false],
        [base.view(1), [5, 1], true],
        [base.view([1, 3]), [20, 5, 1], true],
        [base.view(undefined, undefined, 0), [20, 5], false],
      ] as const;
      for (const [view, strides, isContiguous] of rows) expect([view.strides, view.isContiguous]).toEqual([strides, isContiguous]);
    });

    rule('S320', 'an invalid slice of the array is refused', () => {
      using base = chapter.device.zeros(SHAPE, 'i32');
      const bad: readonly (readonly unknown[])[] = [
        [3],
        [-4],
        [0.5],
        [[0, 1, 0]],
        [[0.5]],
        [0, 0, 0, 0],
        ['x'],
        [[0, 1, 1.5]],
        [Number.NaN],
      ];
      for (const index of bad) {
        expect(
          thrownBy(() => base.view(...(index as Slice[]))),
          JSON.stringify(index),
        ).toBeInstanceOf(ArgumentError);
      }
    });

    rule('S321', 'transpose reverses the axes, or permutes them as given', async () => {
      const { device } = chapter;
      using base = device.from(counted('i32', LENGTH), { shape: SHAPE });
      for (const axes of [undefined, [0, 1, 2], [1, 0, 2], [2, 0, 1], [0, 2, 1]]) {
        const model = transposed(modelOf(SHAPE), axes);
        const turned = base.transpose(axes);
        expect([turned.shape, [...(await turned.read())]]).toEqual([model.shape, model.at]);
        expect([...(await turned.transpose(axes === undefined ? undefined : inverse(axes)).read())]).toEqual([...(await base.read())]);
      }
      for (const axes of [
        [0, 1],
        [0, 0, 1],
        [0, 1, 3],
        [0, 1, -4],
        [0, 1, 1.5],
      ]) {
        expect(
          thrownBy(() => base.transpose(axes)),
          String(axes),
        ).toBeInstanceOf(ArgumentError);
      }
    });

    rule('S322', 'reshape is a view if the strides allow it; otherwise the error names clone', async () => {
      const { device } = chapter;
      using base = device.from(counted('i32', LENGTH), { shape: SHAPE });
      const flat = base.reshape(LENGTH);
      expect([flat.shape, [...(await flat.read())]]).toEqual([[LENGTH], modelOf(SHAPE).at]);
      expect(base.reshape([5, 3, 4]).strides).toEqual([12, 4, 1]);
      // Axes that are neither split nor merged keep their strides.
      const cut = base.view(undefined, [0, 4, 2]);
      const split = cut.reshape([3, 2, 5, 1]);
      expect([...(await split.read())]).toEqual([...(await cut.read())]);
      const refused = thrownBy(() => base.transpose().reshape(LENGTH));
      expect(refused).toBeInstanceOf(ArgumentError);
      expect(refused.message).toContain('clone');
      expect(thrownBy(() => base.reshape(59))).toBeInstanceOf(ArgumentError);
      using copy = base.transpose().clone();
      expect(copy.reshape(LENGTH).shape).toEqual([LENGTH]);
    });

    rule('S322', 'subarray works on strided views of one dimension only', async () => {
      const { device } = chapter;
      using base = device.from(counted('i32', 12));
      const every = base.view([undefined, undefined, -2]);
      expect([...(await every.subarray(1, 4).read())]).toEqual([9, 7, 5]);
      expect([...(await every.subarray(-2).read())]).toEqual([3, 1]);
      const refused = thrownBy(() => base.reshape([3, 4]).transpose().subarray(0, 2));
      expect(refused).toBeInstanceOf(ArgumentError);
      expect(refused.message).toContain('clone');
    });

    for (const dtype of DTYPES) {
      rule('S323', `fill of a view writes its elements and nothing else: ${dtype}`, async () => {
        const { device } = chapter;
        const source = counted(dtype, LENGTH);
        using base = device.from(source as never, { dtype, shape: SHAPE }) as DeviceArray;
        const index: readonly Slice[] = [undefined, [3, undefined, -2], [0, 5, 2]];
        const model = viewOf(modelOf(SHAPE), ...index);
        const [written, read] = valueOf(dtype);
        device.stream.fill(base.view(...index), written as never);
        const expected = [...(source as Iterable<number | bigint>)];
        for (const at of model.at) expected[at] = read;
        expect([...((await base.read()) as Iterable<number | bigint>)]).toEqual(expected);
      });

      rule('S324', `read, item and clone of a view: ${dtype}`, async () => {
        const { device } = chapter;
        const source = counted(dtype, LENGTH);
        using base = device.from(source as never, { dtype, shape: SHAPE }) as DeviceArray;
        const view = base.view([undefined, undefined, -1], undefined, [1, 5, 3]).transpose([2, 0, 1]);
        const model = transposed(viewOf(modelOf(SHAPE), [undefined, undefined, -1], undefined, [1, 5, 3]), [2, 0, 1]);
        const expected = model.at.map((at) => (source as ArrayLike<number | bigint>)[at]!);
        expect([...((await view.read()) as Iterable<number | bigint>)]).toEqual(expected);
        using copy = view.clone();
        expect([copy.isContiguous, copy.shape]).toEqual([true, model.shape]);
        expect([...((await copy.read()) as Iterable<number | bigint>)]).toEqual(expected);
        const into = zerosOf(dtype, expected.length);
        expect(await view.read({ into: into as never })).toBe(into);
        expect([...(into as Iterable<number | bigint>)]).toEqual(expected);
      });
    }

    rule('S324', 'item returns one element, by one index per dimension', async () => {
      const { device } = chapter;
      using base = device.from(counted('i32', LENGTH), { shape: SHAPE });
      const view = base.view(undefined, [undefined, undefined, -1]).transpose();
      const model = transposed(viewOf(modelOf(SHAPE), undefined, [undefined, undefined, -1]));
      const indices = everyIndex(model.shape);
      for (const n of [0, 7, 31, 59]) expect(await view.item(...indices[n]!)).toBe(model.at[n]);
      for (const index of [[], [0, 0], [5, 0, 0], [0, 0.5, 0]])
        expect(await rejectionOf(view.item(...index))).toBeInstanceOf(ArgumentError);
    });

    rule('S325', 'clone shares no memory, on the given stream or the current one', async () => {
      const { device } = chapter;
      const [stream, current] = [device.createStream(), device.createStream()];
      using base = device.from(counted('i32', 6), { shape: [2, 3] });
      await device.synchronize();
      await using latch = await hold(target, stream);
      using late = base.transpose().clone(stream);
      using early = current.run(() => base.transpose().clone());
      expect([...(await early.read())]).toEqual([0, 3, 1, 4, 2, 5]);
      expect(latch.operation.isComplete).toBe(false);
      device.stream.fill(early, -1);
      latch.open();
      expect([...(await late.read())]).toEqual([0, 3, 1, 4, 2, 5]);
      expect([...(await base.read())]).toEqual([0, 1, 2, 3, 4, 5]);
      await Promise.all([stream.close(), current.close()]);
    });

    rule('S326', 'a kernel refuses a strided array, and the error names the parameter', async () => {
      const { device } = chapter;
      using base = device.zeros(8, 'u32');
      const view = base.view([undefined, undefined, 2]);
      const error = thrownBy(() => device.stream.launch(mixKernel, { grid: 1, block: 1 }, { x: view, k: 1 }));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toMatch(/\bx\b/);
      expect(error.message).toContain('clone');
      device.stream.launch(mixKernel, { grid: 1, block: 1 }, { x: base.view([2, 6]), k: 9 });
      expect((await base.read())[2]).toBe(9);
    });

    rule('S327', 'disposing a view disposes only the view, disposing its base disposes all views', async () => {
      const { device } = chapter;
      const base = device.from(counted('i32', 6), { shape: [2, 3] });
      const [one, two] = [base.transpose(), base.view(1)];
      one[Symbol.dispose]();
      expect(thrownBy(() => device.stream.fill(one, 1))).toBeInstanceOf(StateError);
      expect([...(await two.read())]).toEqual([3, 4, 5]);
      base[Symbol.dispose]();
      expect(two.isDisposed).toBe(true);
      expect(thrownBy(() => two.view(0))).toBeInstanceOf(StateError);
    });

    rule(
      'S327',
      'uses of views are ordered by their bounding ranges, and the base memory outlives their readers on the device',
      async () => {
        const { device } = chapter;
        const [a, b] = [device.createStream(), device.createStream()];
        const base = device.full([8, 8], 3, 'i32');
        using copy = device.zeros([8, 4], 'i32');
        await device.synchronize();
        await using latch = await hold(target, a);
        a.fill(base.view([0, 4], [undefined, undefined, 2]), 9);
        await b.fill(base.view([4, 8], [undefined, undefined, -1]), 5).done;
        const read = b.copy(copy, base.view(undefined, [undefined, undefined, 2]));
        base[Symbol.dispose]();
        using reuse = device.full(64, 1, 'i32');
        await witness(b);
        expect(read.isComplete).toBe(false);
        latch.open();
        expect([...(await copy.read())]).toEqual([...Array.from({ length: 16 }, () => 9), ...Array.from({ length: 16 }, () => 5)]);
        expect((await reuse.read())[0]).toBe(1);
        await Promise.all([a.close(), b.close()]);
      },
    );
  });
});

const inverse = (axes: readonly number[]): number[] => axes.map((_, n) => axes.indexOf(n));
