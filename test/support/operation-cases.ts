// Random cases of the operations of millrace/ops: the call, and what its result must be by operation-model.ts.
import type { Device, DeviceArray, DType } from 'millrace';
import * as ops from 'millrace/ops';
import {
  cast,
  decoded,
  type HostArray,
  isFloat,
  numberType,
  promotedTypes,
  type Range,
  rounded,
  ulpOf,
  type Value,
} from './element-model.js';
import { IS_LONG } from './long.js';
import { type ElementModel, type FoldModel, together, ulpsOf } from './operation-model.js';
import type { RandomNumber } from './random-text.js';
import {
  broadcastShape,
  broadcastValues,
  castAll,
  countOf,
  type Held,
  type Layout,
  narrowedShape,
  places,
  randomHeld,
  randomShape,
  stridesOf,
  valuesOf,
} from './random-views.js';
import type { Target } from './target.js';
import { DTYPES } from './values.js';

export type Call = (...args: unknown[]) => DeviceArray;
export const callOf = (name: string): Call => (ops as unknown as Readonly<Record<string, Call>>)[name]!;

/** What a case expects of an array, and what it was. */
export interface Checked {
  readonly text: string;
  readonly array: DeviceArray;
  readonly wanted: readonly Value[];
  isNear(n: number, own: Value, wanted: Value): boolean;
}

export async function differences(checks: readonly Checked[]): Promise<string[]> {
  const found: string[] = [];
  for (const { text, array, wanted, isNear } of checks) {
    let own: Value[];
    try {
      own = decoded(array.dtype, (await array.read()) as unknown as HostArray);
    } catch (error) {
      found.push(`${text}: ${String(error)}`);
      continue;
    }
    const at = wanted.findIndex((value, n) => !isNear(n, own[n]!, value));
    if (own.length !== wanted.length) found.push(`${text}: ${own.length} elements, not ${wanted.length}`);
    else if (at >= 0) found.push(`${text}: element ${at} is ${show(own[at]!)}, not ${show(wanted[at]!)}`);
  }
  return found;
}

const typeText = ({ dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] }): string => `${dtype}[${shape.join()}]`;
const show = (value: Value): string => (Object.is(value, -0) ? '-0' : String(value));
const isSame = (own: Value, wanted: Value, looseZero = false): boolean =>
  Object.is(own, wanted) || (looseZero && own === 0 && wanted === 0);

export function isWithin(dtype: DType, own: Value, exact: Value, slack: number): boolean {
  if (typeof own === 'bigint' || typeof exact === 'bigint') return own === cast(exact, dtype);
  if (!Number.isFinite(exact) || !(slack > 0)) return Object.is(own, rounded(dtype, exact)) || (own === 0 && exact === 0);
  return own >= rounded(dtype, exact - slack) && own <= rounded(dtype, exact + slack);
}

/** One choice of what makes a kernel. */
interface Form {
  readonly dtypes: readonly DType[];
  readonly layout: Layout;
  readonly rank: number;
  /** The operand that is a number. */
  readonly number: number;
  readonly result: 'new' | 'out' | 'operand' | 'overlap' | 'dtype';
}

const RESULTS = ['new', 'new', 'out', 'operand', 'overlap', 'dtype'] as const;
/** What is drawn at random. `pattern`: what makes another kernel, the same in all cases of a form but in the long form. */
export interface Draw {
  readonly random: RandomNumber;
  readonly pattern: RandomNumber;
}
const pick = <T>(random: RandomNumber, of: readonly T[]): T => of[random(of.length)]!;

export function formOf(random: RandomNumber, n: number, { arity, types }: ElementModel): Form {
  const fitting = DTYPES.filter((dtype) => types(dtype));
  const one = pick(random, fitting);
  for (;;) {
    const dtypes = Array.from({ length: arity }, () => (n % 3 === 1 ? one : pick(random, DTYPES)));
    const layout = n % 2 === 0 ? 'line' : 'view';
    const rank = layout === 'line' ? random(4) : IS_LONG ? random(6) : 2;
    const number = arity > 1 && n % 3 === 2 ? random(arity) : -1;
    if (types(together(dtypes)))
      return { dtypes, layout, rank, number, result: IS_LONG ? pick(random, RESULTS) : RESULTS[n % 3 === 0 ? 0 : 1 + random(5)]! };
  }
}

