// Kernels at random on bytes and shorts, whose values fit in few bits, or just do not: sums that end at a limit, low bits
// of what has wrapped, comparisons with what lies beyond. Each thread writes its own element, and looks at its neighbours'.
import { bool, i16, i32, i8, inout, input, u16, u8 } from 'millrace';
import type { Param } from 'millrace';
import { type Named, RandomText } from '../random-text.js';

/** What a number is for: a sum that is compared may stop, and one that is stored may wrap. Or it is a boolean. */
type Use = 'stored' | 'compared' | 'asked';
interface Local extends Named {
  readonly use: Use;
}

const OUTPUTS = { u8, i8, u16, i16 } as const;
export const NARROW_INPUTS = { a: u8, b: i8, c: u16, d: i16, f: bool } as const;
export type NarrowOutput = keyof typeof OUTPUTS;

export function narrowParams(output: NarrowOutput): Readonly<Record<string, Param>> {
  const inputs = Object.entries(NARROW_INPUTS).map(([name, type]) => [name, input(type, 2)]);
  return { ...Object.fromEntries(inputs), o: inout(OUTPUTS[output], 2), t: u8, w: i32 };
}

export class NarrowText extends RandomText<Local> {
  readonly text: string;
  readonly output: NarrowOutput;
  readonly isChecked: boolean;
  /** Only what lanes of bytes have. */
  readonly #isOfBytes: boolean;
  #isInside = false;

