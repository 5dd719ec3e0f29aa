// Emits the test whether any thread of a block can leave the bounds of an array in a region. The CPU device runs it once per region, with
// ranges instead of values; if it holds, the loop over the threads needs no checks, and vectorises.
//
// An index has a range if it is computed from block variables, the thread's index, counters of `for` loops and other values with a range;
// conditions around an access narrow it. A region with an index that has no range keeps its checks.
import { BOUND, conjuncts, counterOf, endsIn, mirrored, negated } from '../analysis/conditions.js';
import type { DType } from '../../core/elements/dtype.js';
import { INDEX_NAMES, type Names } from './names.js';
import type { ArrayRef, Expr, Stmt, Variable } from '../ir/ir.js';
import { assignedIn, bodiesOf, expressionsOf, operands } from '../ir/walk.js';

/** C++ that calls the shim's index_ranges.h: statements that compute ranges, and conditions that must all hold. */
export interface RangeTest {
  readonly makes: readonly string[];
  readonly holds: readonly string[];
}

/** A value compared by identity: a variable, or an index by its name. */
type Leaf = Variable | string;
interface Narrowing {
  readonly leaf: Leaf;
  readonly function: string;
  readonly bound: string;
}

const AXES = ['x', 'y', 'z'] as const;
const BOX = ['width', 'height', 'depth'] as const;

/** Ranges of the narrow storage types, whatever memory holds. */
const NARROW: Readonly<Partial<Record<DType, string>>> = {
  u8: 'mr_between(0, 255)',
  i8: 'mr_between(-128, 127)',
  u16: 'mr_between(0, 65535)',
  i16: 'mr_between(-32768, 32767)',
};

/** The scope of the test: a block for all its threads, or a thread for itself, with its indices declared. */
export type Asking = 'block' | 'thread';

/** Undefined when an index has no range. `shared`: variables with one value in the scope of the test. */
export function rangeTest(
  body: readonly Stmt[],
  names: Names,
  shared: ReadonlySet<Variable>,
  indexRank: number,
  asking: Asking = 'block',
): RangeTest | undefined {
  const ranges = new Ranges(body, names, shared, indexRank, asking);
  ranges.list(body);
  return ranges.isKnown ? { makes: ranges.makes, holds: [...ranges.holds] } : undefined;
}

class Ranges {
  readonly makes: string[] = [];
  readonly holds: Set<string> = new Set();
  isKnown = true;
  readonly #names: Names;
  readonly #shared: ReadonlySet<Variable>;
  readonly #indexRank: number;
  readonly #asking: Asking;
  readonly #assigned: ReadonlySet<Variable>;
  readonly #ranges = new Map<Variable, string>();
  #narrowings: readonly Narrowing[] = [];

  constructor(body: readonly Stmt[], names: Names, shared: ReadonlySet<Variable>, indexRank: number, asking: Asking) {
    this.#names = names;
    this.#shared = shared;
    this.#indexRank = indexRank;
    this.#asking = asking;
    this.#assigned = assignedIn(body);
  }

  list(body: readonly Stmt[]): void {
    const outer = this.#narrowings;
    for (const stmt of body) {
      this.#statement(stmt);
      // Threads that continue did not take the branch, so its condition is false for them.
      if (stmt.kind === 'if' && stmt.otherwise.length === 0 && endsIn(stmt.then)) this.#narrow(negated(stmt.test));
      if (stmt.kind === 'assert') this.#narrow(stmt.test);
    }
    this.#narrowings = outer;
  }

  #statement(stmt: Stmt): void {
    if (stmt.kind === 'loop') return this.#loop(stmt);
    for (const expr of expressionsOf(stmt)) this.#visit(expr);
    if (stmt.kind === 'store') this.#access(stmt.array, stmt.indices);
    if (stmt.kind === 'declare' && stmt.value !== undefined && !this.#assigned.has(stmt.variable)) this.#name(stmt.variable, stmt.value);
    if (stmt.kind === 'if') {
      this.#narrowed(stmt.test, () => this.list(stmt.then));
      this.#narrowed(negated(stmt.test), () => this.list(stmt.otherwise));
    } else {
      for (const body of bodiesOf(stmt)) this.list(body);
    }
  }

