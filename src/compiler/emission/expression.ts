// Emits IR expressions as CUDA C++.
//
// Parts that C++ cannot express inside an expression become statements before it: an index check that leaves the kernel, an atomic whose
// result is used, the arm of a `?:` that must not run. `before` collects them in evaluation order.
import { BUILTINS } from '../ir/builtins.js';
import { type DType, is16BitFloat } from '../../core/elements/dtype.js';
import { INDEX_NAMES, Names } from './names.js';
import { CPP_TYPE, fromStorage, funcName, indented, shortestSingle, stripped } from './cpp-text.js';
import { type ArrayRef, type Expr, isStable, type ScalarType, type Stmt, type ThreadVector, type ValueType } from '../ir/ir.js';
import { someExpr } from '../ir/walk.js';

const AXES = ['x', 'y', 'z'] as const;
const ATOMIC_NAMES = {
  add: 'atomicAdd',
  sub: 'atomicSub',
  min: 'atomicMin',
  max: 'atomicMax',
  and: 'atomicAnd',
  or: 'atomicOr',
  xor: 'atomicXor',
  exchange: 'atomicExch',
  cas: 'atomicCAS',
} as const;

/** How a thread reports an index out of bounds, and how it leaves the kernel. */
export interface Exit {
  readonly report: string;
  readonly leave: string;
}
export const PLAIN_EXIT: Exit = { report: 'MR_FAULT', leave: 'return;' };

export class ExpressionEmitter {
  readonly helpers: Set<string> = new Set();
  readonly names: Names;
  exit: Exit = PLAIN_EXIT;
  /** Statements that must run before the current expression. */
  before: string[] = [];
  /** Whether array indices are checked. */
  isChecked: boolean;
  /** Checks already emitted, as source, by enclosing block: a check of an outer block also holds in the inner ones. */
  #known: Set<string>[] = [new Set()];

  constructor(isChecked: boolean, names: Names = new Names()) {
    this.isChecked = isChecked;
    this.names = names;
  }

  enterBlock(): void {
    this.#known.push(new Set());
  }
  leaveBlock(): void {
    this.#known.pop();
  }

  /** Collects the statements that an expression needs instead of adding them to `before`. */
  capture<T>(run: () => T): { readonly before: string[]; readonly result: T } {
    const outer = this.before;
    this.before = [];
    this.enterBlock();
    const result = run();
    this.leaveBlock();
    const { before } = this;
    this.before = outer;
    return { before, result };
  }

  /** Emits a whole expression, without parentheses around it. */
  emit(expr: Expr): string {
    const text = someExpr(expr, ({ kind }) => kind === 'atomic' || kind === 'draw') ? this.#inOrder(expr) : this.#text(expr);
    return stripped(text);
  }

  /** Emits a value that indices are made of, for example the next value of a counter. */
  emitIndex(expr: Expr): string {
    return stripped(this.#indexText(expr));
  }

  /** If the expression contains an atomic or a random draw, loads go into temporaries, which preserves the evaluation order. */
  #inOrder(expr: Expr): string {
    this.#loadsFirst++;
    const text = this.#text(expr);
    this.#loadsFirst--;
    return text;
  }
  #loadsFirst = 0;

  /** An element whose index is evaluated before `exprs`, even if those have side effects. */
  elementBefore(array: ArrayRef, indices: readonly Expr[], exprs: readonly Expr[]): string {
    const isOrdered = exprs.some((expr) => someExpr(expr, ({ kind }) => kind === 'atomic' || kind === 'draw'));
    if (isOrdered) this.#loadsFirst++;
    const element = this.element(array, indices);
    if (isOrdered) this.#loadsFirst--;
    return element;
  }

