// Expressions of random kernels: text of every type of the language, which mostly stays inside its type.
import type { ScalarType } from '../../../src/compiler/ir/ir.js';
import { type Named, RandomText } from '../random-text.js';

/** Elements of the arrays that are only read; a power of two, so that a mask keeps an index inside. */
export const LENGTH = 64;
/** Rows of those of two dimensions. */
export const ROWS = 8;

type VectorType = 'vec3f' | 'vec2i';
export type ValueType = ScalarType | VectorType;
export interface Local extends Named {
  readonly type: ValueType;
}

export const TYPES: readonly ScalarType[] = ['i32', 'u32', 'f32', 'f64', 'i64', 'u64', 'bool'];
const NUMBERS: readonly ScalarType[] = ['i32', 'u32', 'f32', 'f64', 'i64', 'u64'];
const PLACES: readonly string[] =
  'n m0 k0 threadIdx.x threadIdx.y blockIdx.x blockDim.x blockDim.y gridDim.x globalIdx.x a.length q.shape[1] o0.shape[0] i32(WIDTH)'.split(
    ' ',
  );
/** Given by `{ constants }`: the body sees numbers. */
export const CONSTANTS = { WIDTH: 5, RATIO: 0.375, IS_ODD: true } as const;

/** The helpers that every kernel may call: parameters, result and body. */
export const HELPERS = {
  half: { params: ['f32', 'f32'], result: 'f32', body: '(a, b) => { if (a > b) return (a + b) * 0.5; return a - b * 0.25; }' },
  gcd: {
    params: ['u32', 'u32'],
    result: 'u32',
    body: '(a, b) => { let x = a; let y = b; for (let k = 0; k < 40; k++) { if (y === 0) break; const r = x % y; x = y; y = r; } return x; }',
  },
  // The trip count is the argument's; both exits are in the loop.
  steps: {
    params: ['i32'],
    result: 'i32',
    body: '(n) => { let v = n & 63; let count = 0; for (;;) { if (v <= 1) return count; count++; if ((v & 1) === 0) { v >>= 1; continue; } v = v * 3 + 1; if (count > 20) return -1; } return 0; }',
  },
  fold: {
    params: ['i64', 'u64'],
    result: 'i64',
    body: '(a, b) => { let x = a >> 3n; for (let k = 0; k < 3; k++) { if (x < 0n) { x = -(x / 3n); continue; } x -= i64(b >> 8n) >> 6n; } return x; }',
  },
} as const;

export abstract class TypedText extends RandomText<Local> {
  /** Names of the thread's place: the launch indices, and the number of the element that is its own. */
  protected abstract readonly places: readonly string[];
  /** It has f16 and random numbers, which have no lanes on the CPU device. */
  protected abstract readonly hasHalves: boolean;
  /** A generator of random numbers, where there is one. */
  protected readonly generator: string | undefined = undefined;

  protected index(mask: number): string {
    return this.random(3) === 0 ? String(this.random(mask + 1)) : `${this.expression('i32', 1)} & ${mask}`;
  }

  protected vector(type: VectorType, depth: number): string {
    const [part, size] = type === 'vec3f' ? (['f32', 3] as const) : (['i32', 2] as const);
    const narrow = (text: string): string => (part === 'i32' ? `(${text} & 1023)` : text);
    const known = this.scopes.flat().filter((local) => local.type === type);
    if (known.length > 0 && (depth === 0 || this.random(3) === 0)) return this.pick(known).name;
    const number = (): string => narrow(this.expression(part, Math.max(depth - 1, 0)));
    if (depth === 0 || this.random(3) === 0) {
      return this.choose([
        () => `${type}(${Array.from({ length: size }, number).join(', ')})`,
        () => `${type}(${number()})`,
        () => (type === 'vec3f' ? `vec3f(q[${this.index(ROWS - 1)}])` : `vec2i(g[${this.index(ROWS - 1)}])`),
      ]);
    }
    const of = (): string => this.vector(type, depth - 1);
    const both = [(): string => `min(${of()}, ${of()})`, (): string => `max(${of()}, ${number()})`, (): string => `sub(${of()}, ${of()})`];
    if (part === 'i32') return this.choose([...both, () => `mul(${of()}, vec2i(${this.random(9)}))`]);
    return this.choose([
      ...both,
      () => `add(${of()}, ${of()})`,
      () => `mul(${of()}, ${of()})`,
      () => `scale(${of()}, ${number()})`,
      () => `cross(${of()}, ${of()})`,
      () => `normalize(${of()})`,
      () => `mix(${of()}, ${of()}, 0.25)`,
      () => `clamp(${of()}, -8, ${number()})`,
    ]);
  }

