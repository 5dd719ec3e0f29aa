// Computes the range of each integer value over all threads: a u8 load gives 0 to 255, a sum of two such loads 0 to 510. A variable's range
// covers every assigned value; a variable that keeps growing in a loop gets the full range of its type.
import type { DType } from '../../core/elements/dtype.js';
import type { Expr, KernelIr, Variable } from '../ir/ir.js';
import { expressionsOf, partsOf, statementsIn } from '../ir/walk.js';

/** Both bounds are inclusive. */
export interface ValueRange {
  readonly low: number;
  readonly high: number;
}

const I32: ValueRange = { low: -(2 ** 31), high: 2 ** 31 - 1 };
const U32: ValueRange = { low: 0, high: 2 ** 32 - 1 };
/** The range of a count of elements or threads. */
const COUNT: ValueRange = { low: 0, high: 2 ** 31 - 1 };
const BIT: ValueRange = { low: 0, high: 1 };

const STORED: Readonly<Partial<Record<DType, ValueRange>>> = {
  u8: { low: 0, high: 255 },
  i8: { low: -128, high: 127 },
  u16: { low: 0, high: 65_535 },
  i16: { low: -32_768, high: 32_767 },
};

/** Assignments that depend on each other reach a fixed point in this many rounds, or get the full range of their type. */
const MOST_ROUNDS = 8;

export class ValueRanges {
  /** A missing variable has no assigned value with a known range yet. */
  readonly #variables = new Map<Variable, ValueRange>();
  /** Cached results, once the fixed point is reached. */
  #known: Map<Expr, ValueRange | undefined> | undefined;

  constructor({ body }: Pick<KernelIr, 'body'>) {
    const assigned = assignments(body);
    for (let round = 0, hasChanged = true; hasChanged; round++) {
      hasChanged = false;
      for (const { variable, value } of assigned) {
        const known = this.#variables.get(variable);
        const range = value === undefined ? { low: 0, high: 0 } : this.#of(value);
        if (range === undefined || (known !== undefined && isWithin(range, known))) continue;
        const all = known === undefined ? range : either(known, range);
        this.#variables.set(variable, round < MOST_ROUNDS ? all : wholeOf(variable.type)!);
        hasChanged = true;
      }
    }
    this.#known = new Map();
  }

  /** Undefined unless the expression is a 32-bit integer. */
  of(expr: Expr): ValueRange | undefined {
    return wholeOf(expr.type) && (this.#of(expr) ?? wholeOf(expr.type));
  }

  /** Also undefined while no operand has a range yet; a later round computes it. */
  #of(expr: Expr): ValueRange | undefined {
    if (this.#known?.has(expr)) return this.#known.get(expr);
    const whole = wholeOf(expr.type);
    const wide = whole && this.#wideOf(expr, whole);
    // A result outside the type's range has wrapped around.
    const range = wide === undefined || isWithin(wide, whole!) ? wide : whole;
    this.#known?.set(expr, range);
    return range;
  }

  #wideOf(expr: Expr, whole: ValueRange): ValueRange | undefined {
    switch (expr.kind) {
      case 'const':
        return { low: expr.value, high: expr.value };
      case 'variable':
        return this.#variables.get(expr.variable);
      case 'scalar':
        return STORED[expr.dtype] ?? whole;
      case 'load':
        return STORED[expr.array.dtype] ?? whole;
      case 'extent':
      case 'index':
      case 'thread':
        return COUNT;
      case 'negate':
        return this.#made([expr.operand], ({ low, high }) => ({ low: -high, high: -low }));
      case 'invert':
        // `~x` is 0xffffffff - x for u32 and -1 - x for i32.
        return this.#made([expr.operand], ({ low, high }) => ({
          low: (whole === U32 ? U32.high : -1) - high,
          high: (whole === U32 ? U32.high : -1) - low,
        }));
      case 'arithmetic':
        return this.#made([expr.left, expr.right], (a, b) => arithmetic(expr.op, a, b) ?? whole);
      case 'select':
        return this.#either([expr.then, expr.otherwise]);
      case 'cast':
        if (expr.operand.type === 'bool') return BIT;
        return wholeOf(expr.operand.type) === undefined ? whole : this.#of(expr.operand);
      case 'bind':
        return this.#of(expr.body);
      case 'builtin':
        return this.#builtin(expr, whole);
      default:
        return whole;
    }
  }

  #builtin({ name, args }: Extract<Expr, { kind: 'builtin' }>, whole: ValueRange): ValueRange | undefined {
    switch (name) {
      case 'min':
        return this.#made(args, (...all) => ({ low: Math.min(...all.map(lowOf)), high: Math.min(...all.map(highOf)) }));
      case 'max':
        return this.#made(args, (...all) => ({ low: Math.max(...all.map(lowOf)), high: Math.max(...all.map(highOf)) }));
      case 'clamp':
        return this.#made(args, (value, low, high) => ({
          low: Math.min(Math.max(value.low, low.low), high.low),
          high: Math.min(Math.max(value.high, low.high), high.high),
        }));
      case 'abs':
        return this.#made(args, (a) => ({ low: Math.max(0, a.low, -a.high), high: Math.max(-a.low, a.high) }));
      case 'idiv':
        return this.#made(args, (a, b) => (b.low > 0 ? quotient(a, b) : whole));
      default:
        return whole;
    }
  }

  /** Undefined until every operand has a range. */
  #made(parts: readonly Expr[], make: (first: ValueRange, ...others: [ValueRange, ...ValueRange[]]) => ValueRange): ValueRange | undefined {
    const ranges = parts.map((part) => this.#of(part));
    return ranges.every((range) => range !== undefined) ? make(...(ranges as [ValueRange, ValueRange, ...ValueRange[]])) : undefined;
  }

  #either([a, b]: readonly [Expr, Expr]): ValueRange | undefined {
    const [one, other] = [this.#of(a), this.#of(b)];
    return one && other ? either(one, other) : (one ?? other);
  }
}

