// Kernels at random, as text: variables of every kind, branches, loops and exits around barriers. Threads of a block
// exchange values only between two barriers, so that the result does not depend on the order in which they run; and
// numbers stay small, so that nothing overflows.
import { type Named, RandomText } from '../../support/random-text.js';

export const BLOCK = 40;
const SIZE = 64;

export class RandomKernel extends RandomText<Named> {
  readonly text: string;
  readonly #mayLeaveBounds: boolean;
  #loops = 0;

  /** `mayLeaveBounds`: some threads use an index outside an array. */
  constructor(seed: number, mayLeaveBounds: boolean) {
    super(seed);
    this.#mayLeaveBounds = mayLeaveBounds;
    const body = [
      `const s = shared(i32, ${SIZE}); const c = shared(i32, 4); const l = local(i32, 3);`,
      'const width = Math.min(blockDim.x, y.length - blockIdx.x * blockDim.x);',
      's[threadIdx.x] = i & 31; l[0] = n; l[1] = i & 7; l[2] = 0;',
      'if (threadIdx.x === 0) for (let z = 0; z < 4; z++) c[z] = z;',
      'syncthreads();',
      ...this.statements(3, 4),
      ...(mayLeaveBounds ? [`if (threadIdx.x === ${this.random(BLOCK)}) l[${this.random(2) === 0 ? 3 : -1}] = 1;`] : []),
      ...this.statements(3, 4),
      `y[i] = ${this.#expression(2)};`,
    ];
    this.text = `({ x, y, n, m }, { i, shared, local, syncthreads, syncwarp, threadIdx, blockIdx, blockDim, atomicAdd, assert, idiv }) => {\n${body.join('\n')}\n}`;
  }

  #declare(isLet: boolean): string {
    const name = this.nameFor('v');
    this.scopes.at(-1)!.push({ name, isLet });
    return name;
  }

  protected override statement(depth: number): string {
    const value = (): string => `(${this.#expression(2)}) & 1023`;
    const lets = this.scopes.flat().filter(({ isLet }) => isLet);
    const kind = this.random(depth > 0 ? 20 : 13);
    if (kind < 2) {
      const text = value();
      return `let ${this.#declare(true)} = ${text};`;
    }
    if (kind === 2) {
      const text = value();
      return `const ${this.#declare(false)} = ${text};`;
    }
    if (kind < 5) return lets.length === 0 ? `l[${this.random(2)}] = ${value()};` : `${this.pick(lets).name} = ${value()};`;
    if (kind < 8) {
      const sent = value();
      const by = this.#expression(1);
      return `syncthreads(); s[threadIdx.x] = ${sent}; syncthreads(); let ${this.#declare(true)} = s[((${by} & 63) + threadIdx.x) % width];`;
    }
    if (kind === 8) {
      const sent = value();
      return `syncthreads(); atomicAdd(c, ${this.#expression(1)} & 3, ${sent}); syncthreads(); let ${this.#declare(true)} = c[${this.random(4)}] & 1023;`;
    }
    if (kind === 9) return `l[${this.#expression(1)} & 1] = ${value()};`;
    if (kind === 10) return `y[i] = ${value()};`;
    if (kind === 11) return this.#leaving();
    if (kind === 12) return `if (${this.#condition()}) { ${this.pick(['y[i] += 1;', 'syncwarp();', 'l[2] = i & 3;'])} }`;
    if (kind < 16) {
      const otherwise = this.random(2) === 0 ? '' : ` else ${this.block(depth, 3)}`;
      return `if (${this.#condition()}) ${this.block(depth, 3)}${otherwise}`;
    }
    return this.#loop(depth);
  }

  /** Ways for a thread to stop, or to go on elsewhere. */
  #leaving(): string {
    const condition = this.#condition();
    const inLoop = this.#loops > 0 ? ['break;', 'continue;', 'break;', 'continue;'] : [];
    const outside = this.#mayLeaveBounds ? ['l[3 - (i & 1)] = 1;', 'y[i] = x[i * 40];'] : [];
    const way = this.pick([...inLoop, ...outside, 'return;', 'y[i] = 5; return;', 'assert((i & 7) < 6);']);
    return `if (${condition}) { ${way} }`;
  }

  #loop(depth: number): string {
    const counter = this.nameFor('k');
    const bound = `(${this.#expression(1)} & 3)`;
    this.scopes.push([{ name: counter, isLet: false }]);
    this.#loops++;
    const body = this.block(depth, 3);
    this.#loops--;
    this.scopes.pop();
    switch (this.random(3)) {
      case 0:
        return `for (let ${counter} = 0; ${counter} < ${bound}; ${counter}++) ${body}`;
      case 1:
        return `for (let ${counter} = ${bound}; ${counter} > 0; ${counter} = idiv(${counter}, 2)) ${body}`;
      default:
        return `{ let ${counter} = 0; do { ${counter}++; ${body} } while (${counter} < ${bound}); }`;
    }
  }

  #condition(): string {
    const side = (): string => this.#expression(1);
    const one = (): string =>
      `${side()} ${this.pick(['<', '>', '===', '!==', '<=', '>='])} ${this.random(2) === 0 ? this.random(40) : side()}`;
    return this.random(4) === 0 ? `${one()} ${this.pick(['&&', '||'])} ${one()}` : one();
  }

  #expression(depth: number): string {
    if (depth === 0 || this.random(3) === 0) return this.#leaf();
    const [left, right] = [this.#expression(depth - 1), this.#expression(depth - 1)];
    switch (this.random(6)) {
      case 0:
        return `(${this.#leaf()} * ${this.#leaf()})`;
      case 1:
        return `(${left} >> ${this.random(4)})`;
      case 2:
        return `(${left} > ${right} ? ${left} : ${right})`;
      case 3:
        return `x[(${left}) & 15]`;
      default:
        return `(${left} ${this.pick(['+', '-', '^', '&'])} ${right})`;
    }
  }

  /** Mostly the same for all threads of a block, or barriers would stand nowhere. */
  #leaf(): string {
    const variables = this.scopes.flat().map(({ name }) => name);
    if (variables.length > 0 && this.random(3) === 0) return this.pick(variables);
    const uniform = ['n', 'm', 'blockIdx.x', 'blockDim.x', 'width', String(this.random(50))];
    return this.pick(this.random(3) > 0 ? uniform : ['i', 'threadIdx.x', 'l[0]', 'l[1]', 'threadIdx.x', 'i']);
  }
}
