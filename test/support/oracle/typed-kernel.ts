// Kernels at random, as text, over all types of the language: expressions that mostly stay inside their types, branches,
// loops that end, early returns, memory of the block and of the thread, barriers. Each thread writes elements of its own,
// and what threads exchange stands between two barriers, so that the result is the same in every order.
import type { DType } from 'millrace';
import type { ScalarType } from '../../../src/compiler/ir/ir.js';
import { type Named, RandomText } from '../random-text.js';

/** Elements of the arrays that are only read; a power of two, so that a mask keeps an index inside. */
export const LENGTH = 64;
/** Threads of a block, and what its shared memory has room for. */
export const BLOCK = 24;
const SHARED = 32;

const TYPES: readonly ScalarType[] = ['i32', 'u32', 'f32', 'f64', 'i64', 'u64', 'bool'];
const NUMBERS: readonly ScalarType[] = ['i32', 'u32', 'f32', 'f64', 'i64', 'u64'];
/** Element type of each array that is written, and the type in which its values are computed. */
export const OUTPUTS = [
  ['i32', 'i32'],
  ['u32', 'u32'],
  ['f32', 'f32'],
  ['f64', 'f64'],
  ['i64', 'i64'],
  ['u64', 'u64'],
  ['f16', 'f32'],
  ['u8', 'i32'],
  ['i16', 'i32'],
  ['i8', 'i32'],
] as const satisfies readonly (readonly [DType, ScalarType])[];
interface Local extends Named {
  readonly type: ScalarType;
}

const ENVIRONMENT =
  'i, shared, local, syncthreads, threadIdx, blockIdx, blockDim, gridDim, globalIdx, atomicAdd, atomicMax, atomicXor, idiv, ' +
  'min, max, clamp, mix, fma, popcount, floatBits, bitsFloat, i32, u32, i64, u64, f32, f64, u8, half, gcd';

/** The helpers that every kernel may call: parameters, result and body. */
export const HELPERS = {
  half: { params: ['f32', 'f32'], result: 'f32', body: '(a, b) => { if (a > b) return (a + b) * 0.5; return a - b * 0.25; }' },
  gcd: {
    params: ['u32', 'u32'],
    result: 'u32',
    body: '(a, b) => { let x = a; let y = b; for (let k = 0; k < 40; k++) { if (y === 0) break; const r = x % y; x = y; y = r; } return x; }',
  },
} as const;

export class TypedKernel extends RandomText<Local> {
  readonly text: string;
  readonly #hasBarriers: boolean;
  #loops = 0;

  constructor(seed: number) {
    super(seed);
    this.#hasBarriers = seed % 2 === 1;
    const head = this.#hasBarriers
      ? [
          `const s = shared(i32, ${SHARED}); const w = shared(f32, [4, 8]); const c = shared(u32, 4);`,
          's[threadIdx.x] = i; w[threadIdx.x >> 3][threadIdx.x & 7] = f32(i); if (threadIdx.x < 4) c[threadIdx.x] = 7;',
          'syncthreads();',
          'if (threadIdx.x === 0) for (let z = 0; z < 4; z++) c[z] = u32(z);',
          'syncthreads();',
        ]
      : [];
    const body = [
      ...head,
      'const l = local(f64, 4); l[0] = f64(i); l[1] = 0.25; l[2] = f64(s0); l[3] = -1;',
      'const m = local(u8, [2, 2]); m[0][0] = i; m[0][1] = 200; m[1][0] = n; m[1][1] = 1;',
      ...this.statements(3, 5),
      ...this.statements(3, 5),
      ...OUTPUTS.map(([, type], at) => `o${at}[i] = ${this.#expression(type, 3)};`),
    ];
    const args = `a, b, c0, d, e, h, p, n, m0, s0, ${OUTPUTS.map((_, at) => `o${at}`).join(', ')}`;
    this.text = `({ ${args} }, { ${ENVIRONMENT} }) => {\n${body.join('\n')}\n}`;
  }