interface Assignment {
  readonly variable: Variable;
  readonly value: Expr | undefined;
}

function assignments(body: KernelIr['body']): Assignment[] {
  const found: Assignment[] = [];
  const note = (one: Assignment): void => {
    if (wholeOf(one.variable.type) !== undefined) found.push(one);
  };
  for (const stmt of statementsIn(body)) {
    if (stmt.kind === 'declare' || stmt.kind === 'assign') note(stmt);
    for (const expr of expressionsOf(stmt)) {
      for (const part of partsOf(expr)) if (part.kind === 'bind') note(part);
    }
  }
  return found;
}

function wholeOf(type: Expr['type']): ValueRange | undefined {
  return type === 'i32' ? I32 : type === 'u32' ? U32 : undefined;
}

export function isWithin(inner: ValueRange, outer: ValueRange): boolean {
  return inner.low >= outer.low && inner.high <= outer.high;
}

function lowOf({ low }: ValueRange): number {
  return low;
}
function highOf({ high }: ValueRange): number {
  return high;
}

function either(a: ValueRange, b: ValueRange): ValueRange {
  return { low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) };
}

/** The smallest and largest result over all combinations of bounds. */
function spanned(values: readonly number[]): ValueRange {
  // `+ 0` turns -0 into 0.
  return { low: Math.min(...values) + 0, high: Math.max(...values) + 0 };
}

function quotient(a: ValueRange, b: ValueRange): ValueRange {
  return spanned([a.low, a.high].flatMap((one) => [Math.trunc(one / b.low), Math.trunc(one / b.high)]));
}

/** Undefined stands for the type's full range. */
function arithmetic(op: Extract<Expr, { kind: 'arithmetic' }>['op'], a: ValueRange, b: ValueRange): ValueRange | undefined {
  const isNatural = a.low >= 0 && b.low >= 0;
  switch (op) {
    case '+':
      return { low: a.low + b.low, high: a.high + b.high };
    case '-':
      return { low: a.low - b.high, high: a.high - b.low };
    case '*':
      return spanned([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]);
    case '&':
      if (isNatural) return { low: 0, high: Math.min(a.high, b.high) };
      return a.low >= 0 || b.low >= 0 ? { low: 0, high: a.low >= 0 ? a.high : b.high } : undefined;
    case '|':
    case '^':
      return isNatural ? { low: 0, high: 2 ** bitsOf(Math.max(a.high, b.high)) - 1 } : undefined;
    case '<<':
      return b.low === b.high ? { low: a.low * 2 ** (b.low & 31), high: a.high * 2 ** (b.low & 31) } : undefined;
    case '>>':
      return b.low === b.high ? { low: Math.floor(a.low / 2 ** (b.low & 31)), high: Math.floor(a.high / 2 ** (b.low & 31)) } : undefined;
    case '%':
      // The remainder has the dividend's sign, and its magnitude is at most the dividend's and less than the divisor's.
      if (b.low <= 0) return undefined;
      return { low: a.low < 0 ? Math.max(a.low, 1 - b.high) : 0, high: a.high > 0 ? Math.min(a.high, b.high - 1) : 0 };
    default:
      return undefined;
  }
}

/** The bit length of a number that is not negative. */
function bitsOf(value: number): number {
  return value === 0 ? 0 : Math.floor(Math.log2(value)) + 1;
}