/** A fraction makes floats of integers, which some operations do not take. */
function randomNumber(random: RandomNumber, beside: DType, { types }: ElementModel): number {
  if (isFloat(beside)) return pick(random, [0, -0, 1, -2, 0.1, 2.5, 3, Number.NaN, Infinity, -Infinity, 1e-3]);
  if (random(4) === 0 && IS_LONG && types('f64')) return pick(random, [0.5, -2.25, Number.NaN, Infinity]);
  return random(beside === 'bool' || beside.startsWith('u') ? 128 : 100) - (beside.startsWith('i') ? 50 : 0);
}

/** Two views of one array that overlap, each of the given shape. */
function overlapping(
  device: Device,
  { random, pattern }: Draw,
  dtype: DType,
  shape: readonly number[],
): readonly [Held, (from: Held) => Held] {
  const [first = 0, ...rest] = shape;
  const base = randomHeld(device, random, dtype, [first + 1, ...rest], 'line');
  const isBack = pattern(2) === 1;
  const strides = stridesOf(base.shape);
  const part = (start: number, turned: boolean): Held => ({
    ...base,
    shape,
    array: base.array.view(turned ? [start + first - 1, start === 0 ? undefined : start - 1, -1] : [start, start + first]),
    at: turned
      ? places(shape, [-strides[0]!, ...strides.slice(1)], (start + first - 1) * strides[0]!)
      : places(shape, strides, start * strides[0]!),
  });
  const start = pattern(2);
  return [part(start, false), () => part(1 - start, isBack && first > 0)];
}

/** Runs one random case of an operation on elements. */
export function elementCase(
  device: Device,
  target: Target,
  name: string,
  model: ElementModel,
  form: Form,
  draw: Draw,
  text: string,
): readonly [Checked, Disposable[]] {
  const { random, pattern } = draw;
  const shape = randomShape(random, form.rank, pattern);
  const owned: Disposable[] = [];
  const arrayTypes = form.dtypes.filter((_, n) => n !== form.number && !(name === 'where' && n === 0));
  const beside = together(arrayTypes);
  const scalar =
    form.number < 0 ? undefined : randomNumber(random, name === 'where' && form.number === 0 ? form.dtypes[0]! : beside, model);
  const promotes =
    scalar === undefined || (name === 'where' && form.number === 0) ? beside : promotedTypes(beside, numberType(beside, scalar));
  const types = model.types(promotes)!;
  const isOut = form.result === 'out' || form.result === 'operand' || form.result === 'overlap';
  let shared: ((from: Held) => Held) | undefined;
  const held = form.dtypes.map((dtype, n) => {
    if (n === form.number) return undefined;
    if (form.result === 'overlap' && shared === undefined && form.rank > 0 && dtype === types[1]) {
      const [one, other] = overlapping(device, draw, dtype, shape);
      shared = other;
      return one;
    }
    const own = n === 0 || isOut ? shape : narrowedShape(pattern, shape);
    return randomHeld(device, random, dtype, own, form.layout, { pattern, range: name === 'power' ? 'small' : 'any' });
  });
  for (const one of held) if (one) owned.push(one.base);
  const present = held.filter((one) => one !== undefined);
  const full = broadcastShape(present.map((one) => one.shape));
  const opts: { out?: DeviceArray; dtype?: DType } = {};
  let [compute, result] = types;
  if (form.result === 'dtype' && name !== 'astype') {
    result = pick(
      pattern,
      DTYPES.filter((dtype) => promotedTypes(dtype, result) === dtype && model.types(dtype)),
    );
    if (types[1] !== 'bool' || types[0] === 'bool') compute = result;
    opts.dtype = result;
  }
  if (name === 'astype') result = pick(pattern, DTYPES);
  let out: Held | undefined;
  if (isOut && name !== 'astype') {
    const self = present.find(
      (one) => one.dtype === result && String(one.shape) === String(full) && new Set(one.at).size === one.at.length,
    );
    out = shared
      ? shared(present[0]!)
      : form.result === 'operand' && self
        ? self
        : randomHeld(device, random, result, full, form.layout, { pattern });
    owned.push(out.base);
    opts.out = out.array;
  }
  const operands = held.map((one) => one?.array ?? scalar);
  const isExact = model.isExact === true && present.length === 2 && present.every((one) => !isFloat(one.dtype));
  const columns = held.map((one, n) => {
    const values = one ? broadcastValues(valuesOf(one), one.shape, full) : Array<Value>(countOf(full)).fill(scalar!);
    return isExact || name === 'astype' || (name === 'where' && n === 0)
      ? values
      : one
        ? castAll(values, compute)
        : values.map((value) => cast(value, compute));
  });
  const exact = Array.from({ length: countOf(full) }, (_, n) =>
    model.of(
      columns.map((column) => column[n]!),
      compute,
    ),
  );
  const wanted = exact.map((value) => cast(value, result));
  const slack = ulpsOf(model, compute, target);
  const done = callOf(name)(...operands, ...(name === 'astype' ? [result] : []), opts);
  if (!opts.out) owned.push(done);
  const described = `${text}: ${name}(${held.map((one) => (one ? `${typeText(one)} ${form.layout}` : String(scalar))).join(', ')}) ${form.result} ${result}`;
  if (done.dtype !== result || String(done.shape) !== String(full) || (out && done !== out.array))
    throw new Error(`${described}: gives ${typeText(done)}`);
  const near = (own: Value, value: Value, n: number): boolean =>
    isSame(own, value, model.looseZero) ||
    (slack > 0 && typeof exact[n] === 'number' && isWithin(result, own, exact[n], slack * ulpOf(result, Number(value))));
  if (!out) return [{ text: described, array: done, wanted, isNear: (n, own, value) => near(own, value, n) }, owned];
  const base = [...out.whole];
  const from = new Map(out.at.map((place, n) => [place, n]));
  for (const [n, place] of out.at.entries()) base[place] = wanted[n]!;
  const isNear = (place: number, own: Value, value: Value): boolean =>
    from.has(place) ? near(own, value, from.get(place)!) : isSame(own, value);
  return [{ text: described, array: out.base, wanted: base, isNear }, owned];
}

