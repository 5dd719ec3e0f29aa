// Runs a kernel's typed IR in plain JavaScript: every thread as a generator that stops at barriers. Arrays are typed
// arrays, changed in place. A thread that leaves an array or fails an assertion stops, as on a device, and is among the
// faults. Throws Unspecified for a program whose result the language leaves open.
import type { ArrayRef, Axis, Expr, FuncIr, KernelIr, ScalarType, Stmt, Variable } from '../../../src/compiler/ir/ir.js';
import { arithmetic, builtin, cast, compare, inverted, negated, Unspecified, type Value } from './arithmetic.js';
import { afterAtomic, loaded, MADE, type Memory, memoryFor, stored } from './memory.js';
import { philox } from './philox.js';

export type { Memory } from './memory.js';
type Triple = readonly [number, number, number];
export interface Launched {
  readonly arrays: Readonly<Record<string, { readonly data: Memory; readonly shape: readonly number[] }>>;
  readonly scalars: Readonly<Record<string, Value>>;
  /** The launch indices' extents, x first; beyond them no thread runs. */
  readonly extent: Triple;
  readonly grid: Triple;
  readonly block: Triple;
  readonly sharedBytes?: number;
}
/** Why a thread stopped, and which: what BoundsError and LaunchError say. */
export interface Fault {
  readonly array: string;
  readonly dimension: number;
  readonly index: number;
  readonly limit: number;
  readonly block: Triple;
  readonly thread: Triple;
}
/** Stands for the array where a condition did not hold. */
export const ASSERTION = 'assertion';

type Flow = 'break' | 'continue' | 'return' | undefined;
/** A statement list may loop for ever only by a mistake of the generator. */
const MOST_STEPS = 200_000;

/** The threads that stopped. */
export function interpret(ir: KernelIr, launch: Launched): readonly Fault[] {
  const faults: Fault[] = [];
  const [columns, rows, layers] = launch.grid;
  for (let z = 0; z < layers; z++) for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) runBlock(ir, launch, [x, y, z], faults);
  return faults;
}

function runBlock(ir: KernelIr, launch: Launched, block: Triple, faults: Fault[]): void {
  const shared = memoryFor(ir.arrays.filter(({ space }) => space === 'shared'));
  const dynamic = new ArrayBuffer(launch.sharedBytes ?? 0);
  for (const { name, space, dtype } of ir.arrays) if (space === 'dynamic shared') shared.push([name, new MADE[dtype](dynamic)]);
  const [width, height, depth] = launch.block;
  let threads: Generator<void, void>[] = [];
  for (let z = 0; z < depth; z++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const global = [x, y, z].map((at, axis) => block[axis as Axis] * launch.block[axis as Axis] + at);
        if (global.some((at, axis) => at >= launch.extent[axis as Axis])) continue;
        const own = memoryFor(ir.arrays.filter(({ space }) => space === 'local'));
        threads.push(new Thread(ir, launch, block, [x, y, z], new Map([...shared, ...own]), faults).run());
      }
    }
  }
  // All barriers of a block are one: each turn ends at one.
  while (threads.length > 0) threads = threads.filter((thread) => thread.next().done !== true);
}

/** Ends its thread. */
class Stopped extends Error {}

class Thread {
  readonly #ir: KernelIr;
  readonly #launch: Launched;
  readonly #block: Triple;
  readonly #thread: Triple;
  readonly #memory: ReadonlyMap<string, Memory>;
  readonly #faults: Fault[];
  #values = new Map<Variable, Value>();
  readonly #generators = new Map<string, () => number>();
  #steps = 0;
  #result: Value | undefined;

  constructor(ir: KernelIr, launch: Launched, block: Triple, thread: Triple, memory: ReadonlyMap<string, Memory>, faults: Fault[]) {
    this.#ir = ir;
    this.#launch = launch;
    this.#block = block;
    this.#thread = thread;
    this.#memory = memory;
    this.#faults = faults;
  }

  *run(): Generator<void, void> {
    try {
      yield* this.#list(this.#ir.body);
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    }
  }

