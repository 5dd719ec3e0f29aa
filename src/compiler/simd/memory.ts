// Emits loads, stores and atomics of SIMD lanes, and their index checks: a vector access for adjacent elements, a scalar access when all
// lanes use the same element, else one access per lane.
import { CPP_TYPE, storageType, stripped } from '../emission/cpp-text.js';
import { type ArrayRef, type Expr, isStable, type Stmt } from '../ir/ir.js';
import { someExpr } from '../ir/walk.js';
import type { SimdExpressions } from './expressions.js';
import { isSimd, simdType } from './operators.js';
import { isNumber, type Step } from './strides.js';

/** The addresses of the lanes' elements. */
type Place =
  /** `pointer` is lane 0's address; each next lane's is `step` elements further: 0, 1 or any other stride. */
  | { readonly kind: 'apart'; readonly pointer: string; readonly step: string }
  /** The elements `pointer[vector]`. */
  | { readonly kind: 'anywhere'; readonly pointer: string; readonly vector: string }
  /** The elements `pointer[place(lane)]`. */
  | { readonly kind: 'far'; readonly pointer: string; readonly place: string };

export class SimdMemory {
  readonly #expressions: SimdExpressions;
  /** Checks already emitted, by their source. */
  #known: Set<string>[] = [new Set()];

  constructor(expressions: SimdExpressions) {
    this.#expressions = expressions;
  }

  /** Checks emitted inside are valid only there. */
  inBlock<T>(run: () => T): T {
    this.#known.push(new Set());
    const result = run();
    this.#known.pop();
    return result;
  }

  load(expr: Extract<Expr, { kind: 'load' }>): string {
    const { array, type } = expr;
    const place = this.#place(array, expr.indices);
    const text = this.#loaded(place, this.#mask());
    const name = this.#expressions.temporary();
    // bool is one byte: zero is false, anything else is true.
    this.#expressions.push(`const ${simdType(type)} ${name} = ${type === 'bool' ? `mr_ne(${text}, mr_i32{})` : text};`);
    return name;
  }