/** Values whose sums and products stay in range. */
function calmed(value: Value, name: string): Value {
  if (typeof value === 'bigint') return value;
  if (name === 'prod')
    return Number.isFinite(value) ? (value === 0 ? value : Math.fround(0.75 + (Math.abs(value) % 0.5)) * (value < 0 ? -1 : 1)) : value;
  return Number.isFinite(value) && Math.abs(value) > 100 ? value % 100 : Math.abs(value) < 1e-4 ? 0 : value;
}

interface FoldForm {
  readonly dtype: DType;
  readonly layout: Layout;
  readonly rank: number;
  readonly axes: readonly number[];
  readonly dtypeOption: DType | undefined;
  readonly result: 'new' | 'out' | 'overlap';
}

export function foldForm(random: RandomNumber, n: number, model: FoldModel, name: string): FoldForm {
  const layout = n % 2 === 0 ? 'view' : 'line';
  const rank = IS_LONG ? random(6) : 3;
  const axes = Array.from({ length: rank }, (_, axis) => axis).filter(() => random(2) === 1);
  const dtype = pick(random, DTYPES);
  const dtypeOption =
    model.takesType && random(3) === 0
      ? pick<DType>(
          random,
          name === 'mean'
            ? ['f16', 'bf16', 'f32', 'f64']
            : DTYPES.filter((each) => each !== 'bool' && (name === 'sum' || isFloat(each) === isFloat(dtype))),
        )
      : undefined;
  return { dtype, layout, rank, axes, dtypeOption, result: pick(random, ['new', 'new', 'out', 'overlap']) };
}

/** A random array with calm values, where an operation needs them. */
function foldOperand(
  device: Device,
  { random, pattern }: Draw,
  name: string,
  dtype: DType,
  shape: readonly number[],
  layout: Layout,
): Held {
  const isCalm = isFloat(dtype) && !['min', 'max', 'argmin', 'argmax', 'all', 'any'].includes(name);
  const range: Range = isCalm && random(4) > 0 ? 'small' : 'any';
  const change = isCalm ? (value: Value): Value => rounded(dtype, calmed(value, name) as number) : undefined;
  return randomHeld(device, random, dtype, shape, layout, { range, pattern, ...(change && { change }) });
}