  protected expression(type: ScalarType, depth: number): string {
    if (depth === 0 || this.random(6) === 0) return this.#leaf(type);
    const of = (other: ScalarType): string => this.expression(other, depth - 1);
    const own = (): string => of(type);
    if (type !== 'bool' && this.random(8) === 0) return `(${of('bool')} ? ${own()} : ${own()})`;
    if (type !== 'bool' && this.random(6) === 0) {
      const from = this.pick(NUMBERS.filter((other) => other !== type));
      // What is no number is 0 among whole numbers.
      const isRoot = (from === 'f32' || from === 'f64') && this.random(3) === 0;
      return isRoot ? `${type}(Math.sqrt(${of(from)}))` : `${type}(${of(from)})`;
    }
    switch (type) {
      case 'i32':
        return this.#int(own, of);
      case 'u32':
        return this.#unsigned(own, of);
      case 'i64':
      case 'u64':
        return this.#wide(type, own);
      case 'f32':
      case 'f64':
        return this.#float(type, own, of);
      case 'bool':
        return this.#bool(of);
    }
  }

  #int(own: () => string, of: (type: ScalarType) => string): string {
    switch (this.random(16)) {
      case 0:
        return `((${own()} >> 1) + (${own()} >> 1))`;
      case 1:
        return `((${own()} >> 1) - (${own()} >> 2))`;
      case 2:
        return `((${own()} % 40000) * (${own()} % 40000))`;
      case 3:
        return `(${own()} ${this.pick(['&', '|', '^'])} ${own()})`;
      case 4:
        return `(${own()} ${this.pick(['<<', '>>'])} ${this.pick([own(), String(this.random(40))])})`;
      case 5:
        return `(${own()} % ${this.pick([own(), String(1 + this.random(9)), '-1'])})`;
      case 6:
        return `idiv(${own()}, ${this.pick([own(), '7', '-3'])})`;
      case 7:
        return `Math.floor(${own()} / ${own()})`;
      case 8:
        return `Math.imul(${own()}, ${own()})`;
      case 9:
        return `Math.clz32(${of('u32')})`;
      case 10:
        return `popcount(${of('u32')})`;
      case 11:
        return `${this.pick(['min', 'max'])}(${own()}, ${own()})`;
      case 12:
        return `clamp(${own()}, -100, ${own()})`;
      case 13:
        return this.pick([`Math.abs(${own()})`, `Math.sign(${own()})`, `(~${own()})`, `(-(${own()} >> 1))`]);
      case 14:
        return this.pick([`steps(${own()})`, `g[${this.index(ROWS - 1)}][${this.index(1)}]`, `i32(${of('bool')})`]);
      default:
        return this.pick([`b[${this.index(LENGTH - 1)}]`, `m[${this.index(1)}][${this.index(1)}]`, `r[${this.index(7)}]`]);
    }
  }

  #unsigned(own: () => string, of: (type: ScalarType) => string): string {
    switch (this.random(10)) {
      case 0:
      case 1:
        return `(${own()} ${this.pick(['+', '-', '*'])} ${own()})`;
      case 2:
        return `(${own()} ${this.pick(['&', '|', '^'])} ${own()})`;
      case 3:
        return `(${own()} ${this.pick(['<<', '>>>', '>>'])} ${this.pick([of('i32'), String(this.random(40))])})`;
      case 4:
        return `(${own()} % ${own()})`;
      case 5:
        return `idiv(${own()}, ${own()})`;
      case 6:
        return `floatBits(${of('f32')})`;
      case 7:
        return `${this.pick(['min', 'max', 'gcd'])}(${own()}, ${own()})`;
      case 8:
        return `(${of('i32')} >>> ${this.random(33)})`;
      default:
        return this.pick([`(-${own()})`, `(~${own()})`, `clamp(${own()}, 5, ${own()})`]);
    }
  }

  #wide(type: 'i64' | 'u64', own: () => string): string {
    const narrow = type === 'i64' ? (text: string): string => `(${text} >> 2n)` : (text: string): string => text;
    switch (this.random(8)) {
      case 0:
        return `(${narrow(own())} + ${narrow(own())})`;
      case 1:
        return `(${narrow(own())} - ${narrow(own())})`;
      case 2:
        return type === 'i64' ? `((${own()} % 2000000011n) * (${own()} % 2000000011n))` : `(${own()} * ${own()})`;
      case 3:
        return `(${own()} ${this.pick(['/', '%'])} ${own()})`;
      case 4:
        return `(${own()} ${this.pick(['&', '|', '^'])} ${own()})`;
      case 5:
        return `(${own()} ${this.pick(['<<', '>>'])} ${this.pick([own(), `${this.random(70)}n`])})`;
      case 6:
        return `${this.pick(['min', 'max'])}(${own()}, ${own()})`;
      default:
        return this.pick([
          `(~${own()})`,
          `clamp(${own()}, 5n, ${own()})`,
          `(-${narrow(own())})`,
          type === 'i64' ? `fold(${own()}, ${this.expression('u64', 0)})` : `(${own()} & 0xffffffffffn)`,
        ]);
    }
  }

  #float(type: 'f32' | 'f64', own: () => string, of: (type: ScalarType) => string): string {
    switch (this.random(12)) {
      case 0:
        return `(${own()} * ${own()} ${this.pick(['+', '-'])} ${own()})`;
      case 1:
      case 2:
        return `(${own()} ${this.pick(['+', '-', '*', '/'])} ${own()})`;
      case 3:
        return `(${own()} % ${own()})`;
      case 4:
        return `Math.sqrt(${this.pick([own(), `Math.abs(${own()})`])})`;
      case 5:
        return `fma(${own()}, ${own()}, ${own()})`;
      case 6:
        return `${this.pick(['min', 'max'])}(${own()}, ${own()})`;
      case 7:
        return `Math.${this.pick(['floor', 'ceil', 'trunc', 'round', 'abs', 'sign'])}(${own()})`;
      case 8:
        return this.pick([`mix(${own()}, ${own()}, RATIO)`, `(${own()} ** ${2 + this.random(3)})`]);
      case 9:
        return type === 'f32' ? this.pick([`Math.fround(${of('f64')})`, `half(${own()}, ${own()})`]) : `(${own()} * ${of('f32')})`;
      case 10:
        return type === 'f32' ? this.choose([() => `bitsFloat(${of('u32')})`, () => this.#negative(own())]) : `l[${this.index(3)}]`;
      default:
        return type === 'f32' ? this.#single() : `d[${this.index(LENGTH - 1)}]`;
    }
  }

  /** A load that only some threads may make. */
  #guarded(): string {
    const at = this.pick(['at', 'k0', 'm0', `(${this.expression('i32', 0)} >> 3)`]);
    return this.pick([
      `(${at} >= 0 && ${at} < a.length && a[${at}] > s0)`,
      `(${at} < 0 || ${at} >= ${LENGTH} || b[${at}] < n)`,
      `((${at} >= 3 && ${at} < ${LENGTH} ? c0[${at}] : u32(7)) < u32(1000))`,
    ]);
  }

  /** Not of an integer that was cast: g++ 12 makes -(float)i, which may be -0, of 0.0f + -(float)i, which may not. */
  #negative(value: string): string {
    return value.startsWith('f32(') ? `(-s0 * ${value})` : `(-${value})`;
  }

  #single(): string {
    const at = (): string => this.index(ROWS - 1);
    return this.choose([
      () => `${this.hasHalves ? 'h' : 'a'}[${this.index(LENGTH - 1)}]`,
      () => `a[${this.index(LENGTH - 1)}]`,
      () => `q[${at()}][${at()}]`,
      () => `q.at(${at()}, ${at()})`,
      () => `dot(${this.vector('vec3f', 1)}, ${this.vector('vec3f', 0)})`,
      () => `${this.vector('vec3f', 1)}.${this.pick(['x', 'y', 'z'])}`,
      () => `length(${this.vector('vec3f', 0)})`,
    ]);
  }

  #bool(of: (type: ScalarType) => string): string {
    switch (this.random(5)) {
      case 0:
        return `(${of('bool')} ${this.pick(['&&', '||', '===', '!=='])} ${of('bool')})`;
      case 1:
        return this.choose([() => `(!${of('bool')})`, () => this.#guarded()]);
      default: {
        const type = this.pick(NUMBERS);
        return `(${of(type)} ${this.pick(['<', '<=', '>', '>=', '===', '!=='])} ${of(type)})`;
      }
    }
  }

  #leaf(type: ScalarType): string {
    const known = this.scopes.flat().filter((local) => local.type === type);
    if (known.length > 0 && this.random(2) === 0) return this.pick(known).name;
    const number = this.random(200) - 50;
    switch (type) {
      case 'i32':
        return this.pick([...this.places, ...this.places, ...PLACES, `i32(${number})`, `b[at & ${LENGTH - 1}]`, 'r[at & 7]']);
      case 'u32':
        return this.pick([`u32(${Math.abs(number)})`, 'u32(4294967290)', `c0[at & ${LENGTH - 1}]`, 'u32(at)', ...this.#drawn('u32')]);
      case 'i64':
        return this.pick([`i64(${number})`, `e[at & ${LENGTH - 1}]`, 'i64(-9007199254740993n)', 'i64(at)', 'w0']);
      case 'u64':
        return this.pick([`u64(${Math.abs(number)})`, `u64(c0[at & ${LENGTH - 1}])`, 'u64(18446744073709551557n)', 'u64(at - 9)']);
      case 'f32':
        return this.pick([
          `f32(${(number / 7).toFixed(6)})`,
          `f32(e[at & ${LENGTH - 1}])`,
          's0',
          's0',
          `a[at & ${LENGTH - 1}]`,
          'f32(at)',
          'f32(RATIO)',
          ...this.#drawn('uniform'),
          'f32(1e30)',
          'f32(1e-40)',
        ]);
      case 'f64':
        return this.pick([`f64(${(number / 7).toFixed(12)})`, 'f64(s0)', `d[at & ${LENGTH - 1}]`, 'f64(1e300)', 'f64(at)', 's1']);
      case 'bool':
        return this.pick([
          '((at & 1) === 0)',
          '(n > 3)',
          '(threadIdx.x < 9)',
          '(s0 > 0.5)',
          '(i32(3) > m0)',
          'flag',
          'IS_ODD',
          '(at % 3 === 1)',
        ]);
    }
  }

  #drawn(draw: 'u32' | 'uniform'): string[] {
    return this.generator === undefined ? [] : [`${this.generator}.${draw}()`];
  }
}
