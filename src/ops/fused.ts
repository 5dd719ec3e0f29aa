// Runs a function of single elements over arrays of any strides, in one kernel. The kernel is written for the types of the operands and for how
// they lie beside each other, in the language of TypeScript kernels, so both devices compile it, and the CPU device runs it in SIMD lanes.
import { badArgument, show } from '../core/base/arguments.js';
import { DeviceArray } from '../core/api/array.js';
import { type DType, i32, is16BitFloat, type Scalar, scalarOf } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { ScalarSlot } from '../core/graphs/slots.js';
import { inout, input, type Kernel, output, type Param } from '../core/kernels/kernel.js';
import { kernelOfText } from '../compiler/definitions/kernel.js';
import type { CallSite } from '../compiler/diagnostics/diagnostics.js';
import type { FuncIr, ScalarType } from '../compiler/ir/ir.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { broadcastShape, broadcastStrides, isSameLayout, isSameList, joined } from './layout.js';
import { type Form as DeviceForm, formsOf, type Target } from './target.js';

/** An operand: an array, or a number, or the slot of one in a capture, which counts as an array without dimensions. */
export type Operand = DeviceArray | number | bigint | boolean | ScalarSlot;

/** A function of single elements, for one choice of types. */
export interface Compiled {
  /** Distinguishes it from others of the same operation. */
  readonly key: string;
  readonly params: readonly ScalarType[];
  readonly result: ScalarType;
  readonly func: FuncIr;
}

/** A shorter innermost axis fills no block: threads then run over all elements, and find their place by divisions. */
const LEAST_ROW = 64;
/** Elements of one thread of a GPU in large contiguous arrays: with one load each under way, its threads cannot keep its memory occupied. */
const GPU_ITEMS = 4;
/** Threads whose elements lie side by side: a block's, so that each block reads and stores one part of the memory. A power of two. */
const GPU_BLOCK = 256;
/** About as many threads as the largest GPU runs at once: arrays of no more elements have a thread for each. A power of two. */
const GPU_THREADS = 2 ** 18;
/** CUDA's limit of blocks along y; a row is one thread along y at least. */
const MOST_ROWS = 65535;

export function isArray(operand: unknown): operand is DeviceArray {
  return operand instanceof DeviceArray;
}

/** The arrays among operands. Throws ArgumentError for operands of other kinds, and without an array. */
export function arraysAmong(name: string, operands: readonly unknown[]): DeviceArray[] {
  for (const [at, operand] of operands.entries()) {
    const isNumber = typeof operand === 'number' || typeof operand === 'bigint' || typeof operand === 'boolean';
    if (isArray(operand) || isNumber || operand instanceof ScalarSlot) continue;
    throw badArgument(
      `operand ${at}`,
      operand,
      `Operand ${at} of ${name} (${show(operand)}) is no device array and no number.${ofText(operand)}`,
    );
  }
  const arrays = operands.filter(isArray);
  if (arrays.length === 0)
    throw badArgument('operands', operands, `No operand of ${name} is a device array: calculate with numbers in JavaScript.`);
  return arrays;
}

/** The remedy for an operand x + 1, of which JavaScript makes a text. */
function ofText(operand: unknown): string {
  return typeof operand === 'string' && operand.includes('DeviceArray') ? ' The operator + does not add arrays: call add(x, 1).' : '';
}

/** Throws ArgumentError unless all operands are arrays. */
export function onlyArrays(name: string, operands: readonly unknown[]): void {
  for (const [at, operand] of operands.entries()) {
    if (isArray(operand)) continue;
    throw badArgument(
      `operand ${at}`,
      operand,
      `Operand ${at} of ${name} (${show(operand)}) is no device array: device.from() makes one.${ofText(operand)}`,
    );
  }
}

/** The C++ of a value of one register type as another: `numpy.ndarray.astype` of one element. */
export function castText(text: string, from: ScalarType, to: ScalarType): string {
  if (from === to) return text;
  if (to === 'bool') return `${text} !== ${from === 'i64' || from === 'u64' ? `${from}(0)` : '0'}`;
  return from === 'bool' ? `${to}(${text} ? 1 : 0)` : `${to}(${text})`;
}

/** Names that a statement of `storeText` may use. */
export const STORE_NAMES = 'floatBits, bitsFloat';

/**
 * The statement that stores a value of a register type in an element. Rounded to 16 bits, it passes an f32: one that is not exact gets an odd last
 * bit, so that no tie is made or lost.
 */
