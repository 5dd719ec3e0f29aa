// Selects elements of one or two bytes for kernels whose values fit, because a SIMD register holds four or two times as many. Only values
// that vary between SIMD lanes count: uniform values and strides stay scalars.
//
// Some values that do not fit are still allowed. If only low bits are used (stored in bytes, or masked), wrapped sums and products are
// right. And a sum of numbers that are not negative may saturate at 255 if it is only compared with smaller numbers.
import { DTYPES, is16BitFloat } from '../../core/elements/dtype.js';
import { isWithin, type ValueRange, ValueRanges } from '../analysis/value-ranges.js';
import { mirrored } from '../analysis/conditions.js';
import type { ArrayRef, ComparisonOp, Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { bodiesOf, expressionsOf } from '../ir/walk.js';
import type { Strides } from './strides.js';

export type NarrowBytes = 1 | 2;

/** How much of a value must be right: all of it, its low bits, or min(value, 255). */
type Form = 'whole' | 'low' | 'least';

/** Results for the emitter. */
export interface Narrow {
  readonly bytes: NarrowBytes;
  /** Sums that saturate at 255. */
  readonly stopping: ReadonlySet<Expr>;
  /** Operations whose results wrap. */
  readonly wrapping: ReadonlySet<Expr>;
  /** Uniform values that are compared with varying ones, and the range to which they may be clamped. */
  readonly bounded: ReadonlyMap<Expr, ValueRange>;
}

const LIMITS: Readonly<Record<NarrowBytes, { readonly i32: ValueRange; readonly u32: ValueRange }>> = {
  1: { i32: { low: 0, high: 255 }, u32: { low: 0, high: 255 } },
  2: { i32: { low: -32_768, high: 32_767 }, u32: { low: 0, high: 65_535 } },
};
const RINGS: ReadonlySet<string> = new Set(['+', '-', '*', '&', '|', '^']);

/** The narrowest element width; undefined when 32 bits are needed. */
export function narrowest(ir: KernelIr, isVarying: (expr: Expr) => boolean, strides: Strides): Narrow | undefined {
  if (ir.arrays.length > 0 || ir.funcs.length > 0) return undefined;
  const ranges = new ValueRanges(ir);
  for (const bytes of [1, 2] as const) {
    const made = new Fitting(ir, bytes, isVarying, ranges, strides).narrow();
    if (made !== undefined) return made;
  }
  return undefined;
}

class Fitting {
  readonly #ir: KernelIr;
  readonly #bytes: NarrowBytes;
  readonly #isVarying: (expr: Expr) => boolean;
  readonly #ranges: ValueRanges;
  readonly #strides: Strides;
  /** Forms of variables that may not fit. */
  readonly #forms = new Map<Variable, Form>();
  #stopping = new Set<Expr>();
  #wrapping = new Set<Expr>();
  #bounded = new Map<Expr, ValueRange>();
  /** Whether a variable has changed its form in this round. */
  #hasTurned = false;

  constructor(ir: KernelIr, bytes: NarrowBytes, isVarying: (expr: Expr) => boolean, ranges: ValueRanges, strides: Strides) {
    this.#ir = ir;
    this.#bytes = bytes;
    this.#isVarying = isVarying;
    this.#ranges = ranges;
    this.#strides = strides;
  }

  narrow(): Narrow | undefined {
    // A variable changes its form at most once, so this ends.
    do {
      this.#hasTurned = false;
      [this.#stopping, this.#wrapping, this.#bounded] = [new Set(), new Set(), new Map()];
      if (this.#list(this.#ir.body))
        return { bytes: this.#bytes, stopping: this.#stopping, wrapping: this.#wrapping, bounded: this.#bounded };
    } while (this.#hasTurned);
    return undefined;
  }

  #list(body: readonly Stmt[]): boolean {
    return body.every((stmt) => this.#statement(stmt) && bodiesOf(stmt).every((inner) => this.#list(inner)));
  }

  #statement(stmt: Stmt): boolean {
    switch (stmt.kind) {
      case 'declare':
      case 'assign':
        return this.#assign(stmt.variable, stmt.value);
      case 'store':
        if (![...stmt.indices, stmt.value].some(this.#isVarying)) return true;
        return this.#isPlace(stmt) && (stmt.value.type === 'bool' ? this.#test(stmt.value) : this.#value(stmt.value, 'low'));
      case 'if':
      case 'loop':
        return stmt.test === undefined || this.#test(stmt.test);
      case 'block':
      case 'break':
      case 'continue':
      case 'fence':
        return true;
      case 'return':
        return expressionsOf(stmt).length === 0;
      default:
        return false;
    }
  }

  #assign(variable: Variable, value: Expr | undefined): boolean {
    const own: Expr = { kind: 'variable', type: variable.type, variable };
    if (!this.#isVarying(own)) return true;
    if (this.#strides.has(variable)) return true;
    if (variable.type === 'bool') return value === undefined || this.#test(value);
    const form = this.#formOf(variable, own);
    return form !== undefined && (value === undefined || this.#value(value, form));
  }

  #formOf(variable: Variable, own: Expr): Form | undefined {
    if (this.#limit(own) === undefined) return undefined;
    if (this.#fits(own)) return 'whole';
    const form = this.#forms.get(variable) ?? (this.#bytes === 1 ? 'least' : 'low');
    this.#forms.set(variable, form);
    return form;
  }

  #limit({ type }: Expr): ValueRange | undefined {
    return type === 'i32' || type === 'u32' ? LIMITS[this.#bytes][type] : undefined;
  }
  #fits(expr: Expr): boolean {
    const limit = this.#limit(expr);
    return limit !== undefined && isWithin(this.#ranges.of(expr)!, limit);
  }

  /** Whether a narrow element can hold as much of the value as `form` asks for. */
  #value(expr: Expr, form: Form): boolean {
    if (this.#limit(expr) === undefined) return false;
    const fits = this.#fits(expr);
    if (!fits && form === 'whole') return false;
    if (!this.#isVarying(expr) || this.#strides.stepOf(expr) !== undefined) return fits || form === 'low';
    // A value that is right as a whole is also right up to 255.
    const wanted = fits && form === 'least' ? 'whole' : form;
    switch (expr.kind) {
      case 'variable':
        return this.#variable(expr, wanted);
      case 'load':
        return (fits || wanted === 'low') && this.#isPlace(expr);
      case 'negate':
      case 'invert':
        return this.#ring(expr, [expr.operand], wanted);
      case 'arithmetic':
        return this.#arithmetic(expr, wanted);
      case 'select':
        return this.#test(expr.test) && this.#value(expr.then, wanted) && this.#value(expr.otherwise, wanted);
      case 'cast':
        if (expr.operand.type === 'bool') return this.#test(expr.operand);
        if (wanted === 'least') return this.#isNatural(expr.operand) && this.#value(expr.operand, 'least');
        return this.#value(expr.operand, 'low');
      case 'bind':
        return this.#assign(expr.variable, expr.value) && this.#value(expr.body, wanted);
      case 'builtin':
        return this.#builtin(expr, wanted);
      default:
        return false;
    }
  }

  #variable(expr: Extract<Expr, { kind: 'variable' }>, wanted: Form): boolean {
    const form = this.#formOf(expr.variable, expr);
    if (form === 'whole' || form === wanted) return true;
    if (wanted === 'low' && form === 'least') {
      this.#forms.set(expr.variable, 'low');
      this.#hasTurned = true;
    }
    return false;
  }

  /** Low bits of the result depend only on low bits of the operands; a value that fits is its low bits. */
  #ring(expr: Expr, operands: readonly Expr[], wanted: Form): boolean {
    if (wanted === 'least' || this.#stopping.has(expr)) return false;
    if (!this.#fits(expr)) this.#wrapping.add(expr);
    return operands.every((operand) => this.#value(operand, 'low'));
  }

  #arithmetic(expr: Extract<Expr, { kind: 'arithmetic' }>, wanted: Form): boolean {
    const { op, left, right } = expr;
    if (op === '+' && wanted === 'least' && this.#isNatural(left) && this.#isNatural(right)) {
      if (this.#wrapping.has(expr) || this.#mayWrap(expr)) return false;
      this.#stopping.add(expr);
      return this.#value(left, 'least') && this.#value(right, 'least');
    }
    // Byte vectors have instructions for these operators only.
    if (this.#bytes === 1 && !['+', '-', '&', '|', '^'].includes(op)) return false;
    if (RINGS.has(op)) return this.#ring(expr, [left, right], wanted);
    if (right.kind !== 'const') return false;
    const isShort = (right.value & 31) < 8 * this.#bytes;
    if (op === '<<') return isShort && this.#ring(expr, [left], wanted);
    if (op === '>>') return isShort && this.#fits(expr) && this.#value(left, 'whole');
    return op === '%' && isPositive(right) && this.#fits(right) && this.#value(left, 'whole');
  }

  #builtin(expr: Extract<Expr, { kind: 'builtin' }>, wanted: Form): boolean {
    const { name, args } = expr;
    const [first, ...others] = args as [Expr, ...Expr[]];
    // If the result is at most 255, saturated operands give the same result.
    const isCut = wanted === 'least' || (this.#bytes === 1 && this.#fits(expr));
    switch (name) {
      case 'min':
        return args.every((arg) => (isCut ? this.#isNatural(arg) && this.#value(arg, 'least') : this.#value(arg, 'whole')));
      case 'max':
        return args.every((arg) => (wanted === 'least' ? this.#isNatural(arg) && this.#value(arg, 'least') : this.#value(arg, 'whole')));
      case 'clamp':
        if (isCut && !this.#isNatural(first)) return false;
        return this.#value(first, isCut ? 'least' : 'whole') && others.every((arg) => this.#value(arg, 'whole'));
      case 'abs':
        return this.#fits(expr) && this.#value(first, 'whole');
      case 'imul':
        return this.#bytes === 2 && this.#ring(expr, args, wanted);
      case 'idiv':
        return this.#bytes === 2 && isPositive(others[0]!) && args.every((arg) => this.#value(arg, 'whole'));
      default:
        return false;
    }
  }

  /** Whether the sum may wrap in 32 bits, which would make it smaller than 255 again. */
  #mayWrap(sum: Extract<Expr, { kind: 'arithmetic' }>): boolean {
    return this.#ranges.of(sum)!.high !== this.#ranges.of(sum.left)!.high + this.#ranges.of(sum.right)!.high;
  }

  #isNatural(expr: Expr): boolean {
    return (this.#ranges.of(expr)?.low ?? -1) >= 0;
  }

  /** Whether a condition can be computed as a mask. */
  #test(expr: Expr): boolean {
    if (!this.#isVarying(expr)) return true;
    switch (expr.kind) {
      case 'variable':
        return true;
      case 'load':
        return this.#isPlace(expr);
      case 'not':
        return this.#test(expr.operand);
      case 'logical':
        return this.#test(expr.left) && this.#test(expr.right);
      case 'select':
        return this.#test(expr.test) && this.#test(expr.then) && this.#test(expr.otherwise);
      case 'cast':
        return this.#value(expr.operand, 'whole');
      case 'compare':
        return this.#compare(expr);
      case 'bind':
        return this.#assign(expr.variable, expr.value) && this.#test(expr.body);
      default:
        return false;
    }
  }

  #compare({ op, left, right }: Extract<Expr, { kind: 'compare' }>): boolean {
    if (left.type === 'bool') return this.#test(left) && this.#test(right);
    if (neighbours(op, left, right, this.#strides) !== undefined) return true;
    if (this.#isVarying(left) && this.#isVarying(right)) return this.#value(left, 'whole') && this.#value(right, 'whole');
    const [own, shared] = this.#isVarying(left) ? [left, right] : [right, left];
    const limit = this.#limit(shared);
    if (limit === undefined) return false;
    const { low, high } = this.#ranges.of(own)!;
    if (!this.#fits(own)) {
      // Saturated values equal 255, so only smaller bounds compare correctly. 16-bit elements do not saturate.
      const isBelowMost = shared.kind === 'const' && shared.value >= 0 && shared.value < limit.high;
      return this.#bytes === 1 && isBelowMost && this.#value(own, 'least');
    }
    if (!this.#fits(shared)) {
      const enough = { low: low - 1, high: high + 1 };
      if (!isWithin(enough, limit)) return false;
      const before = this.#bounded.get(shared) ?? enough;
      this.#bounded.set(shared, { low: Math.min(low - 1, before.low), high: Math.max(high + 1, before.high) });
    }
    return this.#value(own, 'whole');
  }

  /** Whether the elements are as narrow as the SIMD lanes, and adjacent or at a constant stride. */
  #isPlace({ array, indices }: { readonly array: ArrayRef; readonly indices: readonly Expr[] }): boolean {
    const { byteSize } = DTYPES[array.dtype];
    const isWhole = !is16BitFloat(array.dtype) && byteSize <= this.#bytes;
    return isWhole && indices.every((index) => !this.#isVarying(index) || this.#strides.stepOf(index) !== undefined);
  }
}

function isPositive(expr: Expr): boolean {
  return expr.kind === 'const' && expr.value > 0;
}

/** A comparison of a value with stride 1, moved to the left side, and a uniform value. */
export function neighbours(
  op: ComparisonOp,
  left: Expr,
  right: Expr,
  strides: Strides,
): { readonly op: ComparisonOp; readonly from: Expr; readonly bound: Expr } | undefined {
  const [a, b] = [strides.stepOf(left), strides.stepOf(right)];
  if (a === '1' && b === '0') return { op, from: left, bound: right };
  return a === '0' && b === '1' ? { op: mirrored(op), from: right, bound: left } : undefined;
}
