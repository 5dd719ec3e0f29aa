// Floating-point numbers as NumPy writes them: with the fewest digits that no other number of the type has, cut at a precision, and all
// numbers of an array in one form.
import type { DType } from './dtype.js';
import { bfloatBits, bfloatNumber, halfBits, halfNumber } from './half-bits.js';

export type FloatDType = Extract<DType, 'f16' | 'bf16' | 'f32' | 'f64'>;

/** How numbers are written: `numpy.printoptions`. */
export interface FloatStyle {
  /** The most digits behind the point. */
  readonly precision: number;
  /** Small numbers do not cause the exponential form. */
  readonly suppress: boolean;
}

interface Format {
  /** The nearest number of the type. */
  readonly nearest: (value: number) => number;
  /** From this number on, numbers in arrays and single ones are written with an exponent. */
  readonly large: number;
  readonly largeScalar: number;
}
const FORMATS: { readonly [D in FloatDType]: Format } = {
  f16: { nearest: (value) => halfNumber(halfBits(value)), large: 1e3, largeScalar: 1e3 },
  bf16: { nearest: (value) => bfloatNumber(bfloatBits(value)), large: 1e3, largeScalar: 1e3 },
  f32: { nearest: Math.fround, large: 1e6, largeScalar: 1e6 },
  f64: { nearest: (value) => value, large: 1e8, largeScalar: 1e16 },
};
/** Below this number, too, and where the largest number is more than so many times the smallest. */
const SMALL = 1e-4;
const WIDEST = 1000;
/** The most digits of toFixed and toExponential. */
const MOST_DIGITS = 100;
/** The digits that tell all numbers of 32 bits. */
const MOST_NARROW = 9;
/** Most numbers of 32 bits need more digits behind the point than so many. */
const USUAL = 5;
/** No number of 64 bits is so near to the middle of two numbers of a few digits without being it. */
const FURTHER_DIGITS = 30;

/** What is before the point, with the sign, and behind it; with an exponent, the power of ten. */
interface Parts {
  readonly whole: string;
  readonly fraction: string;
  readonly exponent: number;
}

/** The texts of the numbers of an array, all in one form and of one length. */
export function floatTexts(dtype: FloatDType, values: readonly number[], { precision, suppress }: FloatStyle): string[] {
  const { nearest, large } = FORMATS[dtype];
  let [most, least] = [0, Infinity];
  const finite = values.filter(Number.isFinite);
  for (const value of finite) {
    const size = Math.abs(value);
    if (size > most) most = size;
    if (size > 0 && size < least) least = size;
  }
  const isExponential = most > 0 && (most >= large || (!suppress && (least < nearest(SMALL) || nearest(most / least) > WIDEST)));
  const parts = finite.map((value) => {
    const digits = shortest(dtype, Math.abs(value));
    return isExponential ? exponential(value, digits, precision) : positional(value, digits, precision);
  });
  const longest = (lengthOf: (of: Parts) => number): number => parts.reduce((length, of) => Math.max(length, lengthOf(of)), 0);
  const digits = longest(({ fraction }) => fraction.length);
  const exponentDigits = longest(({ exponent }) => exponentText(exponent, 2).length - 2);
  const right = isExponential ? digits + exponentDigits + 2 : digits;
  let left = longest(({ whole }) => whole.length);
  if (finite.length < values.length) left = Math.max(left, (values.includes(-Infinity) ? 4 : 3) - right - 1);
  let at = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return nonFinite(value).padStart(left + right + 1);
    const own = parts[at++] as Parts;
    if (!isExponential) return `${own.whole.padStart(left)}.${own.fraction.padEnd(right)}`;
    // Further digits are those of the number, which are not all 0.
    const { whole, fraction, exponent } = own.fraction.length < digits && value !== 0 ? cut(value, digits) : own;
    return `${whole.padStart(left)}.${fraction.padEnd(digits, '0')}${exponentText(exponent, exponentDigits)}`;
  });
}

/** A single number, with all its digits. */
export function floatText(dtype: FloatDType, value: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  const size = Math.abs(value);
  if (size === 0 || (size >= SMALL && size < FORMATS[dtype].largeScalar)) {
    const { whole, fraction } = positional(value, shortest(dtype, size), MOST_DIGITS);
    return `${whole}.${fraction || '0'}`;
  }
  const { whole, fraction, exponent } = exponential(value, shortest(dtype, size), MOST_DIGITS);
  return `${whole}${fraction && `.${fraction}`}${exponentText(exponent, 2)}`;
}