  constructor(seed: number) {
    super(seed);
    this.#isOfBytes = seed % 2 === 0;
    this.output = this.#isOfBytes ? 'u8' : this.pick(['u8', 'i8', 'u16', 'i16']);
    this.isChecked = this.random(4) > 0;
    const body = [...(this.random(2) === 0 ? [this.#border()] : []), ...this.statements(2, 4), `o[i][j] = ${this.#int(3)};`];
    this.text = `({ a, b, c, d, f, o, t, w }, { i, j, idiv, min, max, clamp, u32, i32 }) => {\n${body.join('\n')}\n}`;
  }

  /** Behind it there are neighbours on all sides. */
  #border(): string {
    this.#isInside = true;
    return `if (i === 0 || j === 0 || i >= a.shape[0] - 1 || j >= a.shape[1] - 1) { ${this.pick(['o[i][j] = 9; ', ''])}return; }`;
  }

  protected override statement(depth: number): string {
    const kind = this.random(depth > 0 ? 10 : 8);
    const valueOf = (use: Use): string => (use === 'asked' ? this.#bool(2) : this.#int(3, use));
    if (kind < 4) {
      const use = this.pick(['stored', 'compared', 'asked'] as const);
      const value = valueOf(use);
      const isLet = this.random(2) === 0;
      const name = this.nameFor('v');
      this.scopes.at(-1)!.push({ name, isLet, use });
      return `${isLet ? 'let' : 'const'} ${name} = ${value};`;
    }
    if (kind < 7) {
      const lets = this.scopes.flat().filter(({ isLet }) => isLet);
      if (lets.length === 0) return `o[i][j] = ${this.#int(3)};`;
      const { name, use } = this.pick(lets);
      return `${name} = ${valueOf(use)};`;
    }
    if (kind < 8) return `if (${this.#bool(2)}) { ${this.pick([`o[i][j] = ${this.#int(2)}; `, ''])}return; }`;
    const otherwise = this.random(2) === 0 ? '' : ` else ${this.block(depth, 2)}`;
    return `if (${this.#bool(2)}) ${this.block(depth, 2)}${otherwise}`;
  }

  #place(): string {
    const near = (axis: string): string => (this.#isInside ? this.pick([axis, `${axis} - 1`, `${axis} + 1`]) : axis);
    return `[${near('i')}][${near('j')}]`;
  }

  #limit(): number {
    // One in a while that makes it need more bits.
    if (this.random(12) === 0) return this.pick([-1, 255, 256, 65_535]);
    return this.pick(this.#isOfBytes ? [0, 1, 3, 128, 254] : [-32_767, -129, -1, 0, 5, 127, 255, 256, 1020, 32_766]);
  }

  #leaf(use: Use): string {
    const known = this.scopes.flat().filter((local) => local.use === use);
    if (known.length > 0 && this.random(3) === 0) return this.pick(known).name;
    if (this.random(6) === 0) return this.pick(['t', String(this.random(256)), '(w & 127)']);
    if (this.#isOfBytes) return `a${this.#place()}`;
    if (this.random(8) === 0) return this.pick([`(c${this.#place()} & 511)`, `(d${this.#place()} >> 3)`]);
    return `${this.pick(['a', 'b'])}${this.#place()}`;
  }

  #int(depth: number, use: Use = 'stored'): string {
    if (depth === 0 || this.random(6) === 0) return this.#leaf(use);
    const own = (): string => this.#int(depth - 1, use);
    const ways = [
      () => `(${own()} + ${own()})`,
      () => `(${own()} + ${own()} + ${own()})`,
      () => `(${this.#bool(depth - 1)} ? ${own()} : ${own()})`,
      () => `(${own()} & ${this.pick([1, 15, 255])})`,
    ];
    if (this.#isOfBytes && use === 'compared')
      return this.choose([...ways, () => `${this.pick(['min', 'max'])}(${own()}, ${own()})`, () => `i32(u32(${own()}))`]);
    ways.push(
      () => `(${own()} ${this.pick(['&', '|', '^'])} ${own()})`,
      () => `(${own()} - ${own()})`,
      () => this.pick([`(~${own()})`, `(-${own()})`, `(${this.pick(['i', 'j'])} + 3)`]),
      () => `${this.pick(['min', 'max'])}(${this.#leaf('compared')}, ${this.#leaf('compared')})`,
    );
    const sum = (): string => this.#int(depth - 1, 'compared');
    if (this.#isOfBytes) {
      ways.push(
        () => `i32(u32(${own()} & 255) + u32(${own()} & 127))`,
        () => `min(${sum()}, ${this.pick([7, 254, 255])})`,
        () => `clamp(${sum()}, ${this.random(9)}, ${this.pick([100, 255])})`,
      );
      return this.choose(ways);
    }
    return this.choose([
      ...ways,
      () => `((${own()} & 255) * (${own()} & ${this.pick([127, 127, 255])}))`,
      () => `(${own()} * ${this.pick([2, 3, 7, -5, 129])} & 32767)`,
      () => `((${own()} & 255) << ${this.random(8)})`,
      () => `(${this.#leaf('compared')} >> ${this.random(this.random(8) === 0 ? 18 : 15)})`,
      () => `(${this.#leaf('compared')} % ${this.pick([3, 10, 255])})`,
      () => `idiv(${this.#leaf('compared')} + ${this.#leaf('compared')}, ${this.pick([2, 9, 100])})`,
      () => `clamp(${this.#leaf('compared')}, ${this.pick([-300, 0, 7])}, ${this.pick([300, 32_767])})`,
      () => this.pick([`Math.abs(${this.#leaf('compared')})`, `(${this.pick(['i', 'j'])} * 5 & 63)`]),
      () => `i32((u32(${own()}) ${this.pick(['+', '-', '^'])} u32(${own()})) & u32(${this.pick([255, 32_767])}))`,
    ]);
  }

  /** Of a whole element: a sum of two may be beyond what lanes have. */
  #unsigned(): string {
    return `(${this.#isOfBytes ? 'a' : this.pick(['a', 'c'])}${this.#place()} >>> 0)`;
  }

  #bool(depth: number): string {
    const known = this.scopes.flat().filter(({ use }) => use === 'asked');
    if (known.length > 0 && this.random(4) === 0) return this.pick(known).name;
    const sign = (): string => this.pick(['<', '<=', '>', '>=', '===', '!==']);
    const own = (): string => this.#int(depth, 'compared');
    const ways = [
      () => `${own()} ${sign()} ${this.#limit()}`,
      () => `${this.#limit()} ${sign()} ${own()}`,
      () => `${this.#leaf('compared')} ${sign()} ${this.#leaf('compared')}`,
      () => `${this.#leaf('compared')} ${sign()} ${this.#isOfBytes ? 't' : this.pick(['t', 'w', 'a.shape[1]'])}`,
      () => `${this.pick(['j', 'j + 2', 'i'])} ${sign()} ${this.pick(['3', 'w', 'a.shape[1] - 2', '-1'])}`,
      () => `${this.#unsigned()} + ${this.#unsigned()} ${sign()} ${this.pick(this.#isOfBytes ? [0, 100, 254] : [0, 254, 1000, 65_534])}`,
      () => `f${this.#place()}`,
    ];
    if (depth === 0) return this.choose(ways);
    return this.choose([
      ...ways,
      () => `(${this.#bool(depth - 1)} ${this.pick(['&&', '||'])} ${this.#bool(depth - 1)})`,
      () => `!(${this.#bool(depth - 1)})`,
    ]);
  }
}
