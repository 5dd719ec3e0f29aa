// CUDA kernels at random, as text: variables of many types, changed in plain sight and behind references, pointers, aliases and
// functions, around barriers and without. Threads exchange values only between two barriers, so that the result does not depend on
// the order in which they run; numbers are unsigned or small, so that nothing overflows.
import { type Named, RandomText } from '../../support/random-text.js';

export const THREADS = 32;
/** Functions that the kernels call. */
export const CALLED = `
using Ref = unsigned&;
typedef unsigned Word;
struct Holder { unsigned& r; };
struct Link { unsigned* p; };
struct Pair { unsigned a; unsigned b; __device__ void add(unsigned x) { a += x; b ^= a; } };
struct Own { unsigned v; __device__ Own operator+(Own o) const { return {v + o.v}; } };
__device__ void five(unsigned& x) { x = x * 5u + 1u; }
__device__ void by_alias(Ref x) { x ^= 5u; }
__device__ unsigned taken(unsigned x, Word y) { x += y; return x ^ (y >> 1); }
__device__ unsigned* where(unsigned& x) { return &x; }
template <class X> __device__ void swapped(X& a, X& b) { X c = a; a = b; b = c; }
template <class X> __device__ X larger(X a, X b) { a = a > b ? a : b; return a; }
const int ROUNDS = 3;
__device__ const unsigned SALT = 77u;
`;

interface Local extends Named {
  /** A pointer to a number, what is the same for all threads, or a number of a thread's. */
  readonly kind: 'number' | 'pointer' | 'same' | 'pair' | 'array';
}

export class RandomCuda extends RandomText<Local> {
  readonly text: string;
  readonly #waits: boolean;
  /** Whether more is asked of indices than the place in the grid. */
  readonly #asksForIndices: boolean;
  /** Threads may be here alone. */
  #alone = 0;

  /** `waits`: with barriers. */
  constructor(seed: number, name: string, waits: boolean) {
    super(seed);
    this.#waits = waits;
    this.#asksForIndices = waits || this.random(2) === 0;
    const place = this.pick([
      'const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;',
      'unsigned i = blockIdx.x * blockDim.x + threadIdx.x;',
      'auto i = blockIdx.x * blockDim.x + threadIdx.x;',
    ]);
    this.scopes
      .at(-1)!
      .push({ name: 'i', isLet: place.startsWith('unsigned'), kind: 'number' }, { name: 'n', isLet: true, kind: 'number' });
    const body = [
      ...(waits ? [`__shared__ unsigned s[64];`, `s[threadIdx.x] = threadIdx.x; s[threadIdx.x + 32] = n;`] : []),
      place,
      ...(waits
        ? ['__syncthreads();']
        : this.random(2) === 0
          ? [
              `if (${this.pick(['i >= m', 'i < 3u', this.#asksForIndices ? 'threadIdx.x == 3u || i > 70u' : 'i == 40u || i > 70u'])}) return;`,
            ]
          : []),
      `unsigned own = ${this.#expression(1)};`,
    ];
    this.scopes.at(-1)!.push({ name: 'own', isLet: true, kind: 'number' });
    body.push(...this.statements(3, 6), ...this.statements(3, 6));
    if (waits) body.push('__syncthreads();', 's[threadIdx.x] += own;', '__syncthreads();', `own ^= s[31 - threadIdx.x];`);
    body.push(`out[blockIdx.x * blockDim.x + threadIdx.x] += ${this.#expression(2)};`);
    this.text = `extern "C" __global__ void ${name}(unsigned* out, const unsigned* in, unsigned n, unsigned m) {\n${body.join('\n')}\n}\n`;
  }