export function storeText(to: string, value: string, from: ScalarType, dtype: DType): string {
  const isInexact = from === 'f64' || (dtype === 'bf16' && /^[iu]/.test(from));
  if (!isInexact || !is16BitFloat(dtype)) return `${to} = ${castText(value, from, REGISTER_TYPE[dtype])};`;
  const isWide = from === 'i64' || from === 'u64';
  // Wide integers of more than 53 bits are not exact as f64 either: an odd last bit stands for what is lost.
  const isLong = from === 'i64' ? 'whole > 9007199254740992n || whole < -9007199254740992n' : 'whole > 9007199254740992n';
  const d = isWide
    ? `const whole = ${value}; const high = whole >> 11n;
    const d = ${isLong} ? f64((whole & 2047n) === 0n ? high : high | 1n) * 2048 : f64(whole);`
    : `const d = ${castText(value, from, 'f64')};`;
  return `{ ${d} const near = f32(d); const bits = floatBits(near);
    ${to} = f64(near) === d || d !== d || (bits & 1) !== 0 ? near : bitsFloat(Math.abs(f64(near)) < Math.abs(d) ? bits + 1 : bits - 1); }`;
}

/** The kernels of one function, by the types and the layout of their operands. */
export class Fused {
  readonly name: string;
  readonly #site: CallSite;
  readonly #kernels: Map<string, Kernel> = new Map();

  /** `site`: where the user wrote the function. */
  constructor(name: string, site: CallSite = { file: undefined, line: 0 }) {
    this.name = name;
    this.#site = site;
  }

  /** Submits the function over the operands, broadcast, and returns the array of the results, of type `dtype`. */
  run(operands: readonly Operand[], compiled: Compiled, dtype: DType, target: Target): DeviceArray {
    const flat = flatShape(operands);
    const shape =
      flat ??
      broadcastShape(
        this.name,
        operands.filter(isArray).map(({ shape: own }) => own),
      );
    const result = target.take(shape, dtype);
    try {
      if (result.length === 0) return result;
      const isFlat = flat !== undefined && result.isContiguous && operands.every((one) => !isArray(one) || one.storage !== result.storage);
      if (isFlat) this.#submitFlat(operands, compiled, result, target);
      else this.#submit(operands, compiled, result, target);
    } catch (error) {
      target.giveBack(result);
      throw error;
    }
    return result;
  }

