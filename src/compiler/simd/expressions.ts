// Emits IR expressions as C++ on SIMD vectors. The scalar emitter emits uniform values; all others become vectors, with bool as a mask. As
// in the scalar emitter, `before` collects the statements that an expression needs before it.
import type { ValueRange } from '../analysis/value-ranges.js';
import type { ExpressionEmitter } from '../emission/expression.js';
import { CPP_TYPE, funcName, indented, stripped } from '../emission/cpp-text.js';
import { type ArrayRef, type Expr, isStable, type ScalarType, type ValueType } from '../ir/ir.js';
import { operands, someExpr } from '../ir/walk.js';
import { SimdMemory } from './memory.js';
import { type Narrow, neighbours } from './element-width.js';
import { arithmetic, builtin, cast, comparison, comparisonName, simdType, splat, TWICE } from './operators.js';
import type { Scope, Scopes } from './mask-scopes.js';
import { isNumber, type Step, Strides } from './strides.js';

/** Encloses statements in a block, so that later statements can reuse their names. */
function braced(lines: readonly string[]): string[] {
  return ['{', ...indented(lines), '}'];
}

export class SimdExpressions {
  /** Emits uniform values. */
  readonly scalar: ExpressionEmitter;
  readonly scopes: Scopes;
  readonly strides: Strides;
  readonly memory: SimdMemory;
  readonly #causeOf: (expr: Expr) => string | undefined;
  readonly #varying = new Map<Expr, boolean>();
  /** Whether no index of the current code can leave its array. */
  isProven = false;
  /** Whether loads stay in source order, because the statement contains an atomic. */
  #isOrdered = false;

  /** Set when elements are narrower than 32 bits. */
  readonly narrow: Narrow | undefined;

  constructor(scalar: ExpressionEmitter, scopes: Scopes, causeOf: (expr: Expr) => string | undefined, narrow?: Narrow) {
    this.narrow = narrow;
    this.scalar = scalar;
    this.scopes = scopes;
    this.#causeOf = causeOf;
    this.strides = new Strides(
      (expr) => this.isVarying(expr),
      (expr) => this.scalar.emit(expr),
    );
    this.memory = new SimdMemory(this);
  }

  isVarying(expr: Expr): boolean {
    let known = this.#varying.get(expr);
    if (known === undefined) {
      known = this.#causeOf(expr) !== undefined;
      this.#varying.set(expr, known);
    }
    return known;
  }

  push(...lines: string[]): void {
    this.scalar.before.push(...lines);
  }

  temporary(): string {
    return this.scalar.names.temporary();
  }

  /** A scalar: the uniform value, or lane 0's value when the expression has a stride. */
  single(expr: Expr): string {
    const { scopes } = this;
    const states = scopes.all.map((scope) => ({ scope, was: { ...scope } }));
    this.scalar.exit = { report: `MR_FAULT_OF(${scopes.current.mask})`, leave: scopes.leaveTogether(scopes.all[0]!).join(' ') };
    const count = this.scalar.before.length;
    const text = this.scalar.emit(expr);
    // Without a check, no lane can leave.
    const mayFail = this.scalar.before.slice(count).some((line) => line.includes('MR_FAULT_OF'));
    if (!mayFail) for (const { scope, was } of states) Object.assign(scope, was);
    return /^[\w.]+$/.test(text) ? text : `(${text})`;
  }