  #stop(why: Pick<Fault, 'array' | 'dimension' | 'index' | 'limit'>): never {
    this.#faults.push({ ...why, block: this.#block, thread: this.#thread });
    throw new Stopped();
  }

  *#list(body: readonly Stmt[]): Generator<void, Flow> {
    for (const stmt of body) {
      if (++this.#steps > MOST_STEPS) throw new Unspecified('it does not end');
      const flow = yield* this.#statement(stmt);
      if (flow !== undefined) return flow;
    }
    return undefined;
  }

  *#statement(stmt: Stmt): Generator<void, Flow> {
    switch (stmt.kind) {
      case 'declare':
        this.#values.set(
          stmt.variable,
          stmt.value === undefined ? cast('i32', stmt.variable.type as ScalarType, 0) : this.#value(stmt.value),
        );
        return undefined;
      case 'assign':
        this.#values.set(stmt.variable, this.#value(stmt.value));
        return undefined;
      case 'store': {
        const at = this.#offset(stmt.array, stmt.indices);
        this.#store(stmt.array, at, this.#value(stmt.value));
        return undefined;
      }
      case 'effect':
        this.#value(stmt.expr);
        return undefined;
      case 'barrier':
        yield;
        return undefined;
      case 'if':
        return yield* this.#list(this.#value(stmt.test) === true ? stmt.then : stmt.otherwise);
      case 'loop':
        return yield* this.#loop(stmt);
      case 'block':
        return yield* this.#list(stmt.body);
      case 'return':
        this.#result = stmt.value && this.#value(stmt.value);
        return 'return';
      case 'break':
      case 'continue':
        return stmt.kind;
      case 'fence':
        return undefined;
      case 'assert':
        if (this.#value(stmt.test) !== true) this.#stop({ array: ASSERTION, dimension: 0, index: 0, limit: 0 });
        return undefined;
      case 'seed':
        this.#generators.set(stmt.array.name, philox(this.#value(stmt.seed) as number, this.#value(stmt.sequence) as number));
        return undefined;
      default:
        throw new Error(`The oracle does not run ${stmt.kind}.`);
    }
  }

  *#loop(stmt: Extract<Stmt, { kind: 'loop' }>): Generator<void, Flow> {
    yield* this.#list(stmt.init);
    const goesOn = (): boolean => stmt.test === undefined || this.#value(stmt.test) === true;
    if (stmt.tested === 'before' && !goesOn()) return undefined;
    do {
      const flow = yield* this.#list(stmt.body);
      if (flow === 'return') return flow;
      if (flow === 'break') return undefined;
      yield* this.#list(stmt.update);
      if (++this.#steps > MOST_STEPS) throw new Unspecified('it does not end');
    } while (goesOn());
    return undefined;
  }

  #value(expr: Expr): Value {
    const type = expr.type as ScalarType;
    switch (expr.kind) {
      case 'const':
        return type === 'bool' ? expr.value !== 0 : expr.value;
      case 'wide':
        return expr.value;
      case 'variable':
        return this.#values.get(expr.variable)!;
      case 'scalar':
        return this.#launch.scalars[expr.name]!;
      case 'extent':
        return this.#shapeOf(expr.array)[expr.dimension]!;
      case 'index':
        return this.#global((this.#ir.indexRank - 1 - expr.axis) as Axis);
      case 'thread':
        return this.#place(expr.vector)[expr.axis];
      case 'load':
        return this.#load(expr.array, this.#offset(expr.array, expr.indices));
      case 'negate':
        return negated(type, this.#value(expr.operand));
      case 'invert':
        return inverted(type, this.#value(expr.operand));
      case 'not':
        return this.#value(expr.operand) !== true;
      case 'arithmetic':
        return arithmetic(expr.op, type, this.#value(expr.left), this.#value(expr.right));
      case 'compare':
        return compare(expr.op, this.#value(expr.left), this.#value(expr.right));
      case 'logical':
        return (this.#value(expr.left) === true) === (expr.op === '||') ? expr.op === '||' : this.#value(expr.right);
      case 'select':
        return this.#value(this.#value(expr.test) === true ? expr.then : expr.otherwise);
      case 'cast':
        return cast(expr.operand.type as ScalarType, type, this.#value(expr.operand));
      case 'builtin': {
        const args = expr.args.map((arg) => this.#value(arg));
        return builtin(expr.name, type, args);
      }
      case 'call':
        return this.#call(
          expr.func,
          expr.args.map((arg) => this.#value(arg)),
        );
      case 'bind':
        this.#values.set(expr.variable, this.#value(expr.value));
        return this.#value(expr.body);
      case 'atomic':
        return this.#atomic(expr);
      case 'draw':
        return this.#drawn(expr);
    }
  }

  #global(axis: Axis): number {
    return this.#block[axis] * this.#launch.block[axis] + this.#thread[axis];
  }

  #place(vector: 'threadIdx' | 'blockIdx' | 'blockDim' | 'gridDim'): Triple {
    return { threadIdx: this.#thread, blockIdx: this.#block, blockDim: this.#launch.block, gridDim: this.#launch.grid }[vector];
  }

  #shapeOf(array: ArrayRef): readonly number[] {
    if (array.space === 'parameter') return this.#launch.arrays[array.name]!.shape;
    return array.extents.length > 0 ? array.extents : [this.#memory.get(array.name)!.length];
  }

  #memoryOf(array: ArrayRef): Memory {
    return array.space === 'parameter' ? this.#launch.arrays[array.name]!.data : this.#memory.get(array.name)!;
  }

  /** All indices are computed before the first is held to its limit. */
  #offset(array: ArrayRef, indices: readonly Expr[]): number {
    const shape = this.#shapeOf(array);
    const places = indices.map((index) => this.#value(index) as number);
    return places.reduce((offset, at, dimension) => {
      const limit = shape[dimension]!;
      if (at < 0 || at >= limit) this.#stop({ array: array.name, dimension, index: at, limit });
      return offset * limit + at;
    }, 0);
  }

  #load(array: ArrayRef, at: number): Value {
    return loaded(this.#memoryOf(array), array.dtype, at);
  }

  #store(array: ArrayRef, at: number, value: Value): void {
    stored(this.#memoryOf(array), array.dtype, at, value);
  }

  #drawn({ array, draw }: Extract<Expr, { kind: 'draw' }>): Value {
    const word = this.#generators.get(array.name)!();
    if (draw === 'normal') throw new Error('The oracle knows no normal distribution.');
    return draw === 'u32' ? word : (word >>> 8) * 2 ** -24;
  }

  #call(func: FuncIr, args: readonly Value[]): Value {
    const outer = this.#values;
    this.#values = new Map(func.params.map((variable, at) => [variable, args[at]!]));
    if (this.#list(func.body).next().done !== true) throw new Error('A helper waits.');
    this.#values = outer;
    return this.#result!;
  }

  #atomic({ op, array, indices, args, type }: Extract<Expr, { kind: 'atomic' }>): Value {
    const at = this.#offset(array, indices);
    const given = args.map((arg) => this.#value(arg));
    const old = this.#load(array, at);
    this.#store(array, at, afterAtomic(op, type, old, given));
    return old;
  }
}
