// What sorts, searches, scans and counts, in plain JavaScript by NumPy's rules.
import * as ops from 'millrace/ops';
import type { DType } from 'millrace';
import { bitsOf, cast, epsilonOf, isFloat, type Value } from '../element-model.js';
import { filled } from './assembly.js';
import { type Case, countOf, type Held, type Maker, NUMBER_TYPES, valuesOf } from '../shaped-cases.js';
import { DTYPES } from '../values.js';

const isNan = (value: Value): boolean => value !== value;

/** -1, 0 or 1: NaN last in both directions, and both zeros equal. */
function order(a: Value, b: Value, isDescending = false): number {
  if (isNan(a) || isNan(b)) return Number(isNan(a)) - Number(isNan(b));
  return (a < b ? -1 : a > b ? 1 : 0) * (isDescending ? -1 : 1);
}

/** What becomes of each row along an axis, of as many elements or others. */
export function rowwise(
  { shape }: Pick<Held, 'shape'>,
  values: readonly Value[],
  axis: number,
  length: number,
  of: (row: readonly Value[]) => readonly Value[],
): Value[] {
  const inner = countOf(shape.slice(axis + 1));
  const extent = shape[axis] ?? 1;
  const rows = new Map<number, readonly Value[]>();
  return filled(shape.length === 0 ? [] : shape.with(axis, length), (at) => {
    const start = at.reduce((sum, place, own) => sum * shape[own]! + (own === axis ? 0 : place), 0);
    if (!rows.has(start)) rows.set(start, of(Array.from({ length: extent }, (_, n) => values[start + n * inner]!)));
    return rows.get(start)![at[axis] ?? 0]!;
  });
}

/** The numbers of the elements of a row in their order. */
function ordered(row: readonly Value[], isDescending: boolean): number[] {
  return row.map((_, at) => at).toSorted((p, q) => order(row[p]!, row[q]!, isDescending) || p - q);
}

function sortable(
  one: Case,
): readonly [x: Held, axis: number, opts: { readonly axis?: number; readonly descending?: boolean }, isDescending: boolean] {
  const x = one.held(one.choose(DTYPES), one.shape());
  const [axis, opts] = x.shape.length === 0 ? [0, {}] : one.axis(x.shape.length, -1);
  const descending = one.pattern(2) === 0;
  return [x, axis, { ...opts, ...((descending || one.flip()) && { descending }) }, descending];
}

const sort: Maker = (one) => {
  const [x, axis, opts, isDescending] = sortable(one);
  const exact = rowwise(x, valuesOf(x), axis, x.shape[axis]!, (row) => ordered(row, isDescending).map((at) => row[at]!));
  one.call('sort', [x.array], opts, { dtype: x.dtype, shape: x.shape, exact }, [x]);
};

const argsort: Maker = (one) => {
  const [x, axis, opts, isDescending] = sortable(one);
  const exact = rowwise(x, valuesOf(x), axis, x.shape[axis]!, (row) => ordered(row, isDescending).map(BigInt));
  one.call('argsort', [x.array], opts, { dtype: 'i32', shape: x.shape, exact }, [x]);
};

const topk: Maker = (one) => {
  const [x, axis, opts, isAscending] = sortable(one);
  const given = { ...opts, descending: !isAscending };
  const k = x.shape.length === 0 ? 1 : one.random(x.shape[axis]! + 1);
  const shape = x.shape.length === 0 ? [] : x.shape.with(axis, k);
  one.describe(`topk(${x.dtype}[${x.shape.join()}], ${k}, ${JSON.stringify(given)})`);
  const { values, indices } = ops.topk(x.array, k, given);
  const chosen = (of: (row: readonly Value[], at: number) => Value) =>
    rowwise(x, valuesOf(x), axis, k, (row) =>
      ordered(row, !isAscending)
        .slice(0, k)
        .map((at) => of(row, at)),
    );
  one.expect(values, { dtype: x.dtype, shape, exact: chosen((row, at) => row[at]!) });
  one.expect(indices, { dtype: 'i32', shape, exact: chosen((_row, at) => BigInt(at)) });
};

const searchSorted: Maker = (one) => {
  const dtype = one.choose(DTYPES);
  const length = one.extent();
  const drawn = one.held(dtype, [length]);
  const list = valuesOf(drawn).toSorted((a, b) => order(a, b));
  // A view from behind is in the other order.
  const isTurned = one.flip(3);
  const base = one.lined(dtype, [length], isTurned ? list.toReversed() : list);
  const array = isTurned ? base.array.view([undefined, undefined, -1]) : base.array;
  const values = one.held(dtype, one.shape());
  const side = one.choose(['left', 'right', undefined] as const);
  const exact = valuesOf(values).map((value) => BigInt(list.filter((other) => order(other, value) < (side === 'right' ? 1 : 0)).length));
  one.call('searchSorted', [array, values.array], side === undefined ? {} : { side }, { dtype: 'i32', shape: values.shape, exact }, [
    values,
  ]);
};