  /** A vector, or a mask. */
  vector(expr: Expr): string {
    if (this.isVarying(expr)) return this.#varyingText(expr);
    const text = stripped(this.#shared(expr));
    const bounds = this.narrow?.bounded.get(expr);
    return splat(decided(expr.type), bounds === undefined ? text : bounded(text, decided(expr.type), bounds));
  }

  /** A scalar for a uniform value, else a vector. */
  either(expr: Expr): string {
    return this.isVarying(expr) ? this.#varyingText(expr) : this.#shared(expr);
  }

  /** Emits the expressions of one statement. If they contain an atomic, loads stay in source order. */
  whole<T>(exprs: readonly Expr[], run: () => T): T {
    const outer = this.#isOrdered;
    this.#isOrdered = outer || exprs.some((expr) => someExpr(expr, ({ kind }) => kind === 'atomic'));
    const result = run();
    this.#isOrdered = outer;
    return result;
  }

  /** Names a vector, so that its source is emitted once. */
  named(type: ScalarType, text: string): string {
    if (/^\w+$/.test(text)) return text;
    const name = this.temporary();
    this.push(`const ${simdType(type)} ${name} = ${stripped(text)};`);
    return name;
  }

  /** Stores the current value of a stride, since its operands may change before it is used. */
  kept(step: Step): Step {
    if (isNumber(step)) return step;
    const name = this.temporary();
    this.push(`const int ${name} = ${stripped(step)};`);
    return name;
  }

  #shared(expr: Expr): string {
    const text = this.single(expr);
    if (!this.#isOrdered || !someExpr(expr, ({ kind }) => kind === 'load')) return text;
    const name = this.temporary();
    this.push(`const ${CPP_TYPE[decided(expr.type)]} ${name} = ${stripped(text)};`);
    return name;
  }

  #varyingText(expr: Expr): string {
    const step = this.strides.stepOf(expr);
    if (step !== undefined) return step === '1' ? `mr_ramp(${this.single(expr)})` : `mr_ramp(${this.single(expr)}, ${step})`;
    switch (expr.kind) {
      case 'variable':
        return this.scalar.names.variable(expr.variable);
      case 'load':
        return this.memory.load(expr);
      case 'negate':
        return expr.type === 'u32' || expr.type === 'u64'
          ? `(${simdType(expr.type)}{} - ${this.vector(expr.operand)})`
          : `(-${this.vector(expr.operand)})`;
      case 'invert':
      case 'not':
        return `(~${this.vector(expr.operand)})`;
      case 'arithmetic':
        return this.#arithmetic(expr);
      case 'compare':
        return this.#compare(expr);
      case 'logical':
        return this.#logical(expr);
      case 'select':
        return this.#select(expr);
      case 'cast':
        return this.#cast(expr);
      case 'builtin':
        return this.#builtin(expr);
      case 'call': {
        const args = expr.args.map((arg) => this.vector(arg));
        return `${simdFunctionName(expr.func.name)}(${[this.scopes.current.mask, ...args].join(', ')})`;
      }
      case 'bind':
        return this.#bind(expr);
      case 'atomic':
        return this.memory.atomic(expr, true);
      default:
        throw new Error(`Lanes have no ${expr.kind}.`);
    }
  }