  /** The same as `#submit` for contiguous arrays of one shape, which most are: it does without a look at the axes. */
  #submitFlat(operands: readonly Operand[], compiled: Compiled, result: DeviceArray, target: Target): void {
    for (const form of formsOf(target)) {
      const args: Record<string, unknown> = {};
      for (let at = 0; at < operands.length; at++) {
        const operand = operands[at]!;
        args[NAMES[at] ?? `x${at}`] = isArray(operand) ? operand.span[0] : numberOf(operand, numberType(operand, compiled.params[at]!));
      }
      args['y'] = result.span[0];
      target.recorder.launch(
        this.flatKernel(form, operands, compiled, result.dtype),
        flatThreads(form, result.length, args),
        args as never,
      );
    }
  }

  /** The kernel for contiguous arrays of one shape: its parameters are `x0`, ..., the result `y`, and what `flatThreads` adds. */
  flatKernel(form: DeviceForm, operands: readonly Operand[], compiled: Compiled, dtype: DType): Kernel {
    let key = `${form}${compiled.key}>${dtype}`;
    for (let at = 0; at < operands.length; at++) {
      const operand = operands[at]!;
      key += isArray(operand) ? `|${operand.dtype}` : `|=${numberType(operand, compiled.params[at]!)}`;
    }
    let kernel = this.#kernels.get(key);
    if (kernel === undefined) {
      const params: Record<string, Param> = {};
      const values = operands.map((operand, at) => {
        const own = isArray(operand) ? operand.dtype : numberType(operand, compiled.params[at]!);
        params[`x${at}`] = isArray(operand) ? input(scalarOf(own)) : scalarOf(own);
        return (place: string): string =>
          castText(isArray(operand) ? `x${at}[${place}]` : `x${at}`, REGISTER_TYPE[own], compiled.params[at]!);
      });
      params['y'] = output(scalarOf(dtype));
      if (form === 'gpu') Object.assign(params, { n: i32, apart: i32 });
      const store = (place: string, texts: readonly string[]): string =>
        storeText(`y[${place}]`, `f(${texts.join(', ')})`, compiled.result, dtype);
      const statement =
        form === 'gpu'
          ? spread(values, store)
          : store(
              'i',
              values.map((value) => value('i')),
            );
      kernel = this.#written(compiled, params, textOf('line', 0, Object.keys(params), statement));
      this.#kernels.set(key, kernel);
    }
    return kernel;
  }

  #written(compiled: Compiled, params: Record<string, Param>, text: string): Kernel {
    return kernelOfText(this.name, params, text, new Map([['f', compiled.func]]), this.#site);
  }

  #submit(operands: readonly Operand[], compiled: Compiled, result: DeviceArray, target: Target): void {
    const { recorder } = target;
    if (operands.some((operand) => isArray(operand) && crosses(operand, result))) {
      using between = target.temporary(result.shape, result.dtype);
      this.#submit(operands, compiled, between, target);
      recorder.copy(result, between);
      return;
    }
    const arrays = [...operands.filter(isArray), result];
    const { extents, strides } = joined({ extents: result.shape, strides: arrays.map((array) => broadcastStrides(array, result.shape)) });
    const { shape, form } = launchOf(extents);
    const args: Record<string, unknown> = {};
    const params: Record<string, Param> = {};
    const values: string[] = [];
    const give = (name: string, param: Param, value: unknown): void => {
      params[name] = param;
      args[name] = value;
    };
    let key = form + extents.length;
    let next = 0;
    const place = (name: string, array: DeviceArray, param: (type: Scalar) => Param): string => {
      const [elements, first] = array.span;
      const own = strides[next++] as readonly number[];
      give(name, param(scalarOf(array.dtype)), elements);
      const terms: string[] = [];
      if (first !== 0) {
        give(`${name}o`, i32, first);
        terms.push(`${name}o`);
      }
      for (const [axis, stride] of own.entries()) {
        if (stride === 0) continue;
        // A stride of 1 is written into the kernel, so that compilers see neighbours.
        if (stride === 1 && axis === own.length - 1) terms.push(`i${axis}`);
        else {
          give(`${name}s${axis}`, i32, stride);
          terms.push(`i${axis} * ${name}s${axis}`);
        }
      }
      key += `|${array.dtype}:${terms.join('+')}`;
      return `${name}[${terms.join(' + ') || '0'}]`;
    };
    // An operand that is also the result is one parameter.
    let to: string | undefined;
    for (const [at, operand] of operands.entries()) {
      const as = compiled.params[at] as ScalarType;
      if (isArray(operand)) {
        const isResult = isSameMemory(operand, result);
        let text = isResult ? to : undefined;
        if (text === undefined) text = place(`x${at}`, operand, isResult ? inout : input);
        else next++;
        if (isResult) to = text;
        values.push(castText(text, REGISTER_TYPE[operand.dtype], as));
      } else {
        const dtype = numberType(operand, as);
        give(`x${at}`, scalarOf(dtype), numberOf(operand, dtype));
        key += `|=${dtype}`;
        values.push(castText(`x${at}`, REGISTER_TYPE[dtype], as));
      }
    }
    to ??= place('y', result, result.isContiguous ? output : inout);
    key += `>${to}>${result.isContiguous}>${compiled.key}`;
    if (form !== 'line') for (const [axis, extent] of extents.entries()) give(`n${axis}`, i32, extent);
    let kernel = this.#kernels.get(key);
    if (kernel === undefined) {
      const statement = storeText(to, `f(${values.join(', ')})`, compiled.result, result.dtype);
      kernel = this.#written(compiled, params, textOf(form, extents.length, Object.keys(params), statement));
      this.#kernels.set(key, kernel);
    }
    recorder.launch(kernel, { threads: shape, label: this.name }, args as never);
  }
}

/** The threads of a kernel for contiguous arrays, and its arguments beside these. */
export function flatThreads(form: DeviceForm, length: number, args: Record<string, unknown>): number {
  if (form === 'cpu') return length;
  args['n'] = length;
  const isLarge = length > GPU_THREADS;
  args['apart'] = isLarge ? GPU_BLOCK : GPU_THREADS;
  if (!isLarge) return length;
  const rest = length % (GPU_ITEMS * GPU_BLOCK);
  return (length - rest) / GPU_ITEMS + Math.min(rest, GPU_BLOCK);
}

/**
 * Statements for the elements of a thread, `apart` from each other, all of which are loaded before the first is stored. So many threads as `apart`
 * have neighbours of each. No place exceeds the length, which may be the largest i32.
 */
