// Runs a kernel's typed IR in plain JavaScript: every thread as a generator that stops at barriers. Arrays are typed
// arrays, changed in place. Throws Unspecified for a program whose result the language leaves open.
import type { ArrayRef, Axis, Expr, FuncIr, KernelIr, ScalarType, Stmt, Variable } from '../../../src/compiler/ir/ir.js';
import { arithmetic, builtin, cast, compare, inverted, negated, Unspecified, type Value } from './arithmetic.js';
import { halfFromBits, halfToBits } from './rounding.js';

export type Memory = Exclude<NodeJS.TypedArray, Uint8ClampedArray>;
export interface Launched {
  readonly arrays: Readonly<Record<string, { readonly data: Memory; readonly shape: readonly number[] }>>;
  readonly scalars: Readonly<Record<string, Value>>;
  /** The launch indices' extents, x first; beyond them no thread runs. */
  readonly extent: readonly [number, number, number];
  readonly grid: readonly [number, number, number];
  readonly block: readonly [number, number, number];
}

type Flow = 'break' | 'continue' | 'return' | undefined;
type Triple = readonly [number, number, number];
/** A statement list may loop for ever only by a mistake of the generator. */
const MOST_STEPS = 200_000;

export function interpret(ir: KernelIr, launch: Launched): void {
  const [columns, rows, layers] = launch.grid;
  for (let z = 0; z < layers; z++) for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) runBlock(ir, launch, [x, y, z]);
}

function runBlock(ir: KernelIr, launch: Launched, block: Triple): void {
  const shared = memoryOf(ir.arrays.filter(({ space }) => space === 'shared'));
  const [width, height, depth] = launch.block;
  let threads: Generator<void, void>[] = [];
  for (let z = 0; z < depth; z++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const global = [x, y, z].map((at, axis) => block[axis as Axis] * launch.block[axis as Axis] + at);
        if (global.some((at, axis) => at >= launch.extent[axis as Axis])) continue;
        const own = memoryOf(ir.arrays.filter(({ space }) => space === 'local'));
        threads.push(new Thread(ir, launch, block, [x, y, z], new Map([...shared, ...own])).run());
      }
    }
  }
  // All barriers of a block are one: each turn ends at one.
  while (threads.length > 0) threads = threads.filter((thread) => thread.next().done !== true);
}

const MADE: Readonly<Record<string, new (length: number) => Memory>> = {
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f32: Float32Array,
  f64: Float64Array,
  u8: Uint8Array,
};

function memoryOf(arrays: readonly ArrayRef[]): [string, Memory][] {
  return arrays.map(({ name, dtype, extents }) => [name, new MADE[dtype]!(extents.reduce((a, b) => a * b, 1))]);
}

class Thread {
  readonly #ir: KernelIr;
  readonly #launch: Launched;
  readonly #block: Triple;
  readonly #thread: Triple;
  readonly #memory: ReadonlyMap<string, Memory>;
  #values = new Map<Variable, Value>();
  #steps = 0;
  #result: Value | undefined;

  constructor(ir: KernelIr, launch: Launched, block: Triple, thread: Triple, memory: ReadonlyMap<string, Memory>) {
    this.#ir = ir;
    this.#launch = launch;
    this.#block = block;
    this.#thread = thread;
    this.#memory = memory;
  }

  *run(): Generator<void, void> {
    yield* this.#list(this.#ir.body);
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
        throw new Error('The oracle draws no numbers.');
    }
  }

  #global(axis: Axis): number {
    return this.#block[axis] * this.#launch.block[axis] + this.#thread[axis];
  }

  #place(vector: 'threadIdx' | 'blockIdx' | 'blockDim' | 'gridDim'): Triple {
    return { threadIdx: this.#thread, blockIdx: this.#block, blockDim: this.#launch.block, gridDim: this.#launch.grid }[vector];
  }

  #shapeOf(array: ArrayRef): readonly number[] {
    return array.space === 'parameter' ? this.#launch.arrays[array.name]!.shape : array.extents;
  }

  #memoryOf(array: ArrayRef): Memory {
    return array.space === 'parameter' ? this.#launch.arrays[array.name]!.data : this.#memory.get(array.name)!;
  }

  #offset(array: ArrayRef, indices: readonly Expr[]): number {
    const shape = this.#shapeOf(array);
    return indices.reduce((offset, index, dimension) => {
      const at = this.#value(index) as number;
      if (at < 0 || at >= shape[dimension]!) throw new Error(`The generator leaves ${array.name}: ${at} of ${shape[dimension]}.`);
      return offset * shape[dimension]! + at;
    }, 0);
  }

  #load(array: ArrayRef, at: number): Value {
    const value = this.#memoryOf(array)[at]!;
    return array.dtype === 'f16' ? halfFromBits(value as number) : value;
  }

  #store(array: ArrayRef, at: number, value: Value): void {
    const stored = array.dtype === 'f16' ? halfToBits(value as number) : value;
    if (stored === undefined) throw new Unspecified('bits of what is no number');
    (this.#memoryOf(array) as unknown as Value[])[at] = stored;
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
    const old = this.#load(array, at);
    const value = this.#value(args[0]!);
    const bits = type === 'i32' ? (of: Value): Value => Number(of) | 0 : (of: Value): Value => Number(of) >>> 0;
    const made: Readonly<Record<string, () => Value>> = {
      add: () => bits((old as number) + (value as number)),
      sub: () => bits((old as number) - (value as number)),
      min: () => (value < old ? value : old),
      max: () => (value > old ? value : old),
      and: () => bits((old as number) & (value as number)),
      or: () => bits((old as number) | (value as number)),
      xor: () => bits((old as number) ^ (value as number)),
    };
    this.#store(array, at, made[op]!());
    return old;
  }
}
