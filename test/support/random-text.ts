// What generators of kernel text share: numbers by a seed, names in scopes, statements in blocks. What a statement may be,
// each generator says itself.

/** A variable of the text. */
export interface Named {
  readonly name: string;
  readonly isLet: boolean;
}

/** A whole number from 0 to below the given one. */
export type RandomNumber = (below: number) => number;

export abstract class RandomText<Local extends Named> {
  protected readonly random: RandomNumber;
  protected readonly scopes: Local[][] = [[]];
  #names = 0;

  constructor(seed: number) {
    this.random = randomFrom(seed);
  }

  protected abstract statement(depth: number): string;

  protected pick<T>(of: readonly T[]): T {
    return of[this.random(of.length)]!;
  }

  /** One of several ways, of which no other is taken. */
  protected choose<T>(of: readonly (() => T)[]): T {
    return this.pick(of)();
  }

  /** A name that the text has not had. */
  protected nameFor(prefix: string): string {
    return `${prefix}${this.#names++}`;
  }

  protected statements(depth: number, most: number): string[] {
    return Array.from({ length: 1 + this.random(most) }, () => this.statement(depth));
  }

  /** A block with a scope of its own. */
  protected block(depth: number, most: number): string {
    this.scopes.push([]);
    const inner = this.statements(depth - 1, most);
    this.scopes.pop();
    return `{\n${inner.join('\n')}\n}`;
  }
}

/** The same numbers from the same seed: a multiplicative generator with a mixed output. */
export function randomFrom(seed: number): RandomNumber {
  let state = Math.imul(seed + 1, 0x9e37_79b1) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const mixed = Math.imul(state ^ (state >>> 15), 0x85eb_ca6b);
    return ((mixed ^ (mixed >>> 13)) >>> 0) % below;
  };
}
