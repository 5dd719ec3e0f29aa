// Which lanes take part, as the text goes on: a stack of masks, each inside the one below. Where lanes leave (a return, a
// break, an index outside an array), they are taken out of every mask up to what they leave; and where none is left, the
// text goes on behind the scope. So in every statement at least one lane takes part.

/** A mask, the statements under it, and the label behind them. */
export interface Scope {
  readonly mask: string;
  readonly label: string;
  /** Nobody is missing: what is known while the text is written. */
  isFull: boolean;
  /** Lanes have left it, and others may be there. */
  isLosing: boolean;
  /** Something goes to its label. */
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

  /** Lanes leave the scope and all that are in it. */
  leave(lanes: string, outermost: Scope): string[] {
    const from = this.#stack.indexOf(outermost);
    return this.#stack.slice(from).map((scope) => {
      scope.isFull = false;
      scope.isLosing = true;
      return `${scope.mask} = ${scope.mask} & ~${lanes};`;
    });
  }

  /** All that are here leave, up to the scope. For what follows here nothing changes: nobody comes there. */
  leaveTogether(outermost: Scope): string[] {
    const { current } = this;
    const { isFull, isLosing, mask, label } = current;
    const lines = this.leave(mask, outermost);
    Object.assign(current, { isFull, isLosing, isTarget: true });
    return [...lines, `goto ${label};`];
  }

  /** After something in which lanes may have left. */
  goOn(): string {
    const { mask, label } = this.current;
    this.current.isTarget = true;
    return `if (!mr_any(${mask})) goto ${label};`;
  }

  /** Runs something, and says whether lanes have left the current scope in it. */
  watch<T>(run: () => T): { readonly result: T; readonly hasLost: boolean } {
    const { current } = this;
    const wasLosing = current.isLosing;
    current.isLosing = false;
    const result = run();
    const hasLost = current.isLosing;
    current.isLosing ||= wasLosing;
    return { result, hasLost };
  }

  /** In what comes now, and comes again, lanes leave all of these. */
  expectLoss(): void {
    for (const scope of this.#stack) scope.isFull = false;
  }
}
