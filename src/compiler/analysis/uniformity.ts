// Finds the values that are the same for all threads of a block, or of the grid, that have not returned. Barriers are legal only where such
// values decide the control flow. The same analysis covers SIMD lanes: neighbours along x that run side by side and therefore load the same
// value from the same address.
//
// A value differs between threads if it comes from the thread's index, from memory that the kernel writes, from shared or local memory,
// from an atomic, or from another such value. A variable also differs if it is assigned in divergent code: below a divergent condition and
// deeper than its declaration, or in a loop that threads leave at different iterations. A `return` causes no divergence, since the threads
// that returned do not count. A load at a uniform index from an array that the kernel does not write is uniform, even if the launch passes
// the same memory as an output, as long as the load stays in place: region-plan.ts must not move it past a write. For the grid, blockIdx
// differs too; a write races with a later load of another block unless a grid barrier separates them.
import type { Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { operands, writtenArrays } from '../ir/walk.js';

const AXES = ['x', 'y', 'z'] as const;
const INDEX_NAMES = ['i', 'j', 'k'] as const;

/** The group of threads that the analysis compares. */
export type Group = 'block' | 'grid';

export interface Uniformity {
  /** The reason why the value may differ between threads of the group, as a phrase; undefined when it does not differ. */
  readonly causeOf: (expr: Expr) => string | undefined;
  readonly isUniform: (variable: Variable) => boolean;
  /** Statements that only some threads of the group may run. */
  readonly divergent: ReadonlySet<Stmt>;
  /** Loops that threads leave at different iterations. */
  readonly partedLoops: ReadonlySet<Stmt>;
  /** Barriers in divergent code, each with the statement that causes the divergence. */
  readonly brokenBarriers: readonly BrokenBarrier[];
}

/** A statement at which threads diverge, and the value on which they do. */
export interface Parting {
  readonly stmt: Stmt;
  readonly how: 'branch' | 'loop' | 'break' | 'continue';
  readonly cause: string;
}

export interface BrokenBarrier {
  readonly barrier: Extract<Stmt, { kind: 'barrier' }>;
  readonly parting: Parting;
}

/** Why a variable differs. `root` is the original source of the difference. */
interface Reason {
  readonly text: string;
  readonly root: string;
}

/** SIMD lanes: neighbours along x that run side by side. */
export interface Lanes {
  readonly indexRank: KernelIr['indexRank'];
  /** Variables that differ from the start: parameters of a helper, and variables that a thread keeps from one region to the next. */
  readonly differing: Iterable<Variable>;
}

export function analyse(ir: Pick<KernelIr, 'body'>, group: Group | Lanes = 'block'): Uniformity {
  const analysis = new Analysis(ir, group);
  return {
    causeOf: (expr) => analysis.reasonOf(expr)?.text,
    isUniform: (variable) => !analysis.isVarying(variable),
    divergent: analysis.divergent,
    partedLoops: analysis.partedLoops,
    brokenBarriers: analysis.brokenBarriers,
  };
}

class Analysis {
  readonly divergent: Set<Stmt> = new Set();
  brokenBarriers: BrokenBarrier[] = [];
  readonly #isOfGrid: boolean;
  readonly #written: ReadonlySet<string>;
  readonly #varying = new Map<Variable, Reason>();
  /** The number of divergent statements around a variable's declaration. */
  readonly #depths = new Map<Variable, number>();
  /** Loops that threads leave at different iterations. */
  readonly #loops = new Map<Stmt, Parting>();
  readonly #lanes: Lanes | undefined;
  #partings: Parting[] = [];
  /** The enclosing loop, and the number of divergent statements around its body. */
  #loop: { readonly stmt: Stmt; readonly depth: number } | undefined;
  #hasChanged = true;

  constructor({ body }: Pick<KernelIr, 'body'>, group: Group | Lanes) {
    this.#isOfGrid = group === 'grid';
    this.#lanes = typeof group === 'string' ? undefined : group;
    for (const variable of this.#lanes?.differing ?? [])
      this.#differs(variable, { text: `'${variable.name}'`, root: `'${variable.name}'` });
    const arrays = [...writtenArrays(body)].filter((array) => array.space === 'parameter');
    this.#written = new Set(arrays.map((array) => array.name));
    // Each round only adds reasons, so the loop terminates.
    while (this.#hasChanged) {
      this.#hasChanged = false;
      this.brokenBarriers = [];
      this.#list(body);
    }
  }

  get partedLoops(): ReadonlySet<Stmt> {
    return new Set(this.#loops.keys());
  }

  isVarying(variable: Variable): boolean {
    return this.#varying.has(variable);
  }

  reasonOf(expr: Expr): Reason | undefined {
    const own = (text: string): Reason => ({ text, root: text });
    switch (expr.kind) {
      case 'index':
        // SIMD lanes are neighbours along x, which is the last index.
        if (this.#lanes !== undefined && expr.axis !== this.#lanes.indexRank - 1) return undefined;
        return own(`the index ${INDEX_NAMES[expr.axis]}`);
      case 'thread':
        if (this.#lanes !== undefined && expr.axis !== 0) return undefined;
        if (expr.vector === 'threadIdx' || (expr.vector === 'blockIdx' && this.#isOfGrid)) return own(`${expr.vector}.${AXES[expr.axis]}`);
        return undefined;
      case 'variable':
        return this.#varying.get(expr.variable);
      case 'atomic':
        return own(`the result of an atomic on '${expr.array.name}'`);
      case 'draw':
        return own(`a number drawn from '${expr.array.name}'`);
      case 'load':
        if (expr.array.space === 'local') return own(`'${expr.array.name}', which is local memory of each thread`);
        // SIMD lanes run one load together, so one address gives one value.
        if (this.#lanes !== undefined) break;
        if (expr.array.space !== 'parameter') return own(`'${expr.array.name}', which is in shared memory`);
        if (this.#written.has(expr.array.name)) return own(`'${expr.array.name}', which the kernel writes`);
        break;
      case 'bind': {
        // The body refers to the variable, so its reason must be known first.
        const reason = this.reasonOf(expr.value);
        if (reason !== undefined) this.#differs(expr.variable, reason);
        return reason ?? this.reasonOf(expr.body);
      }
      default:
    }
    for (const operand of operands(expr)) {
      const reason = this.reasonOf(operand);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  #differs(variable: Variable, reason: Reason): void {
    if (this.#varying.has(variable)) return;
    this.#varying.set(variable, { text: `'${variable.name}', which depends on ${reason.root}`, root: reason.root });
    this.#hasChanged = true;
  }

  #list(body: readonly Stmt[]): void {
    const outer = this.#partings;
    for (const stmt of body) {
      if (this.#partings.length > 0 && !this.divergent.has(stmt)) {
        this.divergent.add(stmt);
        this.#hasChanged = true;
      }
      this.#statement(stmt);
      // A thread that runs `continue` skips the rest of the loop's body.
      const parting = this.#loop && this.#continues(stmt);
      if (parting !== undefined) this.#partings = [...this.#partings, parting];
    }
    this.#partings = outer;
  }

  #statement(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'declare': {
        this.#depths.set(stmt.variable, this.#partings.length);
        const reason = stmt.value && this.reasonOf(stmt.value);
        if (reason !== undefined) this.#differs(stmt.variable, reason);
        return;
      }
      case 'assign': {
        const reason = this.reasonOf(stmt.value);
        const parting = this.#partings[this.#depths.get(stmt.variable) ?? 0];
        if (reason !== undefined) this.#differs(stmt.variable, reason);
        else if (parting !== undefined) this.#differs(stmt.variable, { text: parting.cause, root: parting.cause });
        return;
      }
      case 'barrier':
        if (this.#partings.length > 0) this.brokenBarriers.push({ barrier: stmt, parting: this.#partings[0]! });
        return;
      case 'if': {
        const reason = this.reasonOf(stmt.test);
        this.#under(reason && { stmt, how: 'branch', cause: reason.text }, () => {
          this.#list(stmt.then);
          this.#list(stmt.otherwise);
        });
        return;
      }
      case 'loop':
        this.#loopOf(stmt);
        return;
      case 'block':
        this.#list(stmt.body);
        return;
      case 'break': {
        const loop = this.#loop;
        const parting = loop && this.#partings[loop.depth];
        if (parting !== undefined) this.#parts(loop!.stmt, { stmt: loop!.stmt, how: 'break', cause: parting.cause });
        return;
      }
      default:
    }
  }

  #loopOf(stmt: Extract<Stmt, { kind: 'loop' }>): void {
    this.#list(stmt.init);
    const reason = stmt.test && this.reasonOf(stmt.test);
    if (reason !== undefined) this.#parts(stmt, { stmt, how: 'loop', cause: reason.text });
    const outer = this.#loop;
    this.#under(this.#loops.get(stmt), () => {
      this.#loop = { stmt, depth: this.#partings.length };
      this.#list(stmt.body);
      this.#list(stmt.update);
    });
    this.#loop = outer;
  }

  #parts(loop: Stmt, parting: Parting): void {
    if (this.#loops.has(loop)) return;
    this.#loops.set(loop, parting);
    this.#hasChanged = true;
  }

  #under(parting: Parting | undefined, run: () => void): void {
    const outer = this.#partings;
    if (parting !== undefined) this.#partings = [...outer, parting];
    run();
    this.#partings = outer;
  }

  /** A `continue` of the enclosing loop, inside the statement, that only some threads reach. */
  #continues(stmt: Stmt): Parting | undefined {
    if (!continuesOuter(stmt)) return undefined;
    const parted = this.#partings[this.#loop!.depth];
    if (parted !== undefined) return { ...parted, how: 'continue' };
    const reason = stmt.kind === 'if' ? this.reasonOf(stmt.test) : undefined;
    if (reason !== undefined) return { stmt, how: 'continue', cause: reason.text };
    for (const inner of innerOf(stmt)) {
      const parting = this.#continues(inner);
      if (parting !== undefined) return parting;
    }
    return undefined;
  }
}

function innerOf(stmt: Stmt): readonly Stmt[] {
  if (stmt.kind === 'if') return [...stmt.then, ...stmt.otherwise];
  return stmt.kind === 'block' ? stmt.body : [];
}

/** Whether the statement contains a `continue` of the enclosing loop. */
function continuesOuter(stmt: Stmt): boolean {
  return stmt.kind === 'continue' || innerOf(stmt).some(continuesOuter);
}
