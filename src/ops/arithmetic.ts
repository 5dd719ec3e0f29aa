// The ready operations of one and two operands, named as NumPy names them. docs/operations.md lists them with their types.
import { type Binary, binary, isReal, isWide, type Text, type Unary, unary } from './ready.js';

/** An operation of numbers, which booleans do not have. */
const ofNumbers =
  (text: Text): Text =>
  (type, n) =>
    type === 'bool' ? undefined : text(type, n);
const ofIntegers =
  (text: string, ofBooleans: string): Text =>
  (type) =>
    type === 'bool' ? ofBooleans : isReal(type) ? undefined : text;

// Python's remainder has the sign of the divisor; the language's has that of the dividend.
const REMAINDER: Text = (type, n) => {
  if (type === 'u32' || type === 'u64') return 'a % b';
  // A float 0 has the sign of the divisor too.
  const zero = isReal(type) ? 'r === 0 ? (b < 0 ? -0 : 0) : r' : 'r';
  return `{ const r = a % b; return r !== ${n(0)} && r < ${n(0)} !== b < ${n(0)} ? r + b : ${zero}; }`;
};
// Of floats by the remainder, as NumPy and Python do: the rounded quotient may lie on the other side of a whole number.
const FLOOR_DIVIDE: Text = (type, n) => {
  if (isReal(type))
    return `{ if (b === 0) return a / b; const r = a % b; let q = (a - r) / b; if (r !== 0 && r < 0 !== b < 0) q = q - 1;
      const down = Math.floor(q); return q === 0 ? a / b * 0 : q - down > 0.5 ? down + 1 : down; }`;
  if (type === 'u64') return 'a / b';
  if (type === 'i64')
    return `{ const q = a / b; const r = a - q * b; return b !== 0n && r !== ${n(0)} && r < ${n(0)} !== b < ${n(0)} ? q - 1n : q; }`;
  return 'Math.floor(a / b)';
};
// A negative power of an integer is 0, as a fraction is when it is truncated.
const POWER: Text = (type, n) =>
  isReal(type)
    ? 'Math.pow(a, b)'
    : `{ let result = ${type}(1); let base = a; let rest = b; if (b < ${n(0)}) return ${type}(0); while (rest > ${n(0)}) { if (rest % ${n(2)} !== ${n(0)}) result = result * base; base = base * base; rest = ${isWide(type) ? 'rest / 2n' : 'Math.trunc(rest / 2)'}; } return result; }`;

/** The sum of two arrays, element by element; of booleans, whether either is true: `numpy.add`. */
export const add: Binary<'same'> = binary('add', 'same', (type) => (type === 'bool' ? 'a || b' : 'a + b'));
/** The difference of two arrays; booleans have none: `numpy.subtract`. */
export const subtract: Binary<'same'> = binary(
  'subtract',
  'same',
  ofNumbers(() => 'a - b'),
);
/** The product of two arrays, element by element; of booleans, whether both are true: `numpy.multiply`. */
export const multiply: Binary<'same'> = binary('multiply', 'same', (type) => (type === 'bool' ? 'a && b' : 'a * b'));
/** The quotient of two arrays as real numbers: `numpy.divide`. */
export const divide: Binary<'quotient'> = binary('divide', 'quotient', () => 'a / b');
/** The quotient, rounded down; 0 for integers divided by 0: `numpy.floor_divide`. */
export const floorDivide: Binary<'same'> = binary('floorDivide', 'same', ofNumbers(FLOOR_DIVIDE));
/** The remainder of `floorDivide`, with the sign of the divisor; 0 for integers divided by 0: `numpy.remainder`. */
export const remainder: Binary<'same'> = binary('remainder', 'same', ofNumbers(REMAINDER));
/** The power of two arrays. Integers stay integers; their negative powers are 0: `numpy.power`. */
export const power: Binary<'same'> = binary('power', 'same', ofNumbers(POWER));
/** The smaller of two elements; NaN if either is: `numpy.minimum`. */
export const minimum: Binary<'same'> = binary('minimum', 'same', (type) => (type === 'bool' ? 'a && b' : 'b < a || b !== b ? b : a'));
/** The larger of two elements; NaN if either is: `numpy.maximum`. */
export const maximum: Binary<'same'> = binary('maximum', 'same', (type) => (type === 'bool' ? 'a || b' : 'b > a || b !== b ? b : a'));
/** The angle of the point (b, a): `numpy.arctan2`. */
export const atan2: Binary<'float'> = binary('atan2', 'float', () => 'Math.atan2(a, b)');
/** The length of the vector (a, b): `numpy.hypot`. */
export const hypot: Binary<'float'> = binary('hypot', 'float', () => 'Math.hypot(a, b)');

