// How a kernel writes an array parameter that it declares as `output`: whether each thread that returns has stored its own element, the one
// whose indices are the thread's in order, or whether the first thread has stored element 0, which may be the only one; and whether the kernel
// loads elements that this thread has not stored.
import type { ArrayOutput } from '../../core/kernels/kernel.js';
import type { Params } from '../../core/kernels/params.js';
import type { Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { expressionsOf, partsOf } from '../ir/walk.js';

/** By name; only those of `output` parameters. */
export function outputsOf(ir: KernelIr, params: Params): Readonly<Record<string, ArrayOutput>> {
  const outputs = Object.entries(params).filter(([, param]) => param.kind === 'array' && param.access === 'out');
  return Object.fromEntries(outputs.map(([name]) => [name, outputOf(ir, name)]));
}

function outputOf(ir: KernelIr, name: string): ArrayOutput {
  const own = new OutputWalk(name, 'own').use(ir);
  const first = own === 'own' ? own : new OutputWalk(name, 'first').use(ir);
  return first === 'first' ? first : own;
}

class OutputWalk {
  readonly #name: string;
  /** The element that is looked for. */
  readonly #element: 'own' | 'first';
  /** Names for an index of the thread, which `const at = i` declares. */
  readonly #indices: Map<Variable, number> = new Map();
  /** Names for numbers that are 0 in the first thread. */
  readonly #zeros: Set<Variable> = new Set();
  #isRead = false;
  /** A thread may return without the store. */
  #isSkipped = false;

  constructor(name: string, element: 'own' | 'first') {
    this.#name = name;
    this.#element = element;
  }

  use({ body }: KernelIr): ArrayOutput {
    const isStored = this.#walk(body, false);
    if (this.#isRead) return 'read';
    return isStored && !this.#isSkipped ? this.#element : 'part';
  }

  /** Whether a thread that comes to the end of the statements has stored its element. */
  #walk(body: readonly Stmt[], before: boolean): boolean {
    let isStored = before;
    for (const stmt of body) isStored = this.#step(stmt, isStored);
    return isStored;
  }

  #step(stmt: Stmt, isStored: boolean): boolean {
    // The update and the test of a loop come after statements of its body, and after none of them too.
    for (const expr of expressionsOf(stmt)) this.#load(expr, isStored);
    switch (stmt.kind) {
      case 'store':
        return isStored || (this.#isParameter(stmt.array) && this.#isElement(stmt.indices));
      case 'declare':
        if (stmt.variable.isConst && stmt.value?.kind === 'index') this.#indices.set(stmt.variable, stmt.value.axis);
        if (stmt.variable.isConst && stmt.value && this.#isZeroInFirst(stmt.value)) this.#zeros.add(stmt.variable);
        return isStored;
      case 'return':
        if (!isStored) this.#isSkipped = true;
        return isStored;
      case 'if':
        return this.#branch(stmt, isStored);
      case 'loop':
        for (const part of [stmt.init, stmt.body, stmt.update]) this.#walk(part, isStored);
        return isStored;
      case 'block':
        return this.#walk(stmt.body, isStored);
      default:
        return isStored;
    }
  }

  /**
   * Threads beyond the array, as of `if (i < x.length)` and `if (i >= x.length) return`, have no element to store. Nor have others than the first
   * one where element 0 is looked for: `if (i === 0)`.
   */
  #branch({ test, then, otherwise }: Extract<Stmt, { readonly kind: 'if' }>, isStored: boolean): boolean {
    const isInside = this.#chooses(test, true);
    if (!isInside && !this.#chooses(test, false)) {
      const isThen = this.#walk(then, isStored);
      return this.#walk(otherwise, isStored) && isThen;
    }
    const isSkipped = this.#isSkipped;
    this.#walk(isInside ? otherwise : then, isStored);
    this.#isSkipped = isSkipped;
    return this.#walk(isInside ? then : otherwise, isStored);
  }

  /** Whether the test is true for all threads that have an element, or false for all of them. */
  #chooses(test: Expr, isTrue: boolean): boolean {
    if (test.kind === 'logical')
      return test.op === (isTrue ? '&&' : '||') && this.#chooses(test.left, isTrue) && this.#chooses(test.right, isTrue);
    if (test.kind !== 'compare') return false;
    const { op, left, right } = test;
    if (this.#element === 'first') return op === (isTrue ? '==' : '!=') && this.#isZeroInFirst(left) && isZero(right);
    if (op === (isTrue ? '<' : '>=')) return this.#isWithin(left, right);
    return op === (isTrue ? '>' : '<=') && this.#isWithin(right, left);
  }

  #isWithin(index: Expr, extent: Expr): boolean {
    return extent.kind === 'extent' && this.#isParameter(extent.array) && this.#axisOf(index) === extent.dimension;
  }

  #isZeroInFirst(expr: Expr): boolean {
    if (expr.kind === 'variable') return this.#zeros.has(expr.variable);
    return expr.kind === 'index' || (expr.kind === 'thread' && (expr.vector === 'threadIdx' || expr.vector === 'blockIdx'));
  }

  #load(expr: Expr, isStored: boolean): void {
    for (const part of partsOf(expr)) {
      if ((part.kind !== 'load' && part.kind !== 'atomic') || !this.#isParameter(part.array)) continue;
      // Other threads may load element 0 before the first one has stored it.
      if (this.#element === 'first' || !isStored || !this.#isElement(part.indices)) this.#isRead = true;
    }
  }

  #isParameter({ name, space }: { readonly name: string; readonly space: string }): boolean {
    return space === 'parameter' && name === this.#name;
  }

  #isElement(indices: readonly Expr[]): boolean {
    return this.#element === 'first' ? indices.every(isZero) : indices.every((index, dimension) => this.#axisOf(index) === dimension);
  }

  #axisOf(index: Expr): number | undefined {
    if (index.kind === 'index') return index.axis;
    return index.kind === 'variable' ? this.#indices.get(index.variable) : undefined;
  }
}

function isZero(expr: Expr): boolean {
  return expr.kind === 'const' && expr.value === 0;
}
