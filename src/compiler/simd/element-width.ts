// Lanes of one or two bytes, of which a register has four or two times as many, for kernels whose values fit. Values whose
// lanes differ, that is: what all share stays a scalar, and so does what grows by a step from lane to lane.
//
// What does not fit may still do. Where only low bits are asked for, those of wrapped sums and products are right: what is
// stored in bytes, or masked. And a sum of numbers that are not negative may stop at 255 where it is only compared with
// less: whether it is 3, or above 100, is the same as of the true sum.
import { DTYPES } from '../../core/elements/dtype.js';
import { isWithin, type ValueRange, ValueRanges } from '../analysis/value-ranges.js';
import { mirrored } from '../analysis/conditions.js';
import type { ArrayRef, ComparisonOp, Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { bodiesOf, expressionsOf } from '../ir/walk.js';
import type { Strides } from './strides.js';

export type NarrowBytes = 1 | 2;

/** How much of a value is right: all of it, its low bits, or the least of it and 255. */
type Form = 'whole' | 'low' | 'least';

/** What the emitter has to know. */
export interface Narrow {
  readonly bytes: NarrowBytes;
  /** Sums that stop at 255. */
  readonly stopping: ReadonlySet<Expr>;
  /** Results that wrap. */
  readonly wrapping: ReadonlySet<Expr>;
  /** What all lanes share and is compared with what differs: as far as it needs to be known. */
  readonly bounded: ReadonlyMap<Expr, ValueRange>;
}

const LIMITS: Readonly<Record<NarrowBytes, { readonly i32: ValueRange; readonly u32: ValueRange }>> = {
  1: { i32: { low: 0, high: 255 }, u32: { low: 0, high: 255 } },
  2: { i32: { low: -32_768, high: 32_767 }, u32: { low: 0, high: 65_535 } },
};
const RINGS: ReadonlySet<string> = new Set(['+', '-', '*', '&', '|', '^']);

/** As narrow as it gets; undefined where 32 bits are needed. */
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
  /** Of variables that may not fit. */
  readonly #forms = new Map<Variable, Form>();
  #stopping = new Set<Expr>();
  #wrapping = new Set<Expr>();
  #bounded = new Map<Expr, ValueRange>();
  /** A variable turned out to be wanted in another form. */
  #hasTurned = false;

  constructor(ir: KernelIr, bytes: NarrowBytes, isVarying: (expr: Expr) => boolean, ranges: ValueRanges, strides: Strides) {
    this.#ir = ir;
    this.#bytes = bytes;
    this.#isVarying = isVarying;
    this.#ranges = ranges;
    this.#strides = strides;
  }

  narrow(): Narrow | undefined {
    // A variable turns once at most.
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

  /** Can lanes have as much of it as is wanted? */
  #value(expr: Expr, form: Form): boolean {
    if (this.#limit(expr) === undefined) return false;
    const fits = this.#fits(expr);
    if (!fits && form === 'whole') return false;
    if (!this.#isVarying(expr) || this.#strides.stepOf(expr) !== undefined) return fits || form === 'low';
    // Whoever has it whole has all of it.
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

  /** Low bits are made of low bits; and what fits has no others. */
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
    // Bytes have no instructions for more.
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
    // What is cut off at 255 or below may have stopped at 255 before.
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

  /** In 32 bits, from where a sum comes back below 255. */
  #mayWrap(sum: Extract<Expr, { kind: 'arithmetic' }>): boolean {
    return this.#ranges.of(sum)!.high !== this.#ranges.of(sum.left)!.high + this.#ranges.of(sum.right)!.high;
  }

  #isNatural(expr: Expr): boolean {
    return (this.#ranges.of(expr)?.low ?? -1) >= 0;
  }

  /** A mask. */
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
      // The number that all stop at is like none that is greater. Shorts do not stop.
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

  /** Elements side by side, or a step apart, that are as narrow. */
  #isPlace({ array, indices }: { readonly array: ArrayRef; readonly indices: readonly Expr[] }): boolean {
    const { byteSize } = DTYPES[array.dtype];
    const isWhole = array.dtype !== 'f16' && byteSize <= this.#bytes;
    return isWhole && indices.every((index) => !this.#isVarying(index) || this.#strides.stepOf(index) !== undefined);
  }
}

function isPositive(expr: Expr): boolean {
  return expr.kind === 'const' && expr.value > 0;
}

/** A comparison of what is one more from lane to lane, on the left then, with what all share. */
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