  #text(expr: Expr): string {
    switch (expr.kind) {
      case 'const':
        return this.constant(expr.type, expr.value);
      case 'wide':
        return wideText(expr.value, expr.type);
      case 'variable':
        return this.names.variable(expr.variable);
      case 'scalar':
        return this.#fromStorage(expr.dtype, this.names.parameter(expr.name));
      case 'extent':
        return this.names.extent(expr.array, expr.dimension);
      case 'index':
        return INDEX_NAMES[expr.axis];
      case 'thread':
        return threadText(expr.vector, expr.axis);
      case 'load':
        return this.#load(expr);
      case 'negate':
        return negated(decided(expr.type), this.#text(expr.operand));
      case 'invert':
        return `(~${this.#text(expr.operand)})`;
      case 'not':
        return `(!${this.#text(expr.operand)})`;
      case 'arithmetic':
        return this.#arithmetic(expr.op, decided(expr.type), expr.left, expr.right, false);
      case 'compare':
        return `(${this.#text(expr.left)} ${expr.op} ${this.#text(expr.right)})`;
      case 'logical':
        return this.#logical(expr);
      case 'select':
        return this.#select(expr);
      case 'cast':
        return this.#cast(expr.type, expr.operand);
      case 'builtin':
        return this.#builtin(expr.name, decided(expr.type), expr.args);
      case 'call':
        return `${funcName(expr.func.name)}(${expr.args.map((arg) => stripped(this.#text(arg))).join(', ')})`;
      case 'bind': {
        const value = stripped(this.#text(expr.value));
        this.before.push(`const ${CPP_TYPE[decided(expr.variable.type)]} ${this.names.variable(expr.variable)} = ${value};`);
        return this.#text(expr.body);
      }
      case 'draw':
      case 'atomic': {
        const call = expr.kind === 'draw' ? this.drawCall(expr) : this.atomicCall(expr);
        const name = this.names.temporary();
        this.before.push(`const ${CPP_TYPE[expr.type]} ${name} = ${call};`);
        return name;
      }
    }
  }

  #indexText(index: Expr): string {
    if (index.kind !== 'arithmetic' || !/^[-+*]$/.test(index.op)) return this.#text(index);
    return this.#arithmetic(index.op, decided(index.type), index.left, index.right, true);
  }

  /** Emits an expression for its side effect; its result is unused. */
  effect(expr: Expr): string {
    if (expr.kind === 'atomic') return this.atomicCall(expr);
    return expr.kind === 'draw' ? this.drawCall(expr) : `(void)(${this.emit(expr)})`;
  }

