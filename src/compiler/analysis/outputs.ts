// How a kernel writes an array parameter that it declares as `output`: whether each thread that returns has stored its own element, the one
// whose indices are the thread's in order, and whether the kernel loads elements that this thread has not stored.
import type { ArrayOutput } from '../../core/kernels/kernel.js';
import type { Params } from '../../core/kernels/params.js';
import type { ComparisonOp, Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { expressionsOf, partsOf } from '../ir/walk.js';

/** By name; only those of `output` parameters. */
export function outputsOf(ir: KernelIr, params: Params): Readonly<Record<string, ArrayOutput>> {
  const outputs = Object.entries(params).filter(([, param]) => param.kind === 'array' && param.access === 'out');
  return Object.fromEntries(outputs.map(([name]) => [name, new OutputWalk(name).use(ir)]));
}

class OutputWalk {
  readonly #name: string;
  /** Names for an index of the thread, which `const at = i` declares. */
  readonly #indices: Map<Variable, number> = new Map();
  #isRead = false;
  /** A thread may return without the store. */
  #isSkipped = false;

  constructor(name: string) {
    this.#name = name;
  }

  use({ body }: KernelIr): ArrayOutput {
    const isStored = this.#walk(body, false);
    if (this.#isRead) return 'read';
    return isStored && !this.#isSkipped ? 'own' : 'part';
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
        return isStored || (this.#isParameter(stmt.array) && this.#isOwn(stmt.indices));
      case 'declare':
        if (stmt.variable.isConst && stmt.value?.kind === 'index') this.#indices.set(stmt.variable, stmt.value.axis);
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

  /** Threads beyond the array, as of `if (i < x.length)` and `if (i >= x.length) return`, have no element to store. */
  #branch({ test, then, otherwise }: Extract<Stmt, { readonly kind: 'if' }>, isStored: boolean): boolean {
    const isInside = this.#isTest(test, '<', '>', '&&');
    if (!isInside && !this.#isTest(test, '>=', '<=', '||')) {
      const isThen = this.#walk(then, isStored);
      return this.#walk(otherwise, isStored) && isThen;
    }
    const isSkipped = this.#isSkipped;
    this.#walk(isInside ? otherwise : then, isStored);
    this.#isSkipped = isSkipped;
    return this.#walk(isInside ? then : otherwise, isStored);
  }

  /** Whether the test compares the thread's indices with the extents of the array, each with that of its dimension. */
  #isTest(test: Expr, op: ComparisonOp, turned: ComparisonOp, joint: '&&' | '||'): boolean {
    if (test.kind === 'logical')
      return test.op === joint && this.#isTest(test.left, op, turned, joint) && this.#isTest(test.right, op, turned, joint);
    if (test.kind !== 'compare' || (test.op !== op && test.op !== turned)) return false;
    const [index, extent] = test.op === op ? [test.left, test.right] : [test.right, test.left];
    return extent.kind === 'extent' && this.#isParameter(extent.array) && this.#axisOf(index) === extent.dimension;
  }

  #load(expr: Expr, isStored: boolean): void {
    for (const part of partsOf(expr)) {
      if ((part.kind !== 'load' && part.kind !== 'atomic') || !this.#isParameter(part.array)) continue;
      if (!isStored || !this.#isOwn(part.indices)) this.#isRead = true;
    }
  }

  #isParameter({ name, space }: { readonly name: string; readonly space: string }): boolean {
    return space === 'parameter' && name === this.#name;
  }

  #isOwn(indices: readonly Expr[]): boolean {
    return indices.every((index, dimension) => this.#axisOf(index) === dimension);
  }

  #axisOf(index: Expr): number | undefined {
    if (index.kind === 'index') return index.axis;
    return index.kind === 'variable' ? this.#indices.get(index.variable) : undefined;
  }
}