  #bind(expr: Extract<Expr, { kind: 'bind' }>): string {
    const { variable, value, body } = expr;
    const name = this.scalar.names.variable(variable);
    const type = decided(variable.type);
    const step = this.strides.stepOf(value);
    if (step !== undefined && step !== '0') this.strides.set(variable, this.kept(step));
    const isSingle = step !== undefined || !this.isVarying(value);
    const text = isSingle ? this.single(value) : this.#varyingText(value);
    this.push(`const ${isSingle ? CPP_TYPE[type] : simdType(type)} ${name} = ${stripped(text)};`);
    return this.vector(body);
  }

  #compare({ op, left, right }: Extract<Expr, { kind: 'compare' }>): string {
    const stepping = this.narrow && neighbours(op, left, right, this.strides);
    // Neither operand needs to fit in a SIMD lane.
    if (stepping !== undefined) {
      const [from, bound] = [left, right].map((side) => stripped(this.single(side)));
      const texts = stepping.from === left ? [from, bound] : [bound, from];
      return `${comparisonName(stepping.op, 'mr_next')}(${texts.join(', ')})`;
    }
    return comparison(op, decided(left.type), this.vector(left), this.vector(right));
  }

  #arithmetic(expr: Extract<Expr, { kind: 'arithmetic' }>): string {
    const type = decided(expr.type);
    const [a, b] = [this.vector(expr.left), this.vector(expr.right)];
    if (this.narrow?.stopping.has(expr)) return `mr_sum_to_most(${a}, ${b})`;
    // Overflow must be defined: the value wraps at the narrow width but did not overflow in 32 bits.
    if (this.narrow?.wrapping.has(expr) && type === 'i32' && ['+', '-', '*'].includes(expr.op))
      return `((mr_i32)((mr_u32)${a} ${expr.op} (mr_u32)${b}))`;
    const text = arithmetic(expr.op, type, a, b, expr.right);
    if (text !== undefined) return text;
    const helper = expr.op === '%' && (type === 'f32' || type === 'f64') ? (type === 'f32' ? 'fmodf' : 'fmod') : `mr_rem_${type}`;
    return this.#perLane(type, expr.op === '/' ? `mr_div_${type}` : helper, [a, b]);
  }

  #cast(expr: Extract<Expr, { kind: 'cast' }>): string {
    const from = decided(expr.operand.type);
    const operand = this.vector(expr.operand);
    if ((from === 'i64' || from === 'u64') && (expr.type === 'i32' || expr.type === 'u32')) return this.#halved(expr.type, from, operand);
    return cast(expr.type, from, operand) ?? this.#perLane(expr.type, `mr_${from}_to_${expr.type}`, [operand]);
  }

  /**
   * The low halves of 64 bits. g++ 12 would store them by VEXTRACTI32X8 with a mask, which reports a fault for lanes that are masked out and lie
   * behind the array, so it must not see that the vector is a half of another one.
   */
  #halved(to: 'i32' | 'u32', from: ScalarType, operand: string): string {
    const name = this.temporary();
    const text = cast(to, from, operand) as string;
    this.push(`${simdType(to)} ${name} = ${stripped(text)};`, '#if defined(MR_HAS_MASKS)', `asm("" : "+v"(${name}));`, '#endif');
    return name;
  }

  #builtin(expr: Extract<Expr, { kind: 'builtin' }>): string {
    const type = decided(expr.type);
    const texts = expr.args.map((arg) => {
      const text = this.vector(arg);
      return TWICE.has(expr.name) ? this.named(decided(arg.type), text) : text;
    });
    const text = builtin(expr.name, type, texts, expr.args);
    if (text !== undefined) return text;
    return this.#perLane(type, this.scalar.spelling(expr.name, type), texts);
  }

  /** Calls the scalar function for each active lane. */
  #perLane(type: ScalarType, name: string, texts: readonly string[]): string {
    if (name.startsWith('mr_')) this.scalar.helpers.add(name);
    const spilled = texts.map((text) => this.spilled(text));
    const result = this.temporary();
    this.push(
      `mr_spilled<${CPP_TYPE[type]}> ${result}{};`,
      `${this.each('mr_l')} ${result}.of[mr_l] = ${name}(${spilled.map((arg) => `mr_lane(${arg}, mr_l)`).join(', ')});`,
    );
    return `mr_load(${result}.of)`;
  }

  /** Stores a vector in memory, so that single lanes can be read. */
  spilled(text: string): string {
    const name = this.temporary();
    this.push(`const auto ${name} = mr_spill(${stripped(text)});`);
    return name;
  }

  /** The head of a loop over the active lanes. */
  each(lane: string): string {
    const { mask, isFull } = this.scopes.current;
    return isFull ? `MR_EACH(${lane})` : `MR_EACH_OF(${lane}, ${mask})`;
  }

  /**
   * Whether the expression may be evaluated for all lanes although only some need it. A load may, if ranges show without the condition that
   * no index leaves the array.
   */
  #isHarmless(expr: Expr, condition: Expr): boolean {
    if (someExpr(expr, ({ kind }) => kind === 'atomic' || kind === 'call' || kind === 'draw')) return false;
    // Conditions inside the expression must not have helped the proof either.
    const conditions = [condition, ...conditionsIn(expr)];
    const isDecided = (part: Expr): boolean => conditions.some((one) => share(part, one));
    // Ranges of bound values are computed behind the condition.
    if (someExpr(expr, (part) => part.kind === 'bind' && isDecided(part.value)) && someExpr(expr, ({ kind }) => kind === 'load'))
      return false;
    const loads = (part: Expr): boolean => part.kind === 'load' && !(this.isProven && !part.indices.some(isDecided));
    return !someExpr(expr, loads);
  }

  #logical({ op, left, right }: Extract<Expr, { kind: 'logical' }>): string {
    const test = this.vector(left);
    const name = this.temporary();
    if (this.#isHarmless(right, left)) {
      const sign = op === '&&' ? '&' : '|';
      const { before, result } = this.scalar.capture(() => this.vector(right));
      if (before.length === 0) return `(${test} ${sign} ${result})`;
      this.push(`mr_lane_mask ${name} = ${stripped(test)};`, ...braced([...before, `${name} = ${name} ${sign} ${result};`]));
      return name;
    }
    this.push(`mr_lane_mask ${name} = ${stripped(test)};`);
    this.#under(op === '&&' ? name : `~${name}`, (scope) => [`${name} = mr_choose(${scope.mask}, ${this.vector(right)}, ${name});`]);
    return name;
  }

  #select(expr: Extract<Expr, { kind: 'select' }>): string {
    const { test, then, otherwise } = expr;
    const type = decided(expr.type);
    const name = this.temporary();
    if (this.isVarying(test) && this.#isHarmless(then, test) && this.#isHarmless(otherwise, test)) {
      const condition = this.vector(test);
      const a = this.scalar.capture(() => this.vector(then));
      const b = this.scalar.capture(() => this.vector(otherwise));
      if (a.before.length === 0 && b.before.length === 0) return `mr_choose(${condition}, ${a.result}, ${b.result})`;
      this.push(`${simdType(type)} ${name};`, ...braced([...a.before, `${name} = ${stripped(a.result)};`]));
      this.push(...braced([...b.before, `${name} = mr_choose(${condition}, ${name}, ${b.result});`]));
      return name;
    }
    if (!this.isVarying(test)) {
      const condition = this.single(test);
      const [a, b] = [then, otherwise].map((arm) => this.captured(() => [`${name} = ${stripped(this.vector(arm))};`]));
      this.push(`${simdType(type)} ${name}{};`, `if (${stripped(condition)}) {`, ...indented(a!), '} else {', ...indented(b!), '}');
      return name;
    }
    const condition = this.named('bool', this.vector(test));
    this.push(`${simdType(type)} ${name}{};`);
    this.#under(condition, () => [`${name} = ${stripped(this.vector(then))};`]);
    this.#under(`~${condition}`, (scope) => [`${name} = mr_choose(${scope.mask}, ${this.vector(otherwise)}, ${name});`]);
    return name;
  }

  /** Emits lines together with the statements that they need before them. */
  captured(run: () => readonly string[]): string[] {
    const { before, result } = this.scalar.capture(() => this.memory.inBlock(run));
    return [...before, ...result];
  }

  /** Emits lines for some of the lanes; they are skipped when there are none. */
  #under(lanes: string, run: (scope: Scope) => readonly string[]): void {
    const outer = this.scopes.current;
    const scope = this.scopes.make(false);
    const { result: lines, hasLost } = this.scopes.watch(() => this.scopes.within(scope, () => this.captured(() => run(scope))));
    this.push(
      `if (mr_lane_mask ${scope.mask} = ${outer.mask} & ${lanes}; mr_any(${scope.mask})) {`,
      ...indented(scope.isTarget ? ['{', ...indented(lines), '}', `${scope.label}:;`] : lines),
      '}',
    );
    if (hasLost) this.push(this.scopes.goOn());
  }

  /** An index that may be repeated: a scalar for a stride. */
  place(array: ArrayRef, index: Expr): string {
    const isSingle = this.strides.stepOf(index) !== undefined || !this.isVarying(index);
    const text = isSingle ? this.single(index) : this.#varyingText(index);
    if (isStable(index) || /^\w+$/.test(text) || !(array.rank > 1 || this.scalar.isChecked || this.#isOrdered)) return text;
    const name = this.temporary();
    this.push(`const ${isSingle ? CPP_TYPE[decided(index.type)] : simdType(decided(index.type))} ${name} = ${stripped(text)};`);
    return name;
  }
}

/** Clamps a uniform value to the range in which a comparison with narrow elements needs it. */
function bounded(text: string, type: ScalarType, { low, high }: ValueRange): string {
  const suffix = type === 'u32' ? 'u' : '';
  return `mr_bounded(${text}, ${low}${suffix}, ${high}${suffix})`;
}

/** Whether both expressions depend on a common value. */
function share(a: Expr, b: Expr): boolean {
  const leaves = new Set<unknown>();
  const leafOf = (expr: Expr): unknown => {
    if (expr.kind === 'variable') return expr.variable;
    if (expr.kind === 'index') return `index ${expr.axis}`;
    if (expr.kind === 'thread') return `${expr.vector} ${expr.axis}`;
    return expr.kind === 'load' ? expr.array : undefined;
  };
  someExpr(a, (part) => {
    leaves.add(leafOf(part));
    return false;
  });
  leaves.delete(undefined);
  return someExpr(b, (part) => leaves.has(leafOf(part)));
}

/** The conditions that decide which parts of an expression are evaluated. */
function* conditionsIn(expr: Expr): Generator<Expr, void, undefined> {
  if (expr.kind === 'select') yield expr.test;
  if (expr.kind === 'logical') yield expr.left;
  for (const operand of operands(expr)) yield* conditionsIn(operand);
}

export function simdFunctionName(name: string): string {
  return `mr_lane_mask_of_${funcName(name)}`;
}

export function decided(type: ValueType): ScalarType {
  if (type === 'int literal' || type === 'float literal' || type === 'bigint literal')
    throw new Error('An untyped value reached the emitter.');
  return type;
}