function nonFinite(value: number): string {
  return Number.isNaN(value) ? 'nan' : value < 0 ? '-inf' : 'inf';
}

function exponentText(exponent: number, digits: number): string {
  return `e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(digits, '0')}`;
}

/** Without an exponent: at most `precision` digits behind the point, and no zeros at the end. */
function positional(value: number, { digits, exponent }: Digits, precision: number): Parts {
  const sign = signOf(value);
  if (digits.length - 1 - exponent > precision) {
    const [whole = '', fraction = ''] = rounded(Math.abs(value), precision, 'toFixed').split('.');
    return { whole: sign + whole, fraction: fraction.replace(/0+$/, ''), exponent: 0 };
  }
  if (exponent < 0) return { whole: `${sign}0`, fraction: '0'.repeat(-exponent - 1) + digits, exponent: 0 };
  return { whole: sign + digits.slice(0, exponent + 1).padEnd(exponent + 1, '0'), fraction: digits.slice(exponent + 1), exponent: 0 };
}

/** With an exponent: one digit before the point, at most `precision` behind it, and no zeros at the end. */
function exponential(value: number, { digits, exponent }: Digits, precision: number): Parts {
  if (digits.length - 1 > precision) return cut(value, precision);
  return { whole: signOf(value) + digits.slice(0, 1), fraction: digits.slice(1), exponent };
}

/** With an exponent: the number rounded to so many digits behind the point, without zeros at the end. */
function cut(value: number, precision: number): Parts {
  const { digits, exponent } = digitsOf(rounded(Math.abs(value), precision, 'toExponential'));
  return { whole: signOf(value) + digits.slice(0, 1), fraction: digits.slice(1).replace(/0+$/, ''), exponent };
}

function signOf(value: number): string {
  return value < 0 || Object.is(value, -0) ? '-' : '';
}

/** The first digit is the one before the point; `exponent` is the power of ten. */
interface Digits {
  readonly digits: string;
  readonly exponent: number;
}

/** The fewest digits that no other number of the type has. */
function shortest(dtype: FloatDType, size: number): Digits {
  if (dtype !== 'f64' && size !== 0) {
    const isOwn = (text: string): boolean => FORMATS[dtype].nearest(Number(text)) === size;
    const isPower = Number.isInteger(Math.log2(size));
    // With more digits the text is nearer to the number, so if these do not do, fewer do not.
    for (let more = isPower || isOwn(size.toExponential(USUAL)) ? 0 : USUAL + 1; more < MOST_NARROW; more++) {
      const text = size.toExponential(more);
      if (!isPower) {
        if (isOwn(text)) return digitsOf(rounded(size, more, 'toExponential'));
        continue;
      }
      // The numbers above a power of two are further from it than those below: a text that is not the nearest may be its own.
      const own = [rounded(size, more, 'toExponential'), text, nextText(text, more)].find(isOwn);
      if (own !== undefined) return digitsOf(own);
    }
  }
  return digitsOf(size.toExponential());
}

/** One more in the last digit. */
function nextText(text: string, digits: number): string {
  const [mantissa, power] = text.split('e');
  return Number(`${(Number(mantissa) + 10 ** -digits).toFixed(digits)}e${power}`).toExponential(digits);
}

function digitsOf(text: string): Digits {
  const [mantissa = '', power] = text.split('e');
  return { digits: mantissa.replace('.', ''), exponent: Number(power) };
}

/** JavaScript's text with so many digits behind the point, but from the middle of two such texts to the even digit. */
function rounded(size: number, digits: number, method: 'toFixed' | 'toExponential'): string {
  const text = size[method](digits);
  const next = size[method](Math.min(MOST_DIGITS, digits + 1)).replace(/e.*/, '');
  if (!next.endsWith('5') || digits >= MOST_DIGITS) return text;
  const [all = '', power] = size[method](Math.min(MOST_DIGITS, digits + FURTHER_DIGITS)).split('e');
  const end = all.indexOf('.') + 1 + digits;
  if (!/^50*$/.test(all.slice(end))) return text;
  const below = all.slice(0, end).replace(/\.$/, '');
  return Number(below.at(-1)) % 2 === 0 ? `${below}${power === undefined ? '' : `e${power}`}` : text;
}
