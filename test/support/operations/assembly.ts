// What puts arrays together and takes them apart, in plain JavaScript by NumPy's rules.
import type { DeviceArray, DType } from 'millrace';
import { ArgumentError, BoundsError } from 'millrace';
import { expect } from 'vitest';
import * as ops from 'millrace/ops';
import { cast, isTrue, type Value } from '../element-model.js';
import { together } from '../operation-model.js';
import { broadcastValues } from '../random-views.js';
import { type Case, countOf, type Held, type Maker, places, stridesOf, valuesOf, WHOLE_TYPES } from '../shaped-cases.js';
import { DTYPES } from '../values.js';
import { rejectionOf } from '../wait.js';

/** An element of an array by its numbers along the axes. */
const elementOf = ({ shape }: { readonly shape: readonly number[] }, values: readonly Value[], at: readonly number[]): Value =>
  values[at.reduce((sum, place, axis) => sum * shape[axis]! + place, 0)]!;

/** Values of each element of a shape. */
export function filled(shape: readonly number[], of: (at: readonly number[]) => Value): Value[] {
  const strides = stridesOf(shape);
  return places(shape, strides).map((place) => of(shape.map((extent, axis) => Math.trunc(place / strides[axis]!) % extent)));
}

function someDtype(one: Case): { readonly dtype?: DType } {
  return one.pattern(4) === 0 ? { dtype: one.choose(DTYPES) } : {};
}

const concatenate: Maker = (one) => {
  const dtypes = Array.from({ length: 1 + one.pattern(4) }, () => one.choose(DTYPES));
  if (one.pattern(2) === 0) dtypes.fill(dtypes[0]!);
  const shape = one.shape(1);
  const [axis, opts] = one.axis(shape.length, 0);
  const parts = dtypes.map((dtype) =>
    one.held(
      dtype,
      shape.map((extent, own) => (own === axis ? one.extent() : extent)),
    ),
  );
  const total = parts.reduce((sum, part) => sum + part.shape[axis]!, 0);
  const list = parts.flatMap((part) => Array.from({ length: part.shape[axis]! }, (_, at) => [part, valuesOf(part), at] as const));
  joinedBy(one, 'concatenate', parts, shape.with(axis, total), opts, (at) => {
    const [part, values, own] = list[at[axis]!]!;
    return elementOf(part, values, at.with(axis, own));
  });
};

const stack: Maker = (one) => {
  const dtypes = Array.from({ length: 1 + one.pattern(4) }, () => one.choose(DTYPES));
  if (one.pattern(2) === 0) dtypes.fill(dtypes[0]!);
  const shape = one.shape(0, 3);
  const [axis, opts] = one.axis(shape.length + 1, 0);
  const parts = dtypes.map((dtype) => one.held(dtype, shape));
  const values = parts.map(valuesOf);
  joinedBy(one, 'stack', parts, shape.toSpliced(axis, 0, parts.length), opts, (at) =>
    elementOf(parts[0]!, values[at[axis]!]!, at.toSpliced(axis, 1)),
  );
};

function joinedBy(
  one: Case,
  name: string,
  parts: readonly Held[],
  shape: readonly number[],
  opts: object,
  of: (at: readonly number[]) => Value,
): void {
  const own = together(parts.map((part) => part.dtype));
  const given = someDtype(one);
  const exact = filled(shape, of);
  one.call(name, [parts.map((part) => part.array)], { ...opts, ...given }, { dtype: given.dtype ?? own, own, shape, exact }, parts);
}

const split: Maker = (one) => {
  const x = one.held(one.choose(DTYPES), one.shape(1));
  const [axis, opts] = one.axis(x.shape.length, 0);
  const extent = x.shape[axis]!;
  const divisors = Array.from({ length: extent }, (_, at) => at + 1).filter((parts) => extent % parts === 0);
  // Of no elements any number of parts are equal.
  const parts = one.flip()
    ? one.pick(divisors.length === 0 ? [1, 3] : divisors)
    : Array.from({ length: one.random(4) }, () => one.random(extent + 1));
  if (Array.isArray(parts) && !one.flip(4)) parts.sort((a, b) => a - b);
  const bounds = Array.isArray(parts) ? parts : Array.from({ length: parts - 1 }, (_, at) => ((at + 1) * extent) / parts);
  one.describe(`split([${x.shape.join()}], ${JSON.stringify(parts)}, ${JSON.stringify(opts)})`);
  const views = ops.split(x.array, parts, opts);
  if (views.length !== bounds.length + 1) throw new Error(`${one.text}: ${views.length} views`);
  for (const [at, from] of [0, ...bounds].entries()) {
    const length = Math.max(0, (bounds[at] ?? extent) - from);
    const shape = x.shape.with(axis, length);
    const exact = filled(shape, (place) => elementOf(x, valuesOf(x), place.with(axis, place[axis]! + from)));
    one.expect(views[at]!, { dtype: x.dtype, shape, exact });
  }
};