function spread(values: readonly ((place: string) => string)[], store: (place: string, texts: readonly string[]) => string): string {
  const places = Array.from({ length: GPU_ITEMS }, (_, item) => `first + ${item} * apart`);
  const loads = places.map((place, item) => values.map((value, at) => `const a${at}_${item} = ${value(place)};`).join(' '));
  const stores = places.map((place, item) =>
    store(
      place,
      values.map((_, at) => `a${at}_${item}`),
    ),
  );
  return `const own = i & (apart - 1); const first = (i - own) * ${GPU_ITEMS} + own;
    if (first < n - ${GPU_ITEMS - 1} * apart) { ${[...loads, ...stores].join(' ')} }
    else for (let left = n - first; left > 0; left -= apart) { const at = n - left; ${store(
      'at',
      values.map((value) => value('at')),
    )} }`;
}

/** Names of the first operands: a template string takes longer. */
const NAMES: readonly string[] = ['x0', 'x1', 'x2'];

/** The type in which a kernel takes a number. */
function numberType(operand: Exclude<Operand, DeviceArray>, as: ScalarType): DType {
  return operand instanceof ScalarSlot ? operand.dtype : as;
}

/** What a launch takes. A number of a condition is true as in NumPy, NaN too. */
function numberOf(operand: Exclude<Operand, DeviceArray>, dtype: DType): Exclude<Operand, DeviceArray> {
  if (operand instanceof ScalarSlot || (typeof operand === 'number' && dtype !== 'bool')) return operand;
  if (dtype === 'bool') return Number(operand) !== 0;
  return dtype === 'i64' || dtype === 'u64' ? BigInt(operand) : Number(operand);
}

/** The shape of the arrays among the operands if it is one, and if they are contiguous. */
function flatShape(operands: readonly Operand[]): readonly number[] | undefined {
  let shape: readonly number[] | undefined;
  for (const operand of operands) {
    if (!isArray(operand)) continue;
    if (!operand.isContiguous) return undefined;
    const own = operand.shape;
    if (shape === undefined) shape = own;
    else if (!isSameList(own, shape)) return undefined;
  }
  return shape;
}

function isSameMemory(operand: DeviceArray, result: DeviceArray): boolean {
  if (operand.storage !== result.storage || operand.byteOffset !== result.byteOffset || operand.dtype !== result.dtype) return false;
  return isSameLayout({ shape: result.shape, strides: broadcastStrides(operand, result.shape) }, result);
}

/** Whether the arrays share bytes in another way than element by element, so that a result would overwrite what is read later. */
function crosses(operand: DeviceArray, result: DeviceArray): boolean {
  if (operand.storage !== result.storage) return false;
  const [start, end] = operand.byteRange;
  const [from, to] = result.byteRange;
  return start < to && from < end && !isSameMemory(operand, result);
}

type Form = 'line' | 'rows' | 'flat';

/** The threads for axes of these extents, and how a thread finds its elements. */
function launchOf(extents: readonly number[]): { readonly shape: readonly number[]; readonly form: Form } {
  const last = extents.at(-1) ?? 1;
  if (extents.length < 2) return { shape: [last], form: 'line' };
  const rows = lengthOf(extents.slice(0, -1));
  return last < LEAST_ROW ? { shape: [rows * last], form: 'flat' } : { shape: [Math.min(rows, MOST_ROWS), last], form: 'rows' };
}

/** The body of a kernel that runs `statement` for each element, with its place along each axis in `i0`, `i1`, ... */
function textOf(form: Form, rank: number, names: readonly string[], statement: string): string {
  const head = `({ ${names.join(', ')} }, { i, ${form === 'rows' ? 'j, ' : ''}f, idiv, ${STORE_NAMES}, i32, u32, i64, u64, f32, f64 }) =>`;
  if (form === 'line') return `${head} { ${rank === 0 ? '' : 'const i0 = i; '}${statement} }`;
  const last = rank - 1;
  if (form === 'flat') return `${head} { ${placesIn('i', last)} ${statement} }`;
  const rows = Array.from({ length: last }, (_, axis) => `n${axis}`).join(' * ');
  return `${head} { for (let r = i; r < ${rows}; r += ${MOST_ROWS}) { const i${last} = j; ${placesIn('r', last - 1)} ${statement} } }`;
}

/** Declares the place along axes 0 to `last` of an element, from its number in row-major order: `i0`, ... for extents `n0`, ... */
export function placesIn(number: string, last: number, place: string = 'i', extent: string = 'n'): string {
  let rest = number;
  let text = '';
  for (let axis = last; axis > 0; axis--) {
    text += `const ${place}${axis} = ${rest} % ${extent}${axis}; const ${place}q${axis} = idiv(${rest}, ${extent}${axis}); `;
    rest = `${place}q${axis}`;
  }
  return last < 0 ? text : `${text}const ${place}0 = ${rest};`;
}