  #loop(stmt: Extract<Stmt, { kind: 'loop' }>): void {
    const outer = this.#narrowings;
    for (const inner of stmt.init) this.#statement(inner);
    if (stmt.test !== undefined) this.#visit(stmt.test);
    const counter = counterOf(stmt);
    if (counter !== undefined) {
      const [from, bound, step] = [counter.from, counter.bound, counter.step].map((expr) => this.#range(expr));
      const isSafe = from !== undefined && bound !== undefined && step !== undefined;
      if (isSafe) this.#define(counter.variable, `mr_count_${counter.how}_${counter.variable.type}(${from}, ${bound}, ${step})`);
    }
    if (stmt.tested === 'before' && stmt.test !== undefined) this.#narrow(stmt.test);
    this.list(stmt.body);
    this.#narrowings = outer;
    // The update changes the counter to a value that may be outside its range.
    if (counter !== undefined) this.#ranges.delete(counter.variable);
    this.list(stmt.update);
  }

  /** Visits the accesses of an expression, under the conditions that guard each. */
  #visit(expr: Expr): void {
    if (expr.kind === 'logical') {
      this.#visit(expr.left);
      this.#narrowed(expr.op === '&&' ? expr.left : negated(expr.left), () => this.#visit(expr.right));
      return;
    }
    if (expr.kind === 'select') {
      this.#visit(expr.test);
      this.#narrowed(expr.test, () => this.#visit(expr.then));
      this.#narrowed(negated(expr.test), () => this.#visit(expr.otherwise));
      return;
    }
    if (expr.kind === 'bind') {
      this.#visit(expr.value);
      this.#name(expr.variable, expr.value);
      this.#visit(expr.body);
      return;
    }
    for (const operand of operands(expr)) this.#visit(operand);
    if (expr.kind === 'load' || expr.kind === 'atomic') this.#access(expr.array, expr.indices);
  }

  #access(array: ArrayRef, indices: readonly Expr[]): void {
    indices.forEach((index, dimension) => {
      const range = this.#range(index);
      if (range === undefined) this.isKnown = false;
      else this.holds.add(`mr_is_within(${range}, ${this.#names.extent(array, dimension)})`);
    });
  }

  #name(variable: Variable, value: Expr): void {
    const range = this.#range(value);
    if (range !== undefined) this.#define(variable, range);
  }
  #define(variable: Variable, range: string): void {
    this.#ranges.set(variable, this.#named(range));
  }
  #named(range: string): string {
    if (/^\w+\(\w*\)$|^\w+$/.test(range)) return range;
    const name = this.#names.temporary();
    this.makes.push(`const mr_range ${name} = ${range};`);
    return name;
  }

  #narrowed(test: Expr | undefined, run: () => void): void {
    const outer = this.#narrowings;
    this.#narrow(test);
    run();
    this.#narrowings = outer;
  }

  #narrow(test: Expr | undefined): void {
    for (const { left, op, right } of conjuncts(test)) {
      for (const [side, of, other] of [
        [left, op, right],
        [right, mirrored(op), left],
      ] as const) {
        const leaf = this.#isOne(side) && !this.#isOne(other) ? undefined : this.#leafOf(side);
        const bound = leaf === undefined ? undefined : this.#range(other);
        if (leaf === undefined || bound === undefined) continue;
        // A name avoids copying the expression: narrowed ranges inside narrowed ranges would grow without bound.
        const named = BOUND[of].length === 0 ? bound : this.#named(bound);
        this.#narrowings = [...this.#narrowings, ...BOUND[of].map((name) => ({ leaf, function: name, bound: named }))];
      }
    }
  }

  /** Whether the value is the same for the whole block: then a condition on thread values does not narrow it. */
  #isOne(expr: Expr): boolean {
    if (expr.kind === 'variable') return this.#shared.has(expr.variable);
    if (expr.kind === 'index' || expr.kind === 'load' || expr.kind === 'atomic') return false;
    return !(expr.kind === 'thread' && expr.vector === 'threadIdx') && operands(expr).every((operand) => this.#isOne(operand));
  }

  /** A value that conditions can narrow, because it does not change between the condition and the access. */
  #leafOf(expr: Expr): Leaf | undefined {
    if (expr.kind === 'index') return `index ${expr.axis}`;
    if (expr.kind === 'thread') return `${expr.vector} ${expr.axis}`;
    if (expr.kind !== 'variable' || (expr.type !== 'i32' && expr.type !== 'u32')) return undefined;
    return this.#assigned.has(expr.variable) && !this.#ranges.has(expr.variable) ? undefined : expr.variable;
  }

  #range(expr: Expr): string | undefined {
    if (expr.type !== 'i32' && expr.type !== 'u32') return undefined;
    const range = this.#wideRange(expr);
    const leaf = this.#leafOf(expr);
    const narrowings = leaf === undefined ? [] : this.#narrowings.filter((narrowing) => narrowing.leaf === leaf);
    if (range === undefined) {
      // Any value has a range once conditions bound it on both sides.
      const isFromBelow = expr.type === 'u32' || narrowings.some(({ function: name }) => name === 'mr_at_least' || name === 'mr_above');
      if (!isFromBelow || !narrowings.some(({ function: name }) => name === 'mr_at_most' || name === 'mr_below')) return undefined;
    }
    return narrowings.reduce((text, { function: name, bound }) => `${name}(${text}, ${bound})`, range ?? `mr_any_${expr.type}()`);
  }

  #wideRange(expr: Expr): string | undefined {
    switch (expr.kind) {
      case 'const':
        return `mr_value(${expr.value}ll)`;
      case 'scalar':
        return `mr_value(${this.#names.parameter(expr.name)})`;
      case 'extent':
        return `mr_value(${this.#names.extent(expr.array, expr.dimension)})`;
      case 'thread':
        return expr.vector === 'threadIdx' && this.#asking === 'block'
          ? `mr_threads(mr_box_of_block.${BOX[expr.axis]})`
          : `mr_value((int)${expr.vector}.${AXES[expr.axis]})`;
      case 'index': {
        if (this.#asking === 'thread') return `mr_value(${INDEX_NAMES[expr.axis]})`;
        const axis = this.#indexRank - 1 - expr.axis;
        const name = AXES[axis]!;
        return `mr_indices(blockIdx.${name}, blockDim.${name}, mr_box_of_block.${BOX[axis]!})`;
      }
      case 'variable':
        if (this.#shared.has(expr.variable)) return `mr_value(${this.#names.variable(expr.variable)})`;
        return this.#ranges.get(expr.variable);
      case 'load':
        return NARROW[expr.array.dtype];
      case 'cast':
        return this.#of(`mr_to_${expr.type}`, expr.operand);
      case 'negate':
        return expr.type === 'i32' ? this.#of('mr_negate', expr.operand) : undefined;
      case 'arithmetic':
        return this.#arithmetic(expr);
      case 'select':
        return this.#of('mr_either', expr.then, expr.otherwise);
      case 'builtin':
        return this.#builtin(expr);
      default:
        return undefined;
    }
  }

  #of(name: string, ...args: readonly Expr[]): string | undefined {
    const ranges = args.map((arg) => this.#range(arg));
    return ranges.every((range) => range !== undefined) ? `${name}(${ranges.join(', ')})` : undefined;
  }

  #arithmetic({ op, type, left, right }: Extract<Expr, { kind: 'arithmetic' }>): string | undefined {
    switch (op) {
      case '+':
        return this.#of(`mr_sum_${type}`, left, right);
      case '-':
        return this.#of(`mr_difference_${type}`, left, right);
      case '*':
        return this.#of(`mr_product_${type}`, left, right);
      case '&': {
        const masks = [left, right].map((side) => this.#range(side));
        if (masks[0] !== undefined && masks[1] !== undefined) return `mr_masked(${masks[0]}, ${masks[1]})`;
        const mask = masks[0] ?? masks[1];
        return mask && `mr_mask(${mask})`;
      }
      case '>>':
        return this.#of('mr_shifted', left, right) ?? this.#unknown('mr_shifted', type, right);
      case '%':
        return this.#of('mr_remainder', left, right) ?? this.#unknown('mr_remainder', type, right);
      default:
        return undefined;
    }
  }

  #unknown(name: string, type: Expr['type'], right: Expr): string | undefined {
    const range = type === 'u32' ? this.#range(right) : undefined;
    return range && `${name}(mr_any_u32(), ${range})`;
  }

  #builtin({ name, args }: Extract<Expr, { kind: 'builtin' }>): string | undefined {
    switch (name) {
      case 'idiv':
      case 'floordiv':
        return this.#of(`mr_${name}`, ...args);
      case 'min':
      case 'max':
        return args.length === 2 ? this.#of(`mr_range_${name}`, ...args) : undefined;
      case 'clamp':
        return this.#of('mr_clamped', ...args);
      default:
        return undefined;
    }
  }
}