const tile: Maker = (one) => {
  const dtype = one.choose(DTYPES);
  const x = one.held(
    dtype,
    one.shape(0, 3).map((extent) => Math.min(extent, 9)),
  );
  const counts = Array.from({ length: one.random(5) }, () => (one.flip(12) ? 0 : 1 + one.random(3)));
  const rank = Math.max(counts.length, x.shape.length);
  const extents = [...Array<number>(rank - x.shape.length).fill(1), ...x.shape];
  const shape = extents.map((extent, axis) => extent * (counts[axis - rank + counts.length] ?? 1));
  const values = valuesOf(x);
  const exact = filled(shape, (at) =>
    elementOf(
      { shape: extents },
      values,
      at.map((place, axis) => place % extents[axis]!),
    ),
  );
  const given = someDtype(one);
  const [count = 1] = counts;
  const isNumber = counts.length === 1 && one.flip();
  one.call('tile', [x.array, isNumber ? count : counts], given, { dtype: given.dtype ?? dtype, own: dtype, shape, exact }, [x]);
};

/** Numbers along an axis, from either end; seldom one outside. */
function numbersFor(one: Case, extent: number, shape: readonly number[]): readonly [held: Held, isOutside: boolean] {
  const dtype = one.choose(WHOLE_TYPES);
  const isOutside = one.flip(12) || (extent === 0 && countOf(shape) > 0);
  const wrong = isOutside ? one.random(Math.max(1, countOf(shape))) : -1;
  let next = 0;
  const change = (): Value => {
    if (next++ === wrong || extent === 0) {
      const [low, high] = [cast(-(2n ** 63n), dtype), cast(2n ** 63n - 1n, dtype)] as [bigint, bigint];
      return cast(
        one.pick([
          BigInt(extent),
          dtype.startsWith('u') ? BigInt(extent) : BigInt(-extent - 1),
          low < 0n ? low : BigInt(extent),
          high > BigInt(extent) ? high : BigInt(extent),
        ]),
        dtype,
      );
    }
    const at = one.random(extent);
    return BigInt(dtype.startsWith('u') || one.flip() ? at : at - extent);
  };
  // Of a view, what is between its elements counts as little.
  const held = one.held(dtype, shape, change);
  const numbers = valuesOf(held) as bigint[];
  return [held, numbers.some((at) => at < -BigInt(extent) || at >= BigInt(extent))];
}

const take: Maker = async (one) => {
  const dtype = one.choose(DTYPES);
  const x = one.held(dtype, one.shape(1, 3));
  const [axis, opts] = one.axis(x.shape.length, 0);
  const extent = x.shape[axis]!;
  const [indices, isOutside] = numbersFor(one, extent, one.shape(0, 2));
  const shape = x.shape.toSpliced(axis, 1, ...indices.shape);
  one.describe(`take(${dtype}[${x.shape.join()}], ${indices.dtype}[${indices.shape.join()}], ${JSON.stringify(opts)})`);
  if (isOutside && countOf(shape) > 0) return refused(one, extent, () => ops.take(x.array, indices.array, opts));
  const numbers = valuesOf(indices).map((value) => (Number(value) + extent) % extent);
  const rank = indices.shape.length;
  const values = valuesOf(x);
  const exact = filled(shape, (at) => {
    const chosen = at.slice(axis, axis + rank).reduce((sum, place, own) => sum * indices.shape[own]! + place, 0);
    return elementOf(x, values, at.toSpliced(axis, rank, numbers[chosen]!));
  });
  const given = someDtype(one);
  one.call('take', [x.array, indices.array], { ...opts, ...given }, { dtype: given.dtype ?? dtype, own: dtype, shape, exact }, [
    x,
    indices,
  ]);
};

