// Views against a model that lists the offset of every element.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AxisIndex } from '../../../src/core/elements/strides.js';
import { areApart } from '../../../src/core/elements/view-overlap.js';
import {
  contiguousStrides,
  indexed,
  isContiguous,
  type Placed,
  reachOf,
  reshapedStrides,
  transposed,
} from '../../../src/core/elements/strides.js';
import { fixture } from './fake-channel.js';
import { offsetsOf } from './simulated.js';

/** An array of the model: its shape, and the offset of each element. */
interface Model {
  readonly shape: readonly number[];
  readonly places: readonly number[];
}

const placesOf = ({ offset, shape, strides }: Placed): number[] =>
  offsetsOf(shape.map((extent, axis) => [extent, strides[axis]!] as const)).map((at) => at + offset);
const lengthOf = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1);

/** The flat position of an index in a shape. */
const flat = (shape: readonly number[], index: readonly number[]): number =>
  index.reduce((at, value, axis) => at * shape[axis]! + value, 0);

function* indices(shape: readonly number[]): Iterable<number[]> {
  if (shape.length === 0) yield [];
  else for (let first = 0; first < shape[0]!; first++) for (const rest of indices(shape.slice(1))) yield [first, ...rest];
}

/** Python's rule for a slice, element by element. */
function sliceOf(extent: number, [start, stop, step = 1]: readonly (number | undefined)[]): number[] {
  const wrap = (value: number): number => (value < 0 ? value + extent : value);
  const picked: number[] = [];
  const begin =
    start === undefined ? (step > 0 ? 0 : extent - 1) : Math.min(Math.max(wrap(start), step > 0 ? 0 : -1), step > 0 ? extent : extent - 1);
  for (let at = begin; step > 0 ? at < extent : at >= 0; at += step) {
    if (stop !== undefined && (step > 0 ? at >= wrap(stop) : at <= wrap(stop))) break;
    picked.push(at);
  }
  return picked;
}

function viewed({ shape, places }: Model, index: readonly AxisIndex[]): Model {
  const picks = shape.map((extent, axis) => {
    const at = index[axis];
    if (at === undefined) return { drops: false, picked: Array.from({ length: extent }, (_, n) => n) };
    if (typeof at === 'number') return { drops: true, picked: [at < 0 ? at + extent : at] };
    return { drops: false, picked: sliceOf(extent, at) };
  });
  const all = [...indices(picks.map(({ picked }) => picked.length))];
  return {
    shape: picks.filter(({ drops }) => !drops).map(({ picked }) => picked.length),
    places: all.map(
      (picked) =>
        places[
          flat(
            shape,
            picked.map((value, axis) => picks[axis]!.picked[value]!),
          )
        ]!,
    ),
  };
}

function turned({ shape, places }: Model, axes: readonly number[]): Model {
  const turnedShape = axes.map((axis) => shape[axis]!);
  const back = (index: readonly number[]): number[] => shape.map((_, axis) => index[axes.indexOf(axis)]!);
  return { shape: turnedShape, places: [...indices(turnedShape)].map((index) => places[flat(shape, back(index))]!) };
}

/** Whether some strides give these offsets, in this order. */
function isRegular({ shape, places }: Model): boolean {
  const first = places[0]!;
  const strides = shape.map((extent, axis) => {
    const one = shape.map((_, other) => (other === axis ? 1 : 0));
    return extent > 1 ? places[flat(shape, one)]! - first : 0;
  });
  return [...indices(shape)].every((index, n) => places[n] === index.reduce((at, value, axis) => at + value * strides[axis]!, first));
}

const bound = fc.option(fc.integer({ min: -7, max: 7 }), { nil: undefined });
const slice = fc.tuple(
  bound,
  bound,
  fc.option(
    fc.integer({ min: -3, max: 3 }).filter((step) => step !== 0),
    { nil: undefined },
  ),
);
const seeds = fc.array(fc.nat(1_000_000), { minLength: 12, maxLength: 12 });
const shapes = fc.array(fc.nat(5), { maxLength: 4 });