/** Whether two elements are equal: `numpy.equal`. */
export const equal: Binary<'compare'> = binary('equal', 'compare', () => 'a === b');
/** Whether two elements differ: `numpy.not_equal`. */
export const notEqual: Binary<'compare'> = binary('notEqual', 'compare', () => 'a !== b');
/** Whether the first element is smaller: `numpy.less`. */
export const less: Binary<'compare'> = binary('less', 'compare', (type) => (type === 'bool' ? '!a && b' : 'a < b'));
/** Whether the first element is smaller or equal: `numpy.less_equal`. */
export const lessEqual: Binary<'compare'> = binary('lessEqual', 'compare', (type) => (type === 'bool' ? '!a || b' : 'a <= b'));
/** Whether the first element is larger: `numpy.greater`. */
export const greater: Binary<'compare'> = binary('greater', 'compare', (type) => (type === 'bool' ? 'a && !b' : 'a > b'));
/** Whether the first element is larger or equal: `numpy.greater_equal`. */
export const greaterEqual: Binary<'compare'> = binary('greaterEqual', 'compare', (type) => (type === 'bool' ? 'a || !b' : 'a >= b'));
/** Whether both elements are other than 0: `numpy.logical_and`. */
export const logicalAnd: Binary<'logical'> = binary('logicalAnd', 'logical', () => 'a && b');
/** Whether an element is other than 0: `numpy.logical_or`. */
export const logicalOr: Binary<'logical'> = binary('logicalOr', 'logical', () => 'a || b');
/** Whether just one of two elements is other than 0: `numpy.logical_xor`. */
export const logicalXor: Binary<'logical'> = binary('logicalXor', 'logical', () => 'a ? !b : b');
/** Whether the element is 0: `numpy.logical_not`. */
export const logicalNot: Unary<'logical'> = unary('logicalNot', 'logical', () => '!a');
/** The bits that both integers have: `numpy.bitwise_and`. */
export const bitwiseAnd: Binary<'same'> = binary('bitwiseAnd', 'same', ofIntegers('a & b', 'a && b'));
/** The bits that either integer has: `numpy.bitwise_or`. */
export const bitwiseOr: Binary<'same'> = binary('bitwiseOr', 'same', ofIntegers('a | b', 'a || b'));
/** The bits that just one of two integers has: `numpy.bitwise_xor`. */
export const bitwiseXor: Binary<'same'> = binary('bitwiseXor', 'same', ofIntegers('a ^ b', 'a ? !b : b'));

