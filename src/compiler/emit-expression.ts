// IR expressions to CUDA C++ text.
//
// What cannot stand inside an expression goes before it, as statements: an index check that leaves the kernel, an atomic
// whose result is used, the arm of a `?:` that must not run. `before` collects them in the order of evaluation.
import type { DType } from '../core/elements/dtype.js';
import { BUILTINS } from './builtins.js';
import type { ArrayRef, Expr, ScalarType, ThreadVector, ValueType, Variable } from './ir.js';
import { isStable } from './ir.js';

export const CPP_TYPE: Readonly<Record<ScalarType, string>> = { bool: 'bool', i32: 'int', u32: 'unsigned', f32: 'float', f64: 'double' };
const AXES = ['x', 'y', 'z'] as const;
const INDEX_NAMES = ['mr_i', 'mr_j', 'mr_k'] as const;
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

export class ExpressionEmitter {
  readonly helpers: Set<string> = new Set();
  /** Statements that must run before the expression in hand. */
  before: string[] = [];
  readonly #isChecked: boolean;
  readonly #names = new Map<Variable, string>();
  readonly #parameters = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** Checks already made on the way here, by their text: an enclosing block's hold in the inner one. */
  #known: Set<string>[] = [new Set()];
  #temporaries = 0;

  constructor(isChecked: boolean) {
    this.#isChecked = isChecked;
  }

  /** The C++ name of a variable: unique, and no keyword, since all end in an underscore. */
  nameOf(variable: Variable): string {
    const known = this.#names.get(variable);
    if (known !== undefined) return known;
    const name = this.#claim(variable.name);
    this.#names.set(variable, name);
    return name;
  }

  /** The name of a parameter: itself a scalar or a pointer, and what its extents begin with. */
  parameter(name: string): string {
    const known = this.#parameters.get(name);
    if (known !== undefined) return known;
    const claimed = this.#claim(name);
    this.#parameters.set(name, claimed);
    return claimed;
  }
  extent(array: string, dimension: number): string {
    return `${this.parameter(array)}n${dimension}`;
  }

  #claim(wanted: string): string {
    const base = `${sanitized(wanted)}_`;
    let name = base;
    for (let n = 2; this.#taken.has(name); n++) name = `${base}${n}_`;
    this.#taken.add(name);
    return name;
  }

  temporary(): string {
    this.#temporaries++;
    return `mr_t${this.#temporaries}`;
  }

  enterBlock(): void {
    this.#known.push(new Set());
  }
  leaveBlock(): void {
    this.#known.pop();
  }

  /** The statements an expression needs, taken away from here. */
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

  /** A whole expression, without the parentheses around it. */
  emit(expr: Expr): string {
    const text = hasAtomic(expr) ? this.#inOrder(expr) : this.#text(expr);
    return stripped(text);
  }