describe('views', () => {
  test('any chain of index lists, permutations and reshapes selects the same elements as NumPy', () => {
    let reshapes = 0;
    let refused = 0;
    fc.assert(
      fc.property(
        shapes,
        fc.array(fc.tuple(fc.nat(2), fc.array(fc.oneof(slice, fc.constant(undefined), fc.nat(9)), { maxLength: 4 }), seeds), {
          maxLength: 4,
        }),
        (shape, steps) => {
          let real: Placed = { offset: 0, shape, strides: contiguousStrides(shape) };
          let model: Model = { shape, places: Array.from({ length: lengthOf(shape) }, (_, n) => n) };
          for (const [kind, picks, seed] of steps) {
            if (kind === 0) {
              // Numbers must be inside; from either end.
              const index = picks.slice(0, real.shape.length).map((pick, axis) => {
                const extent = real.shape[axis]!;
                if (typeof pick !== 'number') return pick;
                return extent === 0 ? undefined : (pick % (2 * extent)) - extent;
              });
              const next = indexed(real, index);
              real = { ...next, offset: real.offset + next.offset };
              model = viewed(model, index);
            } else if (kind === 1) {
              const axes = real.shape.map((_, axis) => axis).toSorted((a, b) => seed[a]! - seed[b]! || a - b);
              real = { ...transposed(real, axes), offset: real.offset };
              model = turned(model, axes);
            } else {
              const next = factored(lengthOf(real.shape), seed);
              const strides = reshapedStrides(real, next);
              reshapes++;
              if (strides === undefined) {
                refused++;
                expect(isRegular({ shape: next, places: model.places })).toBe(false);
              } else {
                real = { offset: real.offset, shape: next, strides };
                model = { shape: next, places: model.places };
              }
            }
            expect(real.shape).toEqual(model.shape);
            expect(placesOf(real)).toEqual(model.places);
            expect(isContiguous(real)).toBe(model.places.every((place, n) => place === model.places[0]! + n));
            const [low, high] = reachOf(real);
            if (model.places.length === 0) expect([low, high]).toEqual([0, 0]);
            else expect([real.offset + low, real.offset + high]).toEqual([Math.min(...model.places), Math.max(...model.places) + 1]);
          }
        },
      ),
      { numRuns: 3000, seed: 20 },
    );
    // Both results occurred.
    expect([reshapes > 500, refused > 50]).toEqual([true, true]);
  });

  test('two views are apart exactly if they have no element in common', () => {
    const coarse = fc.tuple(
      fc.option(fc.nat(3), { nil: undefined }),
      fc.option(fc.integer({ min: 3, max: 8 }), { nil: undefined }),
      fc.constantFrom(1, 2, 3, -2),
    );
    const some = fc.array(fc.oneof(slice, coarse, coarse, coarse), { minLength: 3, maxLength: 3 });
    const views = fc.tuple(fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 3 }), some, some, fc.boolean());
    let interleaved = 0;
    fc.assert(
      fc.property(views, ([shape, first, second, isTurned]) => {
        const whole: Placed = { offset: 0, shape, strides: contiguousStrides(shape) };
        const a = indexed(whole, first.slice(0, shape.length));
        const kept = indexed(whole, second.slice(0, shape.length));
        const b = isTurned ? { ...transposed(kept, undefined), offset: kept.offset } : kept;
        const [inA, inB] = [placesOf(a), placesOf(b)];
        const shares = inA.some((place) => inB.includes(place));
        expect(areApart(a, b)).toBe(!shares);
        if (!shares && inA.length > 0 && inB.length > 0 && Math.min(...inA) < Math.max(...inB) && Math.min(...inB) < Math.max(...inA))
          interleaved++;
      }),
      { numRuns: 4000, seed: 21 },
    );
    expect(interleaved).toBeGreaterThan(50);
  });

  test('undecided searches count as overlapping, and end soon', () => {
    // Many axes of strides that divide each other badly.
    const strides = [1009, 1013, 1019, 1021, 1031, 1033];
    const shape = strides.map(() => 50);
    const startedAt = performance.now();
    expect(areApart({ offset: 0, shape, strides }, { offset: 1, shape, strides: strides.toReversed() })).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(500);
  });
});