  /** What can be named here: of several with one name the innermost. */
  #visible(kind: Local['kind']): Local[] {
    const all = this.scopes.flat();
    return all.filter((one, at) => one.kind === kind && all.findLastIndex(({ name }) => name === one.name) === at);
  }

  /** `first`: what it begins with, which must not mention another of its name. */
  #declare(kind: Local['kind'], isLet = true, first = ''): string {
    // At times one that an outer block has.
    const outer = this.scopes
      .slice(1, -1)
      .flat()
      .filter(
        ({ name }) =>
          name.startsWith('v') && !this.scopes.at(-1)!.some((one) => one.name === name) && !new RegExp(`\\b${name}\\b`).test(first),
      );
    const name = outer.length > 0 && this.#alone > 0 && this.random(4) === 0 ? this.pick(outer).name : this.nameFor('v');
    this.scopes.at(-1)!.push({ name, isLet, kind });
    return name;
  }

  /** A number that can be changed. */
  #target(): string {
    const all = this.#visible('number').filter(({ isLet }) => isLet);
    return this.pick(all.filter(({ name }) => name !== 'i' || this.random(4) === 0)).name;
  }

  protected override statement(depth: number): string {
    const kinds = depth > 0 ? 24 : 15;
    const value = (): string => this.#expression(2);
    const kind = this.random(kinds);
    if (kind < 3) {
      const first = value();
      const type = this.pick(['unsigned', 'unsigned', 'Word', 'const unsigned', 'unsigned short', 'auto', 'bool', 'unsigned char']);
      return `${type} ${this.#declare('number', /^(?:unsigned|Word|auto)$/.test(type), first)} = ${type === 'auto' ? `0u + (${first})` : first};`;
    }
    if (kind === 3) {
      const same = this.#same(1);
      return `const unsigned ${this.#declare('same', false, same)} = ${same};`;
    }
    if (kind < 6) return this.#change();
    if (kind < 9) return this.#hiddenChange();
    if (kind === 9) return `unsigned* ${this.#declarePointer()}`;
    if (kind === 10) {
      const pointers = this.#visible('pointer');
      return pointers.length === 0 ? this.#change() : `*${this.pick(pointers).name} ${this.pick(['+=', '^=', '='])} ${value()};`;
    }
    if (kind === 11) {
      const [a, b] = [value(), value()];
      return `Pair ${this.#declare('pair', true, a + b)} = {${a}, ${b}};`;
    }
    if (kind === 12) {
      const pairs = this.#visible('pair');
      return pairs.length === 0 ? this.#change() : `${this.pick(pairs).name}${this.pick(['.a += 3u', '.add(n)', '.b = i'])};`;
    }
    if (kind === 13) {
      const second = this.#leaf();
      const name = this.#declare('array', true, second);
      return `unsigned ${name}[4]; ${name}[0] = i; ${name}[1] = ${second}; ${name}[2] = 7u; ${name}[3] = n;`;
    }
    if (kind === 14) {
      const arrays = this.#visible('array');
      return arrays.length === 0
        ? this.#change()
        : `${this.pick(arrays).name}[(${this.#leaf()}) & 3u] ${this.pick(['=', '+='])} ${value()};`;
    }
    if (kind < 18 && this.#waits && this.#alone === 0) {
      const sent = value();
      const target = this.#target();
      return `__syncthreads();\ns[threadIdx.x] = ${sent};\n__syncthreads();\n${target} += s[(threadIdx.x + ${this.random(32)}u) & 31u];`;
    }
    if (kind < 21) return this.#branch(depth);
    return this.#loop(depth);
  }

  #declarePointer(): string {
    const target = this.#target();
    const how = this.pick([`&${target}`, `&(${target})`, `where(${target})`]);
    return `${this.#declare('pointer', true, how)} = ${how};`;
  }

  #change(): string {
    const target = this.#target();
    return this.choose([
      () => `${target} ${this.pick(['=', '+=', '^=', '*='])} ${this.#expression(2)};`,
      () => `${this.pick(['++', '--'])}${target};`,
      () => `${target}${this.pick(['++', '--'])};`,
      () => `(${target}) ${this.pick(['+=', '='])} ${this.#expression(1)};`,
      () => `if (${this.#expression(1)} & 1u) ${target} += ${this.#leaf()};`,
    ]);
  }

  #hiddenChange(): string {
    const [a, b] = [this.#target(), this.#target()];
    const value = this.#expression(1);
    const hidden = this.nameFor('h');
    return this.choose([
      () => `((${value}) & 1u ? ${a} : ${b}) += ${this.#leaf()};`,
      () => `{ unsigned& ${hidden} = ${a}; ${hidden} ^= ${value}; }`,
      () => `{ auto& ${hidden} = ${a}; ${hidden}++; }`,
      () => `{ Ref ${hidden} = ${a}; ${hidden} += ${value}; }`,
      () => `{ Ref ${hidden}(${a}); ${hidden} += ${value}; }`,
      () => `{ Holder ${hidden} = {${a}}; ${hidden}.r += ${value}; }`,
      () => `{ Link ${hidden} = {&${a}}; *${hidden}.p += ${value}; }`,
      () => `five(${a});`,
      () => `(five)(${a});`,
      () => `by_alias(${a});`,
      () => `swapped(${a}, ${b});`,
      () => `${a} = ${b} = ${value};`,
      () => `${a} = (${b}++, ${value});`,
      () => `${a} += larger(${a}++ & 7u, ${value});`,
      () => `{ unsigned ${a} = 9u; ${b} += ${a}; ${a}++; }`,
      () => `${a} = taken(${b}, ${value}) + (${value} > 3u && ${b}++ > 2u);`,
    ]);
  }

  #branch(depth: number): string {
    const isSame = this.random(2) === 0;
    const condition = isSame ? `${this.#same(1)} ${this.pick(['>', '<', '=='])} ${this.random(4)}u` : `(${this.#expression(1)}) & 1u`;
    if (!isSame) this.#alone++;
    const first = this.block(depth, 3);
    const text = `if (${condition}) ${first}${this.random(3) === 0 ? ` else ${this.block(depth, 3)}` : ''}`;
    if (!isSame) this.#alone--;
    return text;
  }

  #loop(depth: number): string {
    const counter = this.nameFor('k');
    const isSame = this.random(3) > 0;
    const bound = isSame ? this.pick(['ROUNDS', '2', `int(${this.#same(0)} & 3u)`]) : '(int)(i & 3u)';
    const body = (): string => {
      this.scopes.push([{ name: counter, isLet: false, kind: isSame ? 'same' : 'number' }]);
      if (!isSame) this.#alone++;
      const made = this.block(depth, 3);
      if (!isSame) this.#alone--;
      this.scopes.pop();
      return made;
    };
    return this.choose([
      () => `for (int ${counter} = 0; ${counter} < ${bound}; ${counter}++) ${body()}`,
      () => `for (int ${counter} = ${bound}; ${counter} > 0; --${counter}) ${body()}`,
      () => `{ int ${counter} = 0; while (${counter}++ < ${bound}) ${body()} }`,
      () => `{ int ${counter} = 0; do ${body()} while (++${counter} < ${bound}); }`,
    ]);
  }

  /** The same for all threads of a block, by what it is made of. */
  #same(depth: number): string {
    const known = this.#visible('same').map(({ name }) => name);
    const leaf = this.pick([
      'm',
      this.#asksForIndices ? 'blockIdx.x' : '5u',
      'SALT',
      `${this.random(9)}u`,
      ...known.map((name) => `(unsigned)${name}`),
    ]);
    return depth === 0 ? leaf : `(${leaf} ${this.pick(['+', '^', '&'])} ${this.#same(depth - 1)})`;
  }

  #leaf(): string {
    const numbers = [...this.#visible('number'), ...this.#visible('same')].map(({ name }) => name);
    const others = [
      ...this.#visible('pointer').map(({ name }) => `*${name}`),
      ...this.#visible('pair').map(({ name }) => `${name}.a`),
      ...this.#visible('array').map(({ name }) => `${name}[i & 3u]`),
    ];
    const plain = ['m', ...(this.#asksForIndices ? ['threadIdx.x', 'blockIdx.x'] : ['3u']), `${this.random(50)}u`, 'in[i & 31u]', 'SALT'];
    return this.pick([...plain, ...numbers.map((name) => `(unsigned)${name}`), ...numbers.map((name) => `(unsigned)${name}`), ...others]);
  }

  #expression(depth: number): string {
    if (depth === 0 || this.random(3) === 0) return this.#leaf();
    const [left, right] = [this.#expression(depth - 1), this.#expression(depth - 1)];
    switch (this.random(6)) {
      case 0:
        return `(${left} > ${right} ? ${left} : ${right})`;
      case 1:
        return `taken(${left}, ${right})`;
      case 2:
        return `min(${left}, ${right})`;
      default:
        return `(${left} ${this.pick(['+', '-', '^', '&', '*'])} ${right})`;
    }
  }
}