  #loaded(place: Place, mask: string): string {
    switch (place.kind) {
      case 'apart':
        return place.step === '1' ? `mr_load(${place.pointer}${mask})` : `mr_load_apart(${place.pointer}, ${place.step}${mask})`;
      case 'anywhere':
        return `mr_gather(${place.pointer}, ${place.vector}${mask})`;
      case 'far':
        return `mr_gather_far(${place.pointer}, ${place.place}, ${this.#expressions.scopes.current.mask})`;
    }
  }

  /** The mask as a last argument; empty when all lanes are active. */
  #mask(): string {
    const { mask, isFull } = this.#expressions.scopes.current;
    return isFull ? '' : `, ${mask}`;
  }

  store({ array, indices, value }: Extract<Stmt, { kind: 'store' }>): string {
    const expressions = this.#expressions;
    // The index is evaluated before the value, in source order.
    const place = this.#place(array, indices);
    const isBool = value.type === 'bool';
    const { mask } = expressions.scopes.current;
    if (place.kind === 'apart' && place.step === '0') {
      // All lanes store to one element, so the last active lane's value remains.
      const element = `*(${place.pointer})`;
      const type = storageType(array.dtype);
      if (!expressions.isVarying(value)) return `${element} = (${type})${expressions.single(value)};`;
      return `${element} = (${type})mr_lane(${stripped(expressions.vector(value))}, mr_last(${mask}));`;
    }
    const text = isBool ? `mr_ones(${expressions.vector(value)})` : stripped(expressions.vector(value));
    switch (place.kind) {
      case 'apart':
        if (place.step === '1') return `mr_store(${place.pointer}, ${text}${this.#mask()});`;
        return `mr_store_apart(${place.pointer}, ${place.step}, ${text}${this.#mask()});`;
      case 'anywhere':
        return `mr_scatter(${place.pointer}, ${place.vector}, ${text}, ${mask});`;
      case 'far':
        return `mr_scatter_far(${place.pointer}, ${place.place}, ${text}, ${mask});`;
    }
  }

  /** Lane by lane, in order. Returns the old values if they are used. */
  atomic(expr: Extract<Expr, { kind: 'atomic' }>, isUsed: boolean): string {
    const expressions = this.#expressions;
    const place = this.#loadedPlace(expr) ?? this.#place(expr.array, expr.indices);
    const args = expr.args.map((arg) => {
      const text = expressions.either(arg);
      return `mr_lane(${expressions.isVarying(arg) ? expressions.spilled(text) : text}, mr_l)`;
    });
    const call = `${expressions.scalar.atomicName(expr)}(${[this.#address(place), ...args].join(', ')})`;
    if (!isUsed) {
      expressions.push(`${expressions.each('mr_l')} ${call};`);
      return '';
    }
    const result = expressions.temporary();
    expressions.push(`mr_spilled<${CPP_TYPE[expr.type]}> ${result}{};`, `${expressions.each('mr_l')} ${result}.of[mr_l] = ${call};`);
    return `mr_load(${result}.of)`;
  }

  /** At an index that is itself loaded, each lane loads its own index, since a vector load would only be taken apart again. */
  #loadedPlace({ array, indices: [index, ...others], args }: Extract<Expr, { kind: 'atomic' }>): Place | undefined {
    const expressions = this.#expressions;
    const isInteger = index?.kind === 'load' && index.type === 'i32' && expressions.isVarying(index);
    if (!isInteger || others.length > 0 || isSimd(array) || expressions.scalar.isChecked) return undefined;
    // This delays the load, so it must not move behind another atomic of the same expression.
    if (args.some((arg) => someExpr(arg, ({ kind }) => kind === 'atomic'))) return undefined;
    const from = this.#place(index.array, index.indices);
    if (from.kind !== 'apart') return undefined;
    const name = expressions.temporary();
    expressions.push(`const ${storageType(index.array.dtype)}* const ${name} = ${from.pointer};`);
    const at = from.step === '1' ? 'mr_l' : `(${from.step}) * mr_l`;
    return { kind: 'far', pointer: expressions.scalar.names.array(array), place: `[&](int mr_l) { return (long long)${name}[${at}]; }` };
  }

  #address(place: Place): string {
    switch (place.kind) {
      case 'apart':
        return place.step === '0' ? place.pointer : `${place.pointer} + (${place.step}) * mr_l`;
      case 'anywhere':
        return `${place.pointer} + mr_lane(${this.#expressions.spilled(place.vector)}, mr_l)`;
      case 'far':
        return `${place.pointer} + ${place.place}(mr_l)`;
    }
  }

  #place(array: ArrayRef, indices: readonly Expr[]): Place {
    const expressions = this.#expressions;
    const texts = indices.map((index) => expressions.place(array, index));
    if (expressions.scalar.isChecked) texts.forEach((text, dimension) => this.#check(array, dimension, text, indices[dimension]!));
    const name = expressions.scalar.names.array(array);
    const steps = indices.map((index) => (expressions.isVarying(index) ? expressions.strides.stepOf(index) : '0'));
    if (isSimd(array)) return this.#ownPlace(array, name, texts, steps);
    const isSure = steps.every((one) => one === undefined || (isNumber(one) ? isSmall(one) : !expressions.scalar.isChecked));
    const step = isSure ? this.#stepOf(array, steps) : undefined;
    if (step !== undefined) return { kind: 'apart', pointer: `&${name}[${this.#offset(array, texts)}]`, step };
    const last = texts.length - 1;
    if (isSure && steps.slice(0, -1).every((one) => one === '0')) {
      const pointer = array.rank === 1 ? name : `&${name}[${this.#offset(array, [...texts.slice(0, -1), '0'])}]`;
      return { kind: 'anywhere', pointer, vector: this.#asI32(texts[last]!, indices[last]!) };
    }
    return { kind: 'far', pointer: name, place: this.#far(array, texts, steps, indices) };
  }

  /** 64-bit: an array may have more elements than an int can count although no dimension does. Shared and local arrays never do. */
  #offset(array: ArrayRef, texts: readonly string[]): string {
    if (texts.length === 1) return stripped(texts[0]!);
    const [first, ...rest] = texts;
    const { names } = this.#expressions.scalar;
    return rest.reduce(
      (sum, text, at) => `${at === 0 ? sum : `(${sum})`} * ${names.extent(array, at + 1)} + ${text}`,
      array.space === 'parameter' ? `(long long)${first}` : first!,
    );
  }

  /** The distance between the elements of adjacent lanes, if every index has a stride. */
  #stepOf(array: ArrayRef, steps: readonly (string | undefined)[]): string | undefined {
    if (steps.some((step) => step === undefined)) return undefined;
    const { names } = this.#expressions.scalar;
    const parts = steps.flatMap((step, at) => {
      const extents = steps.slice(at + 1).map((_, further) => names.extent(array, at + 1 + further));
      return step === '0' ? [] : [[`(long long)${step}`, ...extents].join(' * ')];
    });
    if (parts.length === 0) return '0';
    return steps.at(-1) === '1' && parts.length === 1 ? '1' : parts.join(' + ');
  }

  #ownPlace(array: ArrayRef, name: string, texts: readonly string[], steps: readonly (string | undefined)[]): Place {
    if (steps.every((step) => step === '0')) {
      return { kind: 'apart', pointer: `&${name}[(${this.#offset(array, texts)}) * MR_WIDTH]`, step: '1' };
    }
    const vectors = texts.map((text, at) => this.#rampOf(text, steps[at]));
    return { kind: 'anywhere', pointer: name, vector: `((${this.#offset(array, vectors)}) * MR_WIDTH + mr_ramp(0))` };
  }

  #rampOf(text: string, step: string | undefined): string {
    if (step === undefined) return `((mr_i32)${text})`;
    return step === '0' ? `mr_i32_of((int)${text})` : `mr_ramp(${text}, ${step})`;
  }

  #asI32(text: string, index: Expr): string {
    return index.type === 'u32' ? `((mr_i32)${text})` : text;
  }

  #far(array: ArrayRef, texts: readonly string[], steps: readonly (string | undefined)[], indices: readonly Expr[]): string {
    const lanes = texts.map((text, at) => {
      const step = steps[at];
      if (step === undefined) return `(long long)mr_lane(${this.#expressions.spilled(this.#asI32(text, indices[at]!))}, mr_l)`;
      return step === '0' ? text : `mr_of_ramp(${stripped(text)}, ${step}, mr_l)`;
    });
    return `[&](int mr_l) { return ${this.#offset(array, lanes)}; }`;
  }

  #check(array: ArrayRef, dimension: number, text: string, index: Expr): void {
    const expressions = this.#expressions;
    const limit = expressions.scalar.names.extent(array, dimension);
    const key = `${limit} ${text}`;
    if (this.#known.some((block) => block.has(key))) return;
    const extent = array.extents[dimension];
    if (index.kind === 'const' && extent !== undefined && index.value >= 0 && index.value < extent) return;
    const { scopes } = expressions;
    const { mask } = scopes.current;
    const step = expressions.isVarying(index) ? expressions.strides.stepOf(index) : '0';
    const report = (at: string, lanes: string): string => `MR_FAULT_OF(${lanes})(${array.number}u, ${dimension}u, ${at}, ${limit});`;
    if (step === '0') {
      const leave = scopes.leaveTogether(scopes.all[0]!).join(' ');
      expressions.push(`if ((unsigned)${text} >= (unsigned)${limit}) { ${report(text, mask)} ${leave} }`);
    } else {
      // With narrow elements, every varying index has a stride.
      const isNarrow = expressions.narrow !== undefined;
      const vector = isNarrow ? `mr_steps{${text}, ${step}}` : this.#rampOf(text, step);
      const outside = expressions.temporary();
      const leave = scopes.leave(outside, scopes.all[0]!).join(' ');
      const test = isNarrow ? `mr_outside(${vector}, ${limit})` : `mr_ge((mr_u32)${vector}, mr_u32_of(${limit}))`;
      expressions.push(
        `if (const mr_lane_mask ${outside} = ${mask} & ${test}; mr_any(${outside})) { ${report(vector, outside)} ${leave} ${scopes.goOn()} }`,
      );
    }
    if (isStable(index)) this.#known.at(-1)!.add(key);
  }
}

/** With such a step, an index that wraps between two lanes lies outside every array. Checks use 32 bits, addresses 64. */
function isSmall(step: Step): boolean {
  return Math.abs(Number(step)) <= 2 ** 24;
}