/** NumPy's types of sums: 64 bits for integers. */
const sumType = (dtype: DType): DType => (isFloat(dtype) ? dtype : dtype === 'bool' || dtype.startsWith('i') ? 'i64' : 'u64');
const computedIn = (dtype: DType): DType => (isFloat(dtype) && bitsOf(dtype) === 16 ? 'f32' : dtype);

function scan(name: 'cumsum' | 'cumprod'): Maker {
  return (one) => {
    const dtype = one.choose(DTYPES);
    const own = sumType(dtype);
    const fitting = NUMBER_TYPES.filter((each) => isFloat(each) === isFloat(dtype) || (isFloat(each) && name === 'cumsum'));
    const given = one.pattern(3) === 0 ? { dtype: one.choose(fitting) } : {};
    const type = given.dtype ?? own;
    if (isFloat(dtype) || isFloat(type)) one.range = one.flip(4) && dtype !== 'f64' && isFloat(dtype) ? 'any' : 'small';
    const x = one.held(
      dtype,
      one.flip(6) ? [300 + one.random(5000)] : one.shape(),
      name === 'cumprod' && isFloat(type) ? nearOne : undefined,
    );
    const [axis, opts] = x.shape.length === 0 ? [0, {}] : one.axis(x.shape.length, -1);
    const scanned = (of: (row: readonly Value[]) => readonly Value[]) => rowwise(x, valuesOf(x), axis, x.shape[axis] ?? 1, of);
    const isSum = name === 'cumsum';
    const inner = computedIn(type);
    const exact = scanned((row) => {
      if (!isFloat(type))
        return running(
          row,
          isSum ? 0n : 1n,
          (all, value) => cast(isSum ? all + (cast(value, type) as bigint) : all * (cast(value, type) as bigint), type) as bigint,
        );
      return running(row, isSum ? 0 : 1, (all, value) => (isSum ? all + Number(cast(value, inner)) : all * Number(cast(value, inner))));
    });
    const sizes = scanned((row) => running(row, 0, (size, value) => (isSum ? size + Math.abs(Number(cast(value, inner))) : size + 1)));
    const slack = isFloat(type)
      ? exact.map(
          (value, n) =>
            3 *
            epsilonOf(inner) *
            (isSum ? Number(sizes[n]) * (4 + Math.log2(x.shape[axis] ?? 1)) : Number(sizes[n]) * Math.abs(Number(value))),
        )
      : [];
    one.call(name, [x.array], { ...opts, ...given }, { dtype: type, own, shape: x.shape, exact, slack }, [x]);
  };
}

function running<T>(row: readonly Value[], first: T, next: (all: T, value: Value) => T): T[] {
  let all = first;
  return row.map((value) => (all = next(all, value)));
}

/** Products of such numbers stay in range, whatever there are. */
function nearOne(value: Value): Value {
  if (typeof value === 'bigint') return value % 2n === 0n ? 1n : value;
  return Number.isFinite(value) && value !== 0 ? (Math.abs(value) > 2 ? 1.25 : 0.75) * Math.sign(value) : value;
}

const binCount: Maker = (one) => {
  const dtype = one.choose(DTYPES.filter((each) => !isFloat(each)));
  const x = one.held(dtype, one.shape());
  const length = one.random(20);
  const exact = Array.from({ length }, (_, bin) => BigInt(valuesOf(x).filter((value) => value === BigInt(bin)).length));
  one.call('binCount', [x.array, length], {}, { dtype: 'i32', shape: [length], exact }, [x]);
};

const histogram: Maker = (one) => {
  const dtype = one.choose(DTYPES);
  const bins = 1 + one.random(12);
  const [low, width] = [one.pick([0, -3, -0.7, 0.1, -10]), one.pick([1, 0.3, 7, 10.1, 20])];
  const high = low + width;
  // NumPy's edges.
  const edges = Array.from({ length: bins + 1 }, (_, n) => (n === bins ? high : low + n * ((high - low) / bins)));
  const x = one.held(dtype, one.shape(), isFloat(dtype) ? (value) => cast(one.flip(3) ? one.pick(edges) : value, dtype) : undefined);
  const exact = Array.from({ length: bins }, (_, bin) => {
    const isIn = (value: number): boolean => value >= edges[bin]! && (bin === bins - 1 ? value <= high : value < edges[bin + 1]!);
    return BigInt(valuesOf(x).filter((value) => isIn(Number(value))).length);
  });
  one.call('histogram', [x.array, bins], { range: [low, high] }, { dtype: 'i32', shape: [bins], exact }, [x]);
};

const unique: Maker = async (one) => {
  const x = one.held(one.choose(DTYPES), one.shape());
  const sorted = valuesOf(x).toSorted((a, b) => order(a, b));
  const exact = sorted.filter((value, n) => n === 0 || order(sorted[n - 1]!, value) !== 0);
  one.describe(`unique(${x.dtype}[${x.shape.join()}])`);
  one.expect(await ops.unique(x.array), { dtype: x.dtype, shape: [exact.length], exact, looseZero: true });
};

export const ORDER = {
  sort,
  argsort,
  topk,
  searchSorted,
  cumsum: scan('cumsum'),
  cumprod: scan('cumprod'),
  binCount,
  histogram,
  unique,
} as const satisfies Readonly<Record<string, Maker>>;
