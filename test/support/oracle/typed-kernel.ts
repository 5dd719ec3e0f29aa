// Kernels at random, as text, over all types of the language: branches, loops whose trip counts differ by thread, early
// returns, memory of the block and of the thread, atomics, barriers, and in some of them indices outside. Each thread
// writes elements of its own, what threads exchange stands between two barriers, and what they count together comes to
// the same in any order: so the result does.
import type { DType } from 'millrace';
import type { ScalarType } from '../../../src/compiler/ir/ir.js';
import { MOST_THREADS, type Plan, planOf } from './plans.js';
import { CONSTANTS, HELPERS, TYPES, TypedText } from './typed-text.js';
import { INEXACT } from './tolerance.js';

export { CONSTANTS, HELPERS, LENGTH, ROWS } from './typed-text.js';

/** Element type of each array of the threads' own elements, and the type in which its values are computed. */
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
  ['u16', 'i32'],
  ['bool', 'bool'],
  ['f32', 'f32'],
] as const satisfies readonly (readonly [DType, ScalarType])[];
/** Results that are compared within the tolerance of the function that the array of marks names: value, mark. */
export const MATHS = [
  ['m0s', 'f32', 't0s'],
  ['m1s', 'f64', 't1s'],
] as const satisfies readonly (readonly [string, DType, string])[];
/** Places where threads of all blocks meet: type, elements. */
export const MEETINGS = { p: ['u32', 16], pi: ['i32', 4], pl: ['i64', 4], pu: ['u64', 8], pf: ['f32', 2], pd: ['f64', 2] } as const;
/** Bytes of dynamic shared memory of kernels with barriers. */
export const SHARED_BYTES = 64;

const ENVIRONMENT = [
  'shared, sharedDynamic, local, rng, assert, syncthreads, syncwarp, threadfence, threadIdx, blockIdx, blockDim, gridDim, globalIdx',
  'atomicAdd, atomicSub, atomicMin, atomicMax, atomicAnd, atomicOr, atomicXor, atomicExch, atomicCAS, idiv, min, max, clamp, mix, fma',
  'rsqrt, popcount, floatBits, bitsFloat, i32, u32, i64, u64, f32, f64, u8, vec3f, vec2i, add, sub, mul, scale, dot, cross, length, normalize',
  `${Object.keys(CONSTANTS).join(', ')}, ${Object.keys(HELPERS).join(', ')}`,
].join(', ');
const INPUT_NAMES = 'a, b, c0, d, e, h, q, g, n, m0, k0, s0, s1, w0, flag';

export class TypedKernel extends TypedText {
  readonly text: string;
  readonly plan: Plan;
  readonly hasBarriers: boolean;
  /** Some threads may leave an array or fail an assertion. */
  readonly isLeaving: boolean;
  readonly isChecked: boolean;
  protected override readonly places: readonly string[];
  protected override readonly generator: string | undefined;
  protected override readonly hasHalves: boolean;
  readonly #outputs: readonly number[];
  #loops = 0;