/** The element with the other sign; of unsigned integers modulo their range: `numpy.negative`. */
export const negative: Unary<'same'> = unary(
  'negative',
  'same',
  ofNumbers((type) => (type === 'u32' ? 'u32(0) - a' : type === 'u64' ? 'u64(0) - a' : '-a')),
);
/** The element without its sign: `numpy.absolute`. */
export const absolute: Unary<'same'> = unary('absolute', 'same', (type) =>
  type === 'bool' || type === 'u64' ? 'a' : type === 'i64' ? 'a < 0n ? -a : a' : 'Math.abs(a)',
);
/** -1, 0 or 1; NaN of NaN: `numpy.sign`. */
export const sign: Unary<'same'> = unary(
  'sign',
  'same',
  ofNumbers((type, n) =>
    isReal(type) ? 'a > 0 ? 1 : a < 0 ? -1 : a * 0' : `a > ${n(0)} ? ${type}(1) : a < ${n(0)} ? ${type}(-1) : ${type}(0)`,
  ),
);
/** The product of the element with itself: `numpy.square`. */
export const square: Unary<'same'> = unary('square', 'same', (type) => (type === 'bool' ? 'a' : 'a * a'));
/** 1 divided by the element, as a real number; NumPy truncates for integers: `numpy.reciprocal`. */
export const reciprocal: Unary<'quotient'> = unary('reciprocal', 'quotient', () => '1 / a');
/** The square root: `numpy.sqrt`. */
export const sqrt: Unary<'float'> = unary('sqrt', 'float', () => 'Math.sqrt(a)');
/** The cube root: `numpy.cbrt`. */
export const cbrt: Unary<'float'> = unary('cbrt', 'float', () => 'Math.cbrt(a)');
/** e to the power of the element: `numpy.exp`. */
export const exp: Unary<'float'> = unary('exp', 'float', () => 'Math.exp(a)');
/** `exp(a) - 1`, exact near 0: `numpy.expm1`. */
export const expm1: Unary<'float'> = unary('expm1', 'float', () => 'Math.expm1(a)');
/** The natural logarithm: `numpy.log`. */
export const log: Unary<'float'> = unary('log', 'float', () => 'Math.log(a)');
/** The logarithm to base 2: `numpy.log2`. */
export const log2: Unary<'float'> = unary('log2', 'float', () => 'Math.log2(a)');
/** The logarithm to base 10: `numpy.log10`. */
export const log10: Unary<'float'> = unary('log10', 'float', () => 'Math.log10(a)');
/** `log(1 + a)`, exact near 0: `numpy.log1p`. */
export const log1p: Unary<'float'> = unary('log1p', 'float', () => 'Math.log1p(a)');
/** The sine of an angle in radians: `numpy.sin`. */
export const sin: Unary<'float'> = unary('sin', 'float', () => 'Math.sin(a)');
/** The cosine of an angle in radians: `numpy.cos`. */
export const cos: Unary<'float'> = unary('cos', 'float', () => 'Math.cos(a)');
/** The tangent of an angle in radians: `numpy.tan`. */
export const tan: Unary<'float'> = unary('tan', 'float', () => 'Math.tan(a)');
/** The angle, in radians, that has this sine: `numpy.arcsin`. */
export const asin: Unary<'float'> = unary('asin', 'float', () => 'Math.asin(a)');
/** The angle, in radians, that has this cosine: `numpy.arccos`. */
export const acos: Unary<'float'> = unary('acos', 'float', () => 'Math.acos(a)');
/** The angle, in radians, that has this tangent: `numpy.arctan`. */
export const atan: Unary<'float'> = unary('atan', 'float', () => 'Math.atan(a)');
/** The hyperbolic sine: `numpy.sinh`. */
export const sinh: Unary<'float'> = unary('sinh', 'float', () => 'Math.sinh(a)');
/** The hyperbolic cosine: `numpy.cosh`. */
export const cosh: Unary<'float'> = unary('cosh', 'float', () => 'Math.cosh(a)');
/** The hyperbolic tangent: `numpy.tanh`. */
export const tanh: Unary<'float'> = unary('tanh', 'float', () => 'Math.tanh(a)');
/** The element rounded down; integers stay: `numpy.floor`. */
export const floor: Unary<'same'> = unary('floor', 'same', (type) => (isReal(type) ? 'Math.floor(a)' : 'a'));
/** The element rounded up; integers stay: `numpy.ceil`. */
export const ceil: Unary<'same'> = unary('ceil', 'same', (type) => (isReal(type) ? 'Math.ceil(a)' : 'a'));
/** The element without its fraction; integers stay: `numpy.trunc`. */
export const trunc: Unary<'same'> = unary('trunc', 'same', (type) => (isReal(type) ? 'Math.trunc(a)' : 'a'));
/** The nearest whole number, the even one of two; integers stay: `numpy.round`. JavaScript's `Math.round` takes the larger of two. */
export const round: Unary<'same'> = unary('round', 'same', (type) =>
  isReal(type)
    ? '{ const t = Math.trunc(a); const d = Math.abs(a - t); return d > 0.5 || (d === 0.5 && Math.abs(t % 2) === 1) ? (a > 0 ? t + 1 : t - 1) : t; }'
    : 'a',
);
/** Whether the element is not a number: `numpy.isnan`. */
export const isNan: Unary<'test'> = unary('isNan', 'test', (type) => (isReal(type) ? 'a !== a' : 'false'));
/** Whether the element is neither infinite nor NaN: `numpy.isfinite`. */
export const isFinite: Unary<'test'> = unary('isFinite', 'test', (type) => (isReal(type) ? 'Math.abs(a) < Infinity' : 'true'));