export function foldCase(
  device: Device,
  name: string,
  model: FoldModel,
  form: FoldForm,
  draw: Draw,
  text: string,
): readonly [Checked, Disposable[]] | undefined {
  const { axes, layout } = form;
  const { random, pattern } = draw;
  const shape = randomShape(random, form.rank, pattern);
  const isAll = axes.length === 0;
  const folded = isAll ? shape.map((_, axis) => axis) : axes;
  const keepDims = random(3) === 0;
  const kept = shape.map((_, axis) => axis).filter((axis) => !folded.includes(axis));
  const outer = kept.map((axis) => shape[axis]!);
  const inner = folded.map((axis) => shape[axis]!);
  if (model.needsElements && countOf(inner) === 0) return undefined;
  const x = foldOperand(device, draw, name, form.dtype, shape, layout);
  const owned: Disposable[] = [x.base];
  const type = form.dtypeOption ?? model.type(form.dtype);
  const resultShape = keepDims ? shape.map((extent, axis) => (folded.includes(axis) ? 1 : extent)) : outer;
  const ddof = model.takesDdof && countOf(inner) > 2 ? pattern(3) : 0;
  const opts: Record<string, unknown> = {
    keepDims: keepDims || undefined,
    ...(form.dtypeOption && { dtype: type }),
    ...(ddof > 0 && { ddof }),
  };
  const axisOf = (axis: number): number => (random(2) === 0 ? axis : axis - shape.length);
  if (!isAll || (random(2) === 0 && folded.length > 0))
    opts['axis'] = folded.length === 1 && random(2) === 0 ? axisOf(folded[0]!) : folded.map(axisOf);
  let out: Held | undefined;
  if (form.result === 'overlap' && type === form.dtype && shape.every((extent) => extent > 0)) {
    const strides = stridesOf(shape);
    const steps = resultShape.map((_, axis) => strides[keepDims ? axis : kept[axis]!]!);
    const start = places(resultShape, steps);
    const at = start.map((place) => x.at[place]!);
    const array = x.array.view(...shape.map((_, axis) => (folded.includes(axis) ? (keepDims ? ([0, 1] as const) : 0) : undefined)));
    out = { ...x, array, at, shape: resultShape };
  } else if (form.result !== 'new') {
    out = randomHeld(device, random, type, resultShape, layout, { pattern });
    owned.push(out.base);
  }
  if (out) opts['out'] = out.array;
  const strides = stridesOf(shape);
  const values = valuesOf(x);
  const within = places(
    inner,
    folded.map((axis) => strides[axis]!),
  );
  const results = places(
    outer,
    kept.map((axis) => strides[axis]!),
  ).map((start) =>
    model.of(
      within.map((place) => values[start + place]!),
      type,
      ddof,
    ),
  );
  const { out: _out, ...shown } = opts;
  const described = `${text}: ${name}(${typeText(x)} ${layout}, ${JSON.stringify(shown)}) ${out ? form.result : ''}`;
  const done = callOf(name)(x.array, opts);
  if (!out) owned.push(done);
  if (done.dtype !== type || String(done.shape) !== String(resultShape)) throw new Error(`${described}: gives ${typeText(done)}`);
  const near = (n: number, own: Value): boolean => isWithin(type, own, results[n]![0], results[n]![1]);
  const wanted = results.map(([exact]) => cast(exact, type));
  if (!out) return [{ text: described, array: done, wanted, isNear: near }, owned];
  const base = [...out.whole];
  const from = new Map(out.at.map((place, n) => [place, n]));
  for (const [n, place] of out.at.entries()) base[place] = wanted[n]!;
  const isNear = (place: number, own: Value, value: Value): boolean => (from.has(place) ? near(from.get(place)!, own) : isSame(own, value));
  return [{ text: described, array: out.base, wanted: base, isNear }, owned];
}