  /** `atomicAdd(&a[i], v)`, after the index check. */
  atomicCall(expr: Extract<Expr, { kind: 'atomic' }>): string {
    const element = this.elementBefore(expr.array, expr.indices, expr.args);
    const args = expr.args.map((arg) => stripped(this.#text(arg)));
    return `${this.atomicName(expr)}(&${element}, ${args.join(', ')})`;
  }

  /** Shared memory has no users outside the block, and the CPU device runs a block on one thread, so block scope suffices. */
  atomicName({ op, array }: Extract<Expr, { kind: 'atomic' }>): string {
    return `${ATOMIC_NAMES[op]}${array.space === 'parameter' ? '' : '_block'}`;
  }

  /** Emits `mr_random_uniform(state)`. */
  drawCall(expr: Extract<Expr, { kind: 'draw' }>): string {
    return this.#helper(`mr_random_${expr.draw}`, [this.names.array(expr.array)]);
  }

  seedCall(stmt: Extract<Stmt, { kind: 'seed' }>): string {
    return this.#helper('mr_random_seed', [this.names.array(stmt.array), this.emit(stmt.seed), this.emit(stmt.sequence)]);
  }

  #fromStorage(dtype: DType, element: string): string {
    if (is16BitFloat(dtype)) this.helpers.add(`mr_from_${dtype}`);
    return fromStorage(dtype, element);
  }

  #load(expr: Extract<Expr, { kind: 'load' }>): string {
    const element = this.element(expr.array, expr.indices);
    const value = this.#fromStorage(expr.array.dtype, element);
    if (this.#loadsFirst === 0) return value;
    const name = this.names.temporary();
    this.before.push(`const ${CPP_TYPE[expr.type]} ${name} = ${value};`);
    return name;
  }

  /** An array element as an lvalue, after its index checks. */
  element(array: ArrayRef, indices: readonly Expr[]): string {
    const texts = indices.map((index) => {
      const text = this.#indexText(index);
      if (isStable(index) || index.kind === 'variable' || !this.isChecked) return text;
      const name = this.names.temporary();
      this.before.push(`const ${CPP_TYPE[decided(index.type)]} ${name} = ${stripped(text)};`);
      return name;
    });
    if (this.isChecked) texts.forEach((text, dimension) => this.#check(array, dimension, text, indices[dimension]!));
    const name = this.names.array(array);
    if (array.rank === 1) return `${name}[${stripped(texts[0]!)}]`;
    // Offsets are 64-bit: an array can have more elements than an int can count. Shared and local arrays never do.
    const [first, ...rest] = texts;
    const offset = rest.reduce(
      (sum, text, at) => `${at === 0 ? sum : `(${sum})`} * ${this.names.extent(array, at + 1)} + ${text}`,
      array.space === 'parameter' ? `(long long)${first}` : first!,
    );
    return `${name}[${offset}]`;
  }

  #check(array: ArrayRef, dimension: number, text: string, index: Expr): void {
    const limit = this.names.extent(array, dimension);
    const key = `${limit} ${text}`;
    if (this.#known.some((block) => block.has(key))) return;
    const extent = array.extents[dimension];
    if (index.kind === 'const' && extent !== undefined && index.value >= 0 && index.value < extent) return;
    const asUnsigned = index.type === 'u32' ? text : `(unsigned)${text}`;
    const report = `${this.exit.report}(${array.number}u, ${dimension}u, ${text}, ${limit});`;
    this.before.push(`if (${asUnsigned} >= (unsigned)${limit}) { ${report} ${this.exit.leave} }`);
    if (isStable(index)) this.#known.at(-1)!.add(key);
  }

  /**
   * Integers wrap. Only the sums and products that are an index themselves (`isIndex`) may stay signed if nothing checks it: it cannot
   * leave the array anyway, and a compiler widens a signed index to 64 bits.
   */
  #arithmetic(op: string, type: ScalarType, left: Expr, right: Expr, isIndex: boolean): string {
    const of = (operand: Expr): string => (isIndex ? this.#indexText(operand) : this.#text(operand));
    const a = of(left);
    const b = of(right);
    if (op === '%') {
      if (type === 'f32' || type === 'f64') return `${type === 'f32' ? 'fmodf' : 'fmod'}(${stripped(a)}, ${stripped(b)})`;
      if (right.kind === 'const' && right.value !== 0 && right.value !== -1) return `(${a} % ${b})`;
      return this.#helper(`mr_rem_${type}`, [a, b]);
    }
    if (op === '<<' || op === '>>') {
      if (type === 'i64' || type === 'u64') {
        const count = right.kind === 'wide' ? String(right.value & 63n) : `(${b} & 63)`;
        const shifted = `(${op === '<<' ? '(unsigned long long)' : ''}${a} ${op} ${count})`;
        return op === '<<' && type === 'i64' ? `(long long)${shifted}` : shifted;
      }
      const count = right.kind === 'const' ? String(right.value & 31) : `(${b} & 31)`;
      // Signed left shifts are done on unsigned values, because C++ leaves some undefined.
      return op === '<<' && type === 'i32' ? `(int)((unsigned)${a} << ${count})` : `(${a} ${op} ${count})`;
    }
    if (!/^[-+*]$/.test(op) || (isIndex && !this.isChecked)) return `(${a} ${op} ${b})`;
    return wrapping(type, op, a, b);
  }

  #logical(expr: Extract<Expr, { kind: 'logical' }>): string {
    const left = this.#text(expr.left);
    const { before, result } = this.capture(() => this.#text(expr.right));
    if (before.length === 0) return `(${left} ${expr.op} ${result})`;
    const name = this.names.temporary();
    const test = expr.op === '&&' ? name : `!${name}`;
    this.before.push(`bool ${name} = ${stripped(left)};`, `if (${test}) {`, ...indented(before), `  ${name} = ${stripped(result)};`, '}');
    return name;
  }

  #select(expr: Extract<Expr, { kind: 'select' }>): string {
    const test = this.#text(expr.test);
    const then = this.capture(() => this.#text(expr.then));
    const otherwise = this.capture(() => this.#text(expr.otherwise));
    if (then.before.length === 0 && otherwise.before.length === 0) return `(${test} ? ${then.result} : ${otherwise.result})`;
    const name = this.names.temporary();
    this.before.push(
      `${CPP_TYPE[decided(expr.type)]} ${name};`,
      `if (${stripped(test)}) {`,
      ...indented(then.before),
      `  ${name} = ${stripped(then.result)};`,
      '} else {',
      ...indented(otherwise.before),
      `  ${name} = ${stripped(otherwise.result)};`,
      '}',
    );
    return name;
  }

  #cast(type: ScalarType, operand: Expr): string {
    const from = decided(operand.type);
    const text = this.#text(operand);
    const isFloatToInteger = (from === 'f32' || from === 'f64') && type !== 'bool' && type !== 'f32' && type !== 'f64';
    if (isFloatToInteger) return this.#helper(`mr_${from}_to_${type}`, [text]);
    return `(${CPP_TYPE[type]})${text}`;
  }

  #builtin(name: string, type: ScalarType, args: readonly Expr[]): string {
    const texts = args.map((arg) => this.#text(arg));
    const second = args[1];
    switch (name) {
      case 'idiv':
        if (second!.kind === 'const' && second.value !== 0 && second.value !== -1) return `(${texts[0]} / ${texts[1]})`;
        return this.#helper(this.spelling(name, type), texts);
      case 'floordiv':
        return this.#helper('mr_floordiv_i32', texts);
      case 'imul':
        return `(int)((unsigned)${texts[0]} * (unsigned)${texts[1]})`;
      case 'clz32':
        return this.#helper(this.spelling(name, type), texts);
      default: {
        const spelling = this.spelling(name, type);
        return spelling === '' ? texts[0]! : this.#helper(spelling, texts);
      }
    }
  }

  /** The C++ function of a builtin; empty for a builtin that returns its argument. */
  spelling(name: string, type: ScalarType): string {
    if (name === 'idiv') return `mr_div_${type}`;
    if (name === 'clz32') return 'mr_clz';
    const spelling = type === 'bool' ? undefined : BUILTINS[name]?.cuda[type];
    if (spelling === undefined) throw new Error(`${name} has no spelling for ${type}.`);
    return spelling;
  }

  #helper(name: string, args: readonly string[]): string {
    if (name.startsWith('mr_')) this.helpers.add(name);
    return `${name}(${args.map(stripped).join(', ')})`;
  }

  constant(type: ValueType, value: number): string {
    switch (decided(type)) {
      case 'bool':
        return value === 0 ? 'false' : 'true';
      case 'i32':
        if (value === -(2 ** 31)) return '(-2147483647 - 1)';
        return value < 0 ? `(${value})` : String(Math.abs(value));
      case 'u32':
        return `${value}u`;
      case 'i64':
      case 'u64':
        return wideText(BigInt(value), decided(type));
      case 'f32':
        return this.#float(value, shortestSingle(value), 'f');
      case 'f64':
        return this.#float(value, String(value), '');
    }
  }

  #float(value: number, digits: string, suffix: string): string {
    if (Number.isNaN(value)) return this.#helper('mr_nan', []);
    if (!Number.isFinite(value)) return value > 0 ? this.#helper('mr_infinity', []) : `(-${this.#helper('mr_infinity', [])})`;
    const plain = Object.is(value, -0) ? '-0.0' : /[.e]/.test(digits) ? digits : `${digits}.0`;
    return plain.startsWith('-') ? `(${plain}${suffix})` : `${plain}${suffix}`;
  }
}