  /** With an atomic inside, loads are taken into temporaries, so that they happen in the order of the text. */
  #inOrder(expr: Expr): string {
    this.#loadsFirst++;
    const text = this.#text(expr);
    this.#loadsFirst--;
    return text;
  }
  #loadsFirst = 0;

  #text(expr: Expr): string {
    switch (expr.kind) {
      case 'const':
        return this.constant(expr.type, expr.value);
      case 'variable':
        return this.nameOf(expr.variable);
      case 'scalar':
        return fromStorage(expr.dtype, this.parameter(expr.name));
      case 'extent':
        return this.extent(expr.array.name, expr.dimension);
      case 'index':
        return INDEX_NAMES[expr.axis];
      case 'thread':
        return threadText(expr.vector, expr.axis);
      case 'load':
        return this.#load(expr);
      case 'negate':
        return expr.type === 'u32' ? `(0u - ${this.#text(expr.operand)})` : `(-${this.#text(expr.operand)})`;
      case 'invert':
        return `(~${this.#text(expr.operand)})`;
      case 'not':
        return `(!${this.#text(expr.operand)})`;
      case 'arithmetic':
        return this.#arithmetic(expr.op, decided(expr.type), expr.left, expr.right);
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
        this.before.push(`const ${CPP_TYPE[decided(expr.variable.type)]} ${this.nameOf(expr.variable)} = ${value};`);
        return this.#text(expr.body);
      }
      case 'atomic': {
        const call = this.atomicCall(expr);
        const name = this.temporary();
        this.before.push(`const ${CPP_TYPE[expr.type]} ${name} = ${call};`);
        return name;
      }
    }
  }

  /** `atomicAdd(&a[i], v)`, its index checked before. */
  atomicCall(expr: Extract<Expr, { kind: 'atomic' }>): string {
    const element = this.element(expr.array, expr.indices);
    const args = expr.args.map((arg) => stripped(this.#text(arg)));
    return `${ATOMIC_NAMES[expr.op]}(&${element}, ${args.join(', ')})`;
  }

  #load(expr: Extract<Expr, { kind: 'load' }>): string {
    const element = this.element(expr.array, expr.indices);
    const value = fromStorage(expr.array.dtype, element);
    if (this.#loadsFirst === 0) return value;
    const name = this.temporary();
    this.before.push(`const ${CPP_TYPE[expr.type]} ${name} = ${value};`);
    return name;
  }

  /** An element as an lvalue, after the checks it needs. */
  element(array: ArrayRef, indices: readonly Expr[]): string {
    const texts = indices.map((index) => {
      const text = this.#text(index);
      if (isStable(index) || index.kind === 'variable' || !this.#isChecked) return text;
      const name = this.temporary();
      this.before.push(`const ${CPP_TYPE[decided(index.type)]} ${name} = ${stripped(text)};`);
      return name;
    });
    if (this.#isChecked) texts.forEach((text, dimension) => this.#check(array, dimension, text, indices[dimension]!));
    if (array.rank === 1) return `${this.parameter(array.name)}[${stripped(texts[0]!)}]`;
    // 64 bits: the elements of an array may outnumber an int where no dimension does.
    const [first, ...rest] = texts;
    const offset = rest.reduce(
      (sum, text, at) => `${at === 0 ? sum : `(${sum})`} * ${this.extent(array.name, at + 1)} + ${text}`,
      `(long long)${first}`,
    );
    return `${this.parameter(array.name)}[${offset}]`;
  }

  #check(array: ArrayRef, dimension: number, text: string, index: Expr): void {
    const limit = this.extent(array.name, dimension);
    const key = `${limit} ${text}`;
    if (this.#known.some((block) => block.has(key))) return;
    // A constant that is too small for every array is checked like any other: the shape is known at launch only.
    const asUnsigned = index.type === 'u32' ? text : `(unsigned)${text}`;
    this.before.push(`if (${asUnsigned} >= (unsigned)${limit}) { MR_FAULT(${array.number}u, ${dimension}u, ${text}, ${limit}); return; }`);
    if (isStable(index)) this.#known.at(-1)!.add(key);
  }

  #arithmetic(op: string, type: ScalarType, left: Expr, right: Expr): string {
    const a = this.#text(left);
    const b = this.#text(right);
    if (op === '%') {
      if (type === 'f32' || type === 'f64') return `${type === 'f32' ? 'fmodf' : 'fmod'}(${stripped(a)}, ${stripped(b)})`;
      if (right.kind === 'const' && right.value !== 0 && right.value !== -1) return `(${a} % ${b})`;
      return this.#helper(`mr_rem_${type}`, [a, b]);
    }
    if (op === '<<' || op === '>>') {
      const count = right.kind === 'const' ? String(right.value & 31) : `(${b} & 31)`;
      // A signed shift to the left is done on bits.
      return op === '<<' && type === 'i32' ? `(int)((unsigned)${a} << ${count})` : `(${a} ${op} ${count})`;
    }
    return `(${a} ${op} ${b})`;
  }

  #logical(expr: Extract<Expr, { kind: 'logical' }>): string {
    const left = this.#text(expr.left);
    const { before, result } = this.capture(() => this.#text(expr.right));
    if (before.length === 0) return `(${left} ${expr.op} ${result})`;
    const name = this.temporary();
    const test = expr.op === '&&' ? name : `!${name}`;
    this.before.push(`bool ${name} = ${stripped(left)};`, `if (${test}) {`, ...indented(before), `  ${name} = ${stripped(result)};`, '}');
    return name;
  }

  #select(expr: Extract<Expr, { kind: 'select' }>): string {
    const test = this.#text(expr.test);
    const then = this.capture(() => this.#text(expr.then));
    const otherwise = this.capture(() => this.#text(expr.otherwise));
    if (then.before.length === 0 && otherwise.before.length === 0) return `(${test} ? ${then.result} : ${otherwise.result})`;
    const name = this.temporary();
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
    const isFloatToInteger = (from === 'f32' || from === 'f64') && (type === 'i32' || type === 'u32');
    if (isFloatToInteger) return this.#helper(`mr_${from}_to_${type}`, [text]);
    return `(${CPP_TYPE[type]})${text}`;
  }

  #builtin(name: string, type: ScalarType, args: readonly Expr[]): string {
    const texts = args.map((arg) => this.#text(arg));
    const [first, second] = args;
    switch (name) {
      case 'idiv':
        if (second!.kind === 'const' && second.value !== 0 && second.value !== -1) return `(${texts[0]} / ${texts[1]})`;
        return this.#helper(`mr_div_${type}`, texts);
      case 'floordiv':
        return this.#helper('mr_floordiv_i32', texts);
      case 'imul':
        return `(int)((unsigned)${texts[0]} * (unsigned)${texts[1]})`;
      case 'clz32':
        return this.#helper('mr_clz', texts);
      default: {
        const spelling = type === 'bool' ? undefined : BUILTINS[name]?.cuda[type];
        if (spelling === undefined) throw new Error(`${name} has no spelling for ${type} (argument of type ${first?.type}).`);
        if (spelling === '') return texts[0]!;
        return this.#helper(spelling, texts);
      }
    }
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

/** The invariant of finished IR: every value has a type. */
function decided(type: ValueType): ScalarType {
  if (type === 'int literal' || type === 'float literal') throw new Error('An untyped value reached the emitter.');
  return type;
}

function hasAtomic(expr: Expr): boolean {
  switch (expr.kind) {
    case 'atomic':
      return true;
    case 'load':
      return expr.indices.some(hasAtomic);
    case 'negate':
    case 'invert':
    case 'not':
    case 'cast':
      return hasAtomic(expr.operand);
    case 'arithmetic':
    case 'compare':
    case 'logical':
      return hasAtomic(expr.left) || hasAtomic(expr.right);
    case 'select':
      return hasAtomic(expr.test) || hasAtomic(expr.then) || hasAtomic(expr.otherwise);
    case 'builtin':
    case 'call':
      return expr.args.some(hasAtomic);
    case 'bind':
      return hasAtomic(expr.value) || hasAtomic(expr.body);
    default:
      return false;
  }
}

/** The fewest digits that read back as the same single. */
function shortestSingle(value: number): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value);
  for (let digits = 1; digits < 9; digits++) {
    const text = String(Number(value.toPrecision(digits)));
    if (Math.fround(Number(text)) === value) return text;
  }
  return String(Number(value.toPrecision(9)));
}

export function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

/** One pair of parentheses around the whole, taken off. */
export function stripped(text: string): string {
  if (!text.startsWith('(') || !text.endsWith(')')) return text;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(') depth++;
    else if (text[at] === ')') depth--;
    if (depth === 0 && at < text.length - 1) return text;
  }
  return text.slice(1, -1);
}

/** A name of JavaScript as one of C: what C does not allow is written as its number. */
export function sanitized(name: string): string {
  return name.replace(/[^A-Za-z0-9_]/g, (char) => `_${char.charCodeAt(0).toString(16)}`);
}
export function funcName(name: string): string {
  return `mr_fn_${sanitized(name)}`;
}

function threadText(vector: ThreadVector, axis: 0 | 1 | 2): string {
  return `(int)${vector}.${AXES[axis]}`;
}

/** A stored element or argument as a value in a register. */
function fromStorage(dtype: DType, element: string): string {
  if (dtype === 'bool') return `(${element} != 0)`;
  return dtype === 'f32' || dtype === 'f64' || dtype === 'i32' || dtype === 'u32' ? element : `(int)${element}`;
}