  constructor(seed: number) {
    super(seed);
    this.hasBarriers = seed % 2 === 1;
    this.plan = planOf(this.random(2 ** 20), this.hasBarriers);
    this.isLeaving = seed % 5 === 3;
    this.isChecked = this.isLeaving || seed % 3 > 0;
    this.hasHalves = seed % 4 === 0;
    this.#outputs = OUTPUTS.flatMap(([dtype], at) => (dtype === 'f16' && !this.hasHalves ? [] : [at]));
    this.generator = this.hasHalves && this.random(2) === 0 ? 'dice' : undefined;
    const axes = ['i', 'j', 'k'].slice(0, this.plan.threads.length);
    this.places = [...axes, 'at'];
    const body = [
      ...this.#head(axes),
      ...this.statements(3, 6),
      ...(this.isLeaving ? [this.#outside()] : []),
      ...this.statements(3, 6),
      ...this.#outputs.map((output) => `${this.#own(`o${output}`)} = ${this.expression(OUTPUTS[output]![1], 3)};`),
    ];
    const outputs = [...OUTPUTS.map((_, at) => `o${at}`), ...MATHS.flatMap(([values, , marks]) => [values, marks])];
    const args = [INPUT_NAMES, ...Object.keys(MEETINGS), ...outputs].join(', ');
    this.text = `({ ${args} }, { ${axes.join(', ')}, ${ENVIRONMENT} }) => {\n${body.join('\n')}\n}`;
  }

  #head(axes: readonly string[]): string[] {
    const at = axes.reduce((sum, axis, dimension) => (dimension === 0 ? axis : `(${sum}) * o0.shape[${dimension}] + ${axis}`));
    const block = [
      `const s = shared(i32, ${MOST_THREADS}); const w = shared(f32, [${MOST_THREADS / 8}, 8]); const c = shared(u32, 4); const y = sharedDynamic(u32);`,
      'const t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);',
      // The first thread of a block is never beyond the launch.
      `if (t === 0) { for (let z = 0; z < ${MOST_THREADS}; z++) { s[z] = z; w[z >> 3][z & 7] = z; } for (let z = 0; z < 4; z++) c[z] = u32(z); for (let z = 0; z < y.length; z++) y[z] = u32(z * z); }`,
      'syncthreads();',
    ];
    return [
      `const at = ${at};`,
      ...(this.hasBarriers ? block : []),
      ...(this.generator === undefined ? [] : [`const ${this.generator} = rng(c0[3], at);`]),
      'const l = local(f64, 4); l[0] = f64(at); l[1] = 0.25; l[2] = f64(s0); l[3] = -1;',
      'const m = local(u8, [2, 2]); m[0][0] = at; m[0][1] = 200; m[1][0] = n; m[1][1] = 1;',
      'const r = local(i32, 8); for (let z = 0; z < 8; z++) r[z] = at - z;',
    ];
  }

  /** The thread's own element. */
  #own(array: string): string {
    return `${array}[${this.places.slice(0, -1).join('][')}]`;
  }