/** Finished IR has no untyped values. */
function decided(type: ValueType): ScalarType {
  if (type === 'int literal' || type === 'float literal' || type === 'bigint literal')
    throw new Error('An untyped value reached the emitter.');
  return type;
}

const UNSIGNED: { readonly [T in ScalarType]?: string } = { i32: 'unsigned', i64: 'unsigned long long' };

/** A sum, difference or product. In unsigned numbers where C++ leaves the overflow of signed ones undefined. */
function wrapping(type: ScalarType, op: string, a: string, b: string): string {
  const unsigned = UNSIGNED[type];
  if (unsigned === undefined) return `(${a} ${op} ${b})`;
  const own = `(${CPP_TYPE[type]})`;
  // A result of this function is unsigned inside.
  const isOwn = (text: string): boolean =>
    text.startsWith(`${own}(`) && text.slice(own.length).replace(/^\(+/, '').startsWith(`${unsigned})`);
  const [left, right] = [a, b].map((text) => (isOwn(text) ? text.slice(own.length) : `(${unsigned})${text}`));
  return `${own}(${left} ${op} ${right})`;
}

function negated(type: ScalarType, operand: string): string {
  return type === 'f32' || type === 'f64' ? `(-${operand})` : wrapping(type, '-', '0u', operand);
}

function wideText(value: bigint, type: ValueType): string {
  if (type === 'u64') return `${value}ull`;
  // C++ has no literal for the smallest i64.
  if (value === -(2n ** 63n)) return '(-9223372036854775807ll - 1)';
  return value < 0n ? `(${value}ll)` : `${value}ll`;
}

function threadText(vector: ThreadVector, axis: 0 | 1 | 2): string {
  return `(int)${vector}.${AXES[axis]}`;
}
