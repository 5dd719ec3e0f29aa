// Complex numbers: a last axis of two, the real and the imaginary part, as `torch.view_as_real` shows them.
import { badArgument, refuseSurplus } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { arraysAmong, Fused, isArray, onlyArrays, type Operand } from './fused.js';
import { broadcastShape } from './layout.js';
import { type FloatOf, promoted } from './promotion.js';
import { binary, common, compile, type Result, type Together, type TypeOf } from './ready.js';
import { type OpOptions, targetOf } from './target.js';

const parts = new Fused('complex');
const product = new Fused('complexMultiply');
const mirror = new Fused('conjugate');
const distance = binary('magnitude', 'float', () => 'Math.hypot(a, b)');
const direction = binary('angle', 'float', () => 'Math.atan2(a, b)');

/** Throws ArgumentError unless the array has a last axis of two elements. */
export function checkComplex(name: string, z: unknown): void {
  onlyArrays(name, [z]);
  const array = z as DeviceArray;
  if (array.shape.at(-1) === 2) return;
  const message = `The operand of ${name} (${array.label}) has no last axis of 2 for the real and the imaginary parts: complex() makes one of real numbers.`;
  throw badArgument('z', z, message, 2);
}

function part(z: DeviceArray, at: 0 | 1): DeviceArray {
  return z.view(...z.shape.map((_, axis) => (axis === z.shape.length - 1 ? at : undefined)));
}

/** Submits a function for the real parts and one for the imaginary parts of a result of this shape. */
function both(
  fused: Fused,
  operands: readonly Operand[],
  texts: readonly [re: string, im: string],
  shape: readonly number[],
  opts: OpOptions | undefined,
): DeviceArray {
  const arrays = operands.filter(isArray);
  const target = targetOf(fused.name, opts, arrays);
  const own = common(operands);
  // A number beside booleans would make integers of them.
  if (common(arrays) === 'bool')
    throw badArgument('dtype', 'bool', `The operation ${fused.name} is not defined for elements of bool: astype() the array first.`);
  const dtype = target.typeOf(own);
  const type = REGISTER_TYPE[promoted(own, dtype)];
  const names = operands.map((_, at) => `x${at}`);
  return target.write([...shape, 2], dtype, arrays, (into) => {
    for (const at of [0, 1] as const) {
      const compiled = compile(
        names,
        names.map(() => type),
        texts[at],
        type,
      );
      fused.run(operands, compiled, dtype, targetOf(fused.name, { out: part(into, at), stream: target.recorder }, arrays));
    }
  });
}

/**
 * Complex numbers of their real and imaginary parts, which are arrays or numbers and broadcast: `re + 1j * im` in NumPy and CuPy,
 * `torch.complex`. The result has one axis more, of 2 elements. Throws ArgumentError for bool, and as every operation does.
 * @example const z = complex(signal); // [n] gives [n, 2]
 */
export function complex<A extends Operand, B extends Operand = 0, const O extends OpOptions = Record<never, never>>(
  re: A,
  im?: B,
  opts?: O,
): Result<O, Together<A, B>> {
  if (arguments.length > 3) refuseSurplus('complex', arguments, 3);
  const operands = [re, im ?? 0];
  const arrays = arraysAmong('complex', operands);
  const shape = broadcastShape(
    'complex',
    arrays.map((one) => one.shape),
  );
  return both(parts, operands, ['x0', 'x1'], shape, opts) as Result<O, Together<A, B>>;
}

/** The real parts, as a view: `z.real` in NumPy. Throws ArgumentError unless `z` has a last axis of 2. */
export function real<A extends DeviceArray>(z: A): DeviceArray<TypeOf<A>> {
  if (arguments.length > 1) refuseSurplus('real', arguments, 1);
  checkComplex('real', z);
  return part(z, 0) as DeviceArray<TypeOf<A>>;
}

/** The imaginary parts, as a view: `z.imag` in NumPy. Throws ArgumentError unless `z` has a last axis of 2. */
export function imag<A extends DeviceArray>(z: A): DeviceArray<TypeOf<A>> {
  if (arguments.length > 1) refuseSurplus('imag', arguments, 1);
  checkComplex('imag', z);
  return part(z, 1) as DeviceArray<TypeOf<A>>;
}

/** The distances of complex numbers from 0: `numpy.abs` of complex numbers. Throws as every operation does. */
export function magnitude<A extends DeviceArray, const O extends OpOptions = Record<never, never>>(
  z: A,
  opts?: O,
): Result<O, FloatOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('magnitude', arguments, 2);
  checkComplex('magnitude', z);
  return distance(part(z, 0), part(z, 1), opts) as unknown as Result<O, FloatOf<TypeOf<A>>>;
}

/** The angles of complex numbers in radians: `numpy.angle`. Throws as every operation does. */
export function angle<A extends DeviceArray, const O extends OpOptions = Record<never, never>>(
  z: A,
  opts?: O,
): Result<O, FloatOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('angle', arguments, 2);
  checkComplex('angle', z);
  return direction(part(z, 1), part(z, 0), opts) as unknown as Result<O, FloatOf<TypeOf<A>>>;
}

/** Complex numbers with the other sign of their imaginary parts: `numpy.conjugate`. Throws as every operation does. */
export function conjugate<A extends DeviceArray, const O extends OpOptions = Record<never, never>>(z: A, opts?: O): Result<O, TypeOf<A>> {
  if (arguments.length > 2) refuseSurplus('conjugate', arguments, 2);
  checkComplex('conjugate', z);
  return both(mirror, [part(z, 0), part(z, 1)], ['x0', '-x1'], z.shape.slice(0, -1), opts) as Result<O, TypeOf<A>>;
}

/**
 * The products of complex numbers, which broadcast: `numpy.multiply` of complex numbers. `multiply` multiplies the parts. Throws as every
 * operation does.
 * @example const filtered = irfft(complexMultiply(rfft(signal), rfft(response))); // a circular convolution
 */
export function complexMultiply<A extends DeviceArray, B extends DeviceArray, const O extends OpOptions = Record<never, never>>(
  a: A,
  b: B,
  opts?: O,
): Result<O, Together<A, B>> {
  if (arguments.length > 3) refuseSurplus('complexMultiply', arguments, 3);
  checkComplex('complexMultiply', a);
  checkComplex('complexMultiply', b);
  const operands = [part(a, 0), part(a, 1), part(b, 0), part(b, 1)];
  const shape = broadcastShape('complexMultiply', [a.shape.slice(0, -1), b.shape.slice(0, -1)]);
  return both(product, operands, ['x0 * x2 - x1 * x3', 'x0 * x3 + x1 * x2'], shape, opts) as Result<O, Together<A, B>>;
}
