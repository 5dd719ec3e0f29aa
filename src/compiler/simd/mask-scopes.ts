// Tracks the active lanes during emission: a stack of masks, each a subset of the one below. Lanes that leave (a return, a break, an index
// out of bounds) are removed from every mask up to the scope that they leave; if none is left, control jumps behind the scope. So every
// statement runs with at least one active lane.

/** A mask, the statements under it, and the label behind them. */
export interface Scope {
  readonly mask: string;
  readonly label: string;
  /** Whether every lane is known to be active at the current point of emission. */
  isFull: boolean;
  /** Whether lanes have left the scope while others may be active. */
  isLosing: boolean;
  /** Whether some jump targets the label. */
  isTarget: boolean;
}

export class Scopes {
  readonly #stack: Scope[] = [];
  #count = 0;

  get current(): Scope {
    return this.#stack.at(-1)!;
  }
  get all(): readonly Scope[] {
    return this.#stack;
  }

  make(isFull: boolean): Scope {
    const number = this.#count++;
    return { mask: `mr_m${number}`, label: `mr_end_${number}`, isFull, isLosing: false, isTarget: false };
  }

  within<T>(scope: Scope, run: () => T): T {
    this.#stack.push(scope);
    const result = run();
    this.#stack.pop();
    return result;
  }

  /** Removes lanes from the scope and from all scopes inside it. */
  leave(lanes: string, outermost: Scope): string[] {
    const from = this.#stack.indexOf(outermost);
    return this.#stack.slice(from).map((scope) => {
      scope.isFull = false;
      scope.isLosing = true;
      return `${scope.mask} = ${scope.mask} & ~${lanes};`;
    });
  }

  /** All active lanes leave, up to the scope. The emitter's state stays, since the code behind this is unreachable. */
  leaveTogether(outermost: Scope): string[] {
    const { current } = this;
    const { isFull, isLosing, mask, label } = current;
    const lines = this.leave(mask, outermost);
    Object.assign(current, { isFull, isLosing, isTarget: true });
    return [...lines, `goto ${label};`];
  }

  /** Emitted after code in which lanes may have left: jumps behind the scope if none is left. */
  goOn(): string {
    const { mask, label } = this.current;
    this.current.isTarget = true;
    return `if (!mr_any(${mask})) goto ${label};`;
  }

  /** Runs an emission, and reports whether lanes left the current scope in it. */
  watch<T>(run: () => T): { readonly result: T; readonly hasLost: boolean } {
    const { current } = this;
    const wasLosing = current.isLosing;
    current.isLosing = false;
    const result = run();
    const hasLost = current.isLosing;
    current.isLosing ||= wasLosing;
    return { result, hasLost };
  }

  /** Before the emission of a loop in which lanes leave: later iterations start without them, so no scope is full. */
  expectLoss(): void {
    for (const scope of this.#stack) scope.isFull = false;
  }
}