describe('arrays', () => {
  test('have strides and isContiguous', () => {
    const { device } = fixture();
    const x = device.zeros([3, 4, 5], 'i16');
    expect([x.strides, x.isContiguous]).toEqual([[20, 5, 1], true]);
    const row = x.view(-1);
    expect([row.shape, row.strides, row.isContiguous, row.byteOffset]).toEqual([[4, 5], [5, 1], true, 80]);
    const column = x.view(0, undefined, 2);
    expect([column.shape, column.strides, column.isContiguous, column.length]).toEqual([[4], [5], false, 4]);
    const backwards = x.view(1, [undefined, undefined, -2]);
    expect([backwards.shape, backwards.strides, backwards.byteOffset]).toEqual([[2, 5], [-10, 1], (20 + 15) * 2]);
    expect(backwards.byteRange).toEqual([(20 + 5) * 2, 40 * 2]);
    const reversed = x.transpose();
    expect([reversed.shape, reversed.strides, reversed.transpose([2, 1, 0]).isContiguous]).toEqual([[5, 4, 3], [1, 5, 20], true]);
    expect(x.transpose([0, -1, 1]).shape).toEqual([3, 5, 4]);
    expect([x.view([1, 1]).shape, x.view([1, 1]).length, x.view(0, 0, 0).shape]).toEqual([[0, 4, 5], 0, []]);
    expect([x.subarray(5, -40).shape, column.subarray(1, 3).strides]).toEqual([[15], [5]]);
    expect([device.zeros([2, 0, 3]).transpose().reshape([0, 7]).shape, device.zeros([]).view().shape]).toEqual([[0, 7], []]);
  });

  test('have an address once the device has allocated them', () => {
    const { channel, device } = fixture();
    const x = device.zeros([4, 4], 'f64');
    expect(x.view(1, [undefined, undefined, -1]).nativePointer - x.nativePointer).toBe(56n);
    channel.memoryAddress = () => undefined;
    expect(() => x.nativePointer).toThrow(/has not allocated array f64\[4, 4\] yet/);
    x[Symbol.dispose]();
    expect(() => x.nativePointer).toThrow('disposed');
  });

  test.each([
    ['an index outside', (x) => x.view(3), 'index of dimension 0', 2],
    ['one before the first', (x) => x.view(0, -5), 'index of dimension 1', -4],
    ['a fraction', (x) => x.view(0.5), 'index of dimension 0', undefined],
    ['a step of 0', (x) => x.view([0, 2, 0]), 'index', undefined],
    ['a bound that is no number', (x) => x.view([0, 'two' as never]), 'stop of dimension 0', undefined],
    ['an entry too many', (x) => x.view([0, 1, 1, 1] as never), 'index', 3],
    ['an index too many', (x) => x.view(0, 0, 0), 'index', 2],
    ['axes that are no permutation', (x) => x.transpose([0, 0]), 'axes', 2],
    ['an axis too few', (x) => x.transpose([0]), 'axes', 2],
    ['an axis outside', (x) => x.transpose([0, 2]), 'axis', 1],
    ['axes that are no list', (x) => x.transpose('ab' as never), 'axes', 2],
    ['a clone on a stream of another device', (x) => x.clone(fixture().device.stream), 'stream', undefined],
  ] as readonly [string, (x: ReturnType<ReturnType<typeof fixture>['device']['zeros']>) => unknown, string, unknown][])(
    'refuse %s',
    (_, call, argument, limit) => {
      const x = fixture().device.zeros([3, 4]);
      const thrown = (() => {
        try {
          call(x);
        } catch (error) {
          return error as { name: string; argument: string; limit?: unknown };
        }
        return undefined;
      })();
      expect(thrown).toMatchObject({ name: 'ArgumentError', argument, ...(limit === undefined ? {} : { limit }) });
    },
  );
});

/** A shape of so many elements. */
function factored(length: number, seed: readonly number[]): number[] {
  if (length === 0) return [0, 2];
  const shape: number[] = [];
  let rest = length;
  for (const value of seed.slice(0, 4)) {
    const divisors = Array.from({ length: rest }, (_, n) => n + 1).filter((n) => rest % n === 0);
    const extent = divisors[value % divisors.length]!;
    shape.push(extent);
    rest /= extent;
  }
  return rest === 1 ? shape : [...shape, rest];
}