/** An index outside fails the operation; that an axis without elements has none is known at the call. */
async function refused(one: Case, extent: number, call: () => DeviceArray): Promise<void> {
  if (extent === 0) {
    expect(call, one.text).toThrow(ArgumentError);
    return;
  }
  const made = call();
  const error = await rejectionOf(made.read());
  const cause = (error as Error).cause ?? error;
  if (!(cause instanceof BoundsError)) throw new Error(`${one.text}: ${String(error)} is no BoundsError`);
  one.owned.push(made);
}

const KINDS: Readonly<Record<string, readonly DType[]>> = {
  f: DTYPES,
  i: DTYPES.filter((dtype) => !dtype.includes('f')),
  u: DTYPES.filter((dtype) => dtype.startsWith('u') || dtype === 'bool'),
};

const put: Maker = async (one) => {
  const dtype = one.choose(DTYPES);
  const x = one.held(dtype, one.shape(1, 3));
  const [axis, opts] = one.axis(x.shape.length, 0);
  const extent = x.shape[axis]!;
  const [indices, isOutside] = numbersFor(one, extent, one.shape(0, 2));
  const shape = x.shape.toSpliced(axis, 1, ...indices.shape);
  const from = one.choose(KINDS[dtype.includes('f') ? 'f' : dtype[0]!] ?? (['bool'] as const));
  const isNumber = one.pattern(4) === 0;
  const number: Value =
    dtype === 'bool' ? BigInt(one.random(2)) : dtype.includes('f') ? one.pick([0.5, Number.NaN, -0, 3]) : BigInt(one.random(100));
  const kept = shape.slice(one.flip(3) ? one.random(shape.length + 1) : 0).map((size) => (one.flip(3) ? 1 : size));
  const values = isNumber ? undefined : one.held(from, kept);
  const given = values
    ? values.array
    : dtype === 'bool'
      ? number === 1n
      : typeof number === 'bigint' && one.flip()
        ? number
        : Number(number);
  one.describe(
    `put(${dtype}[${x.shape.join()}], ${indices.dtype}[${indices.shape.join()}], ${values ? `${from}[${kept.join()}]` : String(given)}, ${JSON.stringify(opts)})`,
  );
  const run = (): DeviceArray => ops.put(x.array, indices.array, given, opts);
  if (isOutside && countOf(shape) > 0) {
    await refused(one, extent, run);
    one.checks.length = 0;
    return;
  }
  const written = values ? broadcastValues(valuesOf(values), kept, shape) : Array<Value>(countOf(shape)).fill(number);
  const numbers = valuesOf(indices).map((value) => (Number(value) + extent) % extent);
  const rank = indices.shape.length;
  const result = [...valuesOf(x)];
  let next = 0;
  for (const at of positions(shape)) {
    const chosen = at.slice(axis, axis + rank).reduce((sum, place, own) => sum * indices.shape[own]! + place, 0);
    const place = at.toSpliced(axis, rank, numbers[chosen]!).reduce((sum, own, along) => sum * x.shape[along]! + own, 0);
    result[place] = cast(written[next++]!, dtype);
  }
  one.expect(run(), { dtype, shape: x.shape, exact: result }, x);
};

function positions(shape: readonly number[]): (readonly number[])[] {
  const all: (readonly number[])[] = [];
  filled(shape, (at) => {
    all.push(at);
    return 0;
  });
  return all;
}

const compact: Maker = async (one) => {
  const x = one.held(one.choose(DTYPES), one.shape());
  const flags = one.choose(DTYPES);
  const mask = one.held(flags, x.shape, one.flip() ? (value) => (one.flip() ? value : cast(0n, flags)) : undefined);
  const values = valuesOf(x);
  const exact = valuesOf(mask).flatMap((flag, n) => (isTrue(flag) ? [values[n]!] : []));
  one.describe(`compact(${x.dtype}[${x.shape.join()}], ${mask.dtype})`);
  one.expect(await ops.compact(x.array, mask.array), { dtype: x.dtype, shape: [exact.length], exact });
};

export const ASSEMBLY = { concatenate, stack, split, tile, take, put, compact } as const satisfies Readonly<Record<string, Maker>>;