  #declare(type: ScalarType, isLet: boolean): string {
    const name = this.nameFor('v');
    this.scopes.at(-1)!.push({ name, type, isLet });
    return name;
  }

  protected override statement(depth: number): string {
    const kind = this.random(depth > 0 ? 20 : 13);
    if (kind < 4) {
      const type = this.pick(TYPES);
      const value = this.#expression(type, 3);
      const isLet = this.random(3) > 0;
      return `${isLet ? 'let' : 'const'} ${this.#declare(type, isLet)} = ${value};`;
    }
    if (kind < 7) {
      const lets = this.scopes.flat().filter(({ isLet }) => isLet);
      if (lets.length > 0) {
        const { name, type } = this.pick(lets);
        return `${name} = ${this.#expression(type, 3)};`;
      }
    }
    if (kind < 8) return `l[${this.#index(3)}] = ${this.#expression('f64', 2)};`;
    if (kind < 9) return `m[${this.#index(1)}][${this.#index(1)}] = ${this.#expression('i32', 2)};`;
    if (kind < 11) return this.#exchange();
    if (kind < 12) {
      const at = this.random(OUTPUTS.length);
      return `o${at}[i] = ${this.#expression(OUTPUTS[at]![1], 2)};`;
    }
    if (kind < 13) return this.#leaving();
    if (kind < 17) {
      const condition = this.#condition();
      const otherwise = this.random(2) === 0 ? '' : ` else ${this.block(depth, 3)}`;
      return `if (${condition}) ${this.block(depth, 3)}${otherwise}`;
    }
    return this.#loop(depth);
  }

  #leaving(): string {
    const ways = this.#loops > 0 ? ['break;', 'continue;', 'return;'] : ['return;', 'o0[i] = 5; return;'];
    return `if (${this.#expression('bool', 2)} && (i & 3) === ${this.random(4)}) { ${this.pick(ways)} }`;
  }

  /** What the threads of a block tell each other. */
  #exchange(): string {
    if (!this.#hasBarriers) return `atomicAdd(p, ${this.#index(15)}, ${this.#expression('u32', 2)});`;
    switch (this.random(4)) {
      case 0: {
        const sent = this.#expression('i32', 2);
        const at = `(${this.#expression('i32', 1)} + threadIdx.x) & 15`;
        return `syncthreads(); s[threadIdx.x] = ${sent}; syncthreads(); let ${this.#declare('i32', true)} = s[${at}]; syncthreads();`;
      }
      case 1: {
        const sent = this.#expression('f32', 2);
        const at = `${this.#index(1)}][${this.#index(7)}`;
        return `syncthreads(); w[threadIdx.x >> 3][threadIdx.x & 7] = ${sent}; syncthreads(); let ${this.#declare('f32', true)} = w[${at}]; syncthreads();`;
      }
      case 2: {
        const sent = this.#expression('u32', 2);
        const [at, from] = [this.#index(3), this.#index(3)];
        const how = this.pick(['atomicAdd', 'atomicMax', 'atomicXor']);
        return `syncthreads(); ${how}(c, ${at}, ${sent}); syncthreads(); const ${this.#declare('u32', false)} = c[${from}]; syncthreads();`;
      }
      default:
        return `atomicAdd(p, ${this.#index(15)}, ${this.#expression('u32', 2)});`;
    }
  }

  #loop(depth: number): string {
    const counter = this.nameFor('k');
    const bound = this.random(3) === 0 ? `(${this.#expression('i32', 1)} & 3)` : `(n & 3) + ${this.random(3)}`;
    this.scopes.push([{ name: counter, type: 'i32', isLet: false }]);
    this.#loops++;
    const body = this.block(depth, 3);
    this.#loops--;
    this.scopes.pop();
    switch (this.random(4)) {
      case 0:
        return `for (let ${counter} = i32(0); ${counter} < ${bound}; ${counter}++) ${body}`;
      case 1:
        return `for (let ${counter} = ${bound}; ${counter} > 0; ${counter} >>= 1) ${body}`;
      case 2:
        return `{ let ${counter} = i32(0); while (${counter} < ${bound}) { ${counter} += 1; ${body} } }`;
      default:
        return `{ let ${counter} = i32(0); do { ${counter}++; ${body} } while (${counter} < ${bound}); }`;
    }
  }

  /** Half of them the same for all threads, or barriers would stand nowhere. */
  #condition(): string {
    return this.random(2) === 0
      ? `(${this.pick(['n', 'm0', 'blockIdx.x', 'b[3]'])} & ${1 + this.random(7)}) ${this.pick(['<', '===', '>'])} ${this.random(4)}`
      : this.#expression('bool', 2);
  }

  #index(mask: number): string {
    return this.random(3) === 0 ? String(this.random(mask + 1)) : `${this.#expression('i32', 1)} & ${mask}`;
  }

  #expression(type: ScalarType, depth: number): string {
    if (depth === 0 || this.random(6) === 0) return this.#leaf(type);
    const of = (other: ScalarType): string => this.#expression(other, depth - 1);
    const own = (): string => of(type);
    if (type !== 'bool' && this.random(8) === 0) return `(${of('bool')} ? ${own()} : ${own()})`;
    if (type !== 'bool' && this.random(6) === 0) {
      const from = this.pick(NUMBERS.filter((other) => other !== type));
      return `${type}(${of(from)})`;
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
      default:
        return this.pick([`b[${this.#index(LENGTH - 1)}]`, `m[${this.#index(1)}][${this.#index(1)}]`]);
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
        return this.pick([`(~${own()})`, `clamp(${own()}, 5n, ${own()})`, `(-${narrow(own())})`]);
    }
  }

  #float(type: 'f32' | 'f64', own: () => string, of: (type: ScalarType) => string): string {
    switch (this.random(12)) {
      case 0:
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
        return `mix(${own()}, ${own()}, 0.375)`;
      case 9:
        return type === 'f32' ? this.pick([`Math.fround(${of('f64')})`, `half(${own()}, ${own()})`]) : `(${own()} * ${of('f32')})`;
      case 10:
        return type === 'f32' ? this.pick([`bitsFloat(${of('u32')})`, `(-${own()})`]) : `l[${this.#index(3)}]`;
      default:
        return type === 'f32'
          ? this.pick([`h[${this.#index(LENGTH - 1)}]`, `a[${this.#index(LENGTH - 1)}]`])
          : `d[${this.#index(LENGTH - 1)}]`;
    }
  }

  #bool(of: (type: ScalarType) => string): string {
    switch (this.random(5)) {
      case 0:
        return `(${of('bool')} ${this.pick(['&&', '||', '===', '!=='])} ${of('bool')})`;
      case 1:
        return `(!${of('bool')})`;
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
        return this.pick([
          'i',
          'i',
          'n',
          'm0',
          'threadIdx.x',
          'blockIdx.x',
          'blockDim.x',
          'a.length',
          `i32(${number})`,
          `b[i & ${LENGTH - 1}]`,
        ]);
      case 'u32':
        return this.pick([`u32(${Math.abs(number)})`, 'u32(4294967290)', `c0[i & ${LENGTH - 1}]`, 'u32(i)']);
      case 'i64':
        return this.pick([`i64(${number})`, `e[i & ${LENGTH - 1}]`, 'i64(-9007199254740993n)', 'i64(i)']);
      case 'u64':
        return this.pick([`u64(${Math.abs(number)})`, `u64(c0[i & ${LENGTH - 1}])`, 'u64(18446744073709551557n)']);
      case 'f32':
        return this.pick([`f32(${number / 8})`, 's0', `a[i & ${LENGTH - 1}]`, 'f32(i)', 'f32(1e30)', 'f32(1e-40)']);
      case 'f64':
        return this.pick([`f64(${number / 10})`, 'f64(s0)', `d[i & ${LENGTH - 1}]`, 'f64(1e300)', 'f64(i)']);
      case 'bool':
        return this.pick(['((i & 1) === 0)', '(n > 3)', '(threadIdx.x < 9)', '(s0 > 0.5)', '(i32(3) > m0)']);
    }
  }
}