  /** Array and index, as an atomic takes them. */
  #ownPlace(array: string): string {
    const axes = this.places.slice(0, -1);
    return `${[array, ...axes.slice(0, -1).map((axis) => `[${axis}]`)].join('')}, ${axes.at(-1)!}`;
  }

  #declare(type: ScalarType | 'vec3f' | 'vec2i', isLet: boolean): string {
    const name = this.nameFor('v');
    this.scopes.at(-1)!.push({ name, type, isLet });
    return name;
  }

  protected override statement(depth: number): string {
    const kind = this.random(depth > 0 ? 31 : 21);
    if (kind < 4) return this.#declaration();
    if (kind < 7) return this.#assignment();
    if (kind < 8) return `l[${this.index(3)}] ${this.pick(['=', '+='])} ${this.expression('f64', 2)};`;
    if (kind < 9) return `m[${this.index(1)}][${this.index(1)}] = ${this.expression('i32', 2)};`;
    if (kind < 10) return `r[${this.index(7)}] = ${this.expression('i32', 2)};`;
    if (kind < 12) return this.hasBarriers ? this.#exchange() : this.#meeting();
    if (kind < 13) return this.#meeting();
    if (kind < 15) return this.#ownAtomic();
    if (kind < 16) {
      const at = this.pick(this.#outputs);
      return `${this.#own(`o${at}`)} = ${this.expression(OUTPUTS[at]![1], 2)};`;
    }
    if (kind < 17) return this.#inexact();
    if (kind < 20) return this.#leaving();
    if (kind < 21) return this.isLeaving ? this.#outside() : this.pick(['threadfence();', this.#leaving()]);
    if (kind < 25) {
      const condition = this.#condition();
      const otherwise = this.random(2) === 0 ? '' : ` else ${this.block(depth, 3)}`;
      return `if (${condition}) ${this.block(depth, 3)}${otherwise}`;
    }
    return this.#loop(depth);
  }

  #declaration(): string {
    const isLet = this.random(3) > 0;
    const word = isLet ? 'let' : 'const';
    const type = this.random(6) === 0 ? this.pick(['vec3f', 'vec2i'] as const) : this.pick(TYPES);
    const value = type === 'vec3f' || type === 'vec2i' ? this.vector(type, 2) : this.expression(type, 3);
    return `${word} ${this.#declare(type, isLet)} = ${value};`;
  }

  #assignment(): string {
    const lets = this.scopes.flat().filter(({ isLet }) => isLet);
    if (lets.length === 0) return this.#declaration();
    const { name, type } = this.pick(lets);
    if (type === 'vec3f' || type === 'vec2i') return `${name} = ${this.vector(type, 2)};`;
    if ((type === 'u32' || type === 'f32' || type === 'f64') && this.random(2) === 0)
      return `${name} ${this.pick(['+=', '-=', '*='])} ${this.expression(type, 2)};`;
    return `${name} = ${this.expression(type, 3)};`;
  }

  /** A function that devices round each in its way. */
  #inexact(): string {
    const [values, type, marks] = this.pick(MATHS);
    const names = Object.keys(INEXACT);
    const which = this.random(names.length);
    const name = names[which]!;
    const args = Array.from({ length: INEXACT[name]!.arity }, () => this.expression(type, 2)).join(', ');
    return `${this.#own(values)} = ${name === 'rsqrt' ? name : `Math.${name}`}(${args}); ${this.#own(marks)} = ${which + 1};`;
  }

  #leaving(): string {
    const ways = this.#loops > 0 ? ['break;', 'continue;', 'return;'] : ['return;', `${this.#own('o0')} = 5; return;`];
    return `if (${this.expression('bool', 2)} && (at & 3) === ${this.random(4)}) { ${this.pick(ways)} }`;
  }

  /** Some threads leave an array, or fail an assertion. */
  #outside(): string {
    const far = (): string => `${this.pick(['at', 'threadIdx.x', `(${this.expression('i32', 1)} & 127)`])} - ${this.random(3)}`;
    const own = this.hasBarriers ? [`s[${far()} + 100] = 1;`, `${this.#own('o1')} = c[at & 7];`] : [];
    const what = this.pick([
      ...own,
      `${this.#own('o0')} = b[${far()}];`,
      `${this.#own('o2')} = q[${far()} & 15][at & 15];`,
      `l[${far()} & 7] = 1;`,
      `r[8 - (at & 1)] = 3;`,
      `assert((${far()}) % 11 !== 5);`,
      `atomicAdd(p, (${far()}) & 31, 0);`,
    ]);
    return this.random(2) === 0 ? what : `if (${this.expression('bool', 1)}) { ${what} }`;
  }

  /** What threads of all blocks count together; no order changes what it comes to. */
  #meeting(): string {
    const [word, whole] = [(): string => this.expression('u32', 2), (): string => this.expression('i32', 2)];
    const [deep, wide] = [(): string => this.expression('i64', 1), (): string => this.expression('u64', 1)];
    const one = (): string => this.index(1);
    return this.choose([
      () => `${this.pick(['atomicAdd', 'atomicSub'])}(p, ${this.index(3)}, ${word()});`,
      () => `atomicMin(p, 4, ${word()}); atomicMax(p, 5, ${word()});`,
      () => `atomicAnd(p, 6 + (${one()}), ${word()}); atomicOr(p, 8 + (${one()}), ${word()});`,
      () => `atomicXor(p, 10, ${word()});`,
      // The sum of what tickets were drawn.
      () => 'atomicAdd(p, 12, atomicAdd(p, 11, 1));',
      // Who comes first finds what was there, the others what the first left.
      () => 'atomicAdd(p, 14, atomicExch(p, 13, 77));',
      () => `for (;;) { const old = p[15]; if (atomicCAS(p, 15, old, old + ${1 + this.random(9)}) === old) break; }`,
      () =>
        `${this.pick(['atomicAdd', 'atomicSub'])}(pi, ${one()}, ${whole()}); atomicMin(pi, 2, ${whole()}); atomicMax(pi, 3, ${whole()});`,
      () => `atomicMin(pl, ${one()}, ${deep()}); atomicMax(pl, 2 + (${one()}), ${deep()});`,
      () => `atomicAdd(pu, ${one()}, ${wide()}); atomicMin(pu, 2, ${wide()}); atomicMax(pu, 3, ${wide()});`,
      () => `atomicAnd(pu, 4, ${wide()}); atomicOr(pu, 5, ${wide()}); atomicXor(pu, 6, ${wide()});`,
      () => `atomicAdd(pf, ${one()}, f32(${whole()} & 255));`,
      () => `atomicAdd(pd, ${one()}, f64(${whole()} & 65535));`,
    ]);
  }

  /** On the thread's own element, so that what was there is known. */
  #ownAtomic(): string {
    const [number, type, names] = this.pick([
      [0, 'i32', ['Add', 'Sub', 'Min', 'Max', 'And', 'Or', 'Xor', 'Exch']],
      [1, 'u32', ['Add', 'Sub', 'Min', 'Max', 'And', 'Or', 'Xor', 'Exch']],
      [2, 'f32', ['Exch', 'Add']],
      [3, 'f64', ['Add']],
      [4, 'i64', ['Min', 'Max']],
      [5, 'u64', ['Add', 'Min', 'Max', 'And', 'Or', 'Xor', 'Exch']],
    ] as const);
    const place = this.#ownPlace(`o${number}`);
    const value = this.expression(type, 2);
    const hasCas = type === 'i32' || type === 'u32' || type === 'u64';
    const call =
      hasCas && this.random(2) === 0
        ? `atomicCAS(${place}, ${this.random(2) === 0 ? this.#own(`o${number}`) : this.expression(type, 1)}, ${value})`
        : `atomic${this.pick(names)}(${place}, ${value})`;
    return this.random(3) === 0 ? `${call};` : `let ${this.#declare(type, true)} = ${call};`;
  }

  /** What the threads of a block tell each other. */
  #exchange(): string {
    const between = (write: string, read: string): string => `syncthreads(); ${write} syncthreads(); ${read} syncthreads();`;
    const anyone = `(${this.expression('i32', 1)} + t) & ${MOST_THREADS - 1}`;
    switch (this.random(5)) {
      case 0:
        return between(`s[t] = ${this.expression('i32', 2)};`, `let ${this.#declare('i32', true)} = s[${anyone}];`);
      case 1: {
        const from = `${this.index(MOST_THREADS / 8 - 1)}][${this.index(7)}`;
        return between(`w[t >> 3][t & 7] = ${this.expression('f32', 2)};`, `let ${this.#declare('f32', true)} = w[${from}];`);
      }
      case 2: {
        const sent = this.expression('u32', 2);
        const [at, from] = [this.index(3), this.index(3)];
        const how = this.pick(['Add', 'Sub', 'Min', 'Max', 'And', 'Or', 'Xor']);
        return between(`atomic${how}(c, ${at}, ${sent});`, `const ${this.#declare('u32', false)} = c[${from}];`);
      }
      case 3: {
        const from = this.index(SHARED_BYTES / 4 - 1);
        return between(
          `atomicAdd(y, ${this.index(SHARED_BYTES / 4 - 1)}, ${this.expression('u32', 1)});`,
          `let ${this.#declare('u32', true)} = y[${from}];`,
        );
      }
      default:
        return this.pick(['syncwarp();', 'syncthreads();']);
    }
  }

  #loop(depth: number): string {
    const counter = this.nameFor('k');
    const bounds = [
      `(${this.expression('i32', 1)} & 3)`,
      `(n & 3) + ${this.random(3)}`,
      `(n & 3) + ${this.random(3)}`,
      `(at * ${1 + this.random(9)} + ${this.random(9)}) % ${this.#loops === 0 ? 11 : 4}`,
    ];
    const bound = this.pick(bounds);
    this.scopes.push([{ name: counter, type: 'i32', isLet: false }]);
    this.#loops++;
    const body = this.block(depth, 3);
    this.#loops--;
    this.scopes.pop();
    switch (this.random(5)) {
      case 0:
        return `for (let ${counter} = i32(0); ${counter} < ${bound}; ${counter}++) ${body}`;
      case 1:
        return `for (let ${counter} = ${bound}; ${counter} > 0; ${counter} >>= 1) ${body}`;
      case 2:
        return `{ let ${counter} = i32(0); while (${counter} < ${bound}) { ${counter} += 1; ${body} } }`;
      case 3:
        return `{ let ${counter} = ${bound}; for (;;) { ${counter}--; if (${counter} < 0) break; ${body} } }`;
      default:
        return `{ let ${counter} = i32(0); do { ${counter}++; ${body} } while (${counter} < ${bound}); }`;
    }
  }

  /** Half of them the same for all threads, or barriers would stand nowhere. */
  #condition(): string {
    return this.random(2) === 0
      ? `(${this.pick(['n', 'm0', 'blockIdx.x', 'b[3]', 'k0'])} & ${1 + this.random(7)}) ${this.pick(['<', '===', '>'])} ${this.random(4)}`
      : this.expression('bool', 2);
  }
}
