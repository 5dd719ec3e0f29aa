// The arrays that the library makes for its caller, by the scope or the `tidy` that disposes them: one list for each. An array that the
// library makes for itself, or for the item of a lane, never comes here.
//
// The list of a call of `tidy`, which is synchronous, is a variable of the thread. That of a scope is in the values of its run
// (current-stream.ts), which reach over awaits. The innermost of the two gets the array.
// Thread: owner.
import type { Storage } from '../memory/storage.js';
import type { Device } from './device.js';
import { madeInRun, runMaking } from './current-stream.js';

/** A device array or a pinned one. */
export interface MadeArray extends Disposable {
  readonly storage: Storage;
  readonly isDisposed: boolean;
}

/** Arrays that the program has disposed itself leave a list when it has grown by so many, or to twice its size. */
const MORE = 64;

export class MadeArrays {
  /** How messages name it: 'the scope step'. */
  readonly name: string;
  /** What says how an array outlives it. */
  readonly remedy: string;
  /** Gets the arrays that this one does not dispose. */
  readonly outer: MadeArrays | undefined;
  hasEnded = false;
  #arrays: MadeArray[] = [];
  #most = MORE;

  constructor(name: string, remedy: string) {
    this.name = name;
    this.remedy = remedy;
    this.outer = innermost();
  }

  add(array: MadeArray): void {
    if (this.#arrays.push(array) < this.#most) return;
    this.#arrays = this.#arrays.filter(({ isDisposed }) => !isDisposed);
    this.#most = Math.max(this.#arrays.length * 2, MORE);
  }

  /** Leaves these, and what they are views of, to the enclosing list or to the caller. Returns those that are not of this list. */
  keep(arrays: readonly MadeArray[]): readonly MadeArray[] {
    if (arrays.length === 0) return arrays;
    const kept = new Set(arrays.map(({ storage }) => storage));
    const found: Set<Storage> = new Set();
    const outer = open(this.outer);
    this.#arrays = this.#arrays.filter((array) => {
      if (!kept.has(array.storage)) return true;
      found.add(array.storage);
      outer?.add(array);
      return false;
    });
    return arrays.filter(({ storage }) => !found.has(storage));
  }

  /** Disposes the arrays. */
  end(): void {
    this.hasEnded = true;
    for (const array of this.#arrays.splice(0)) {
      if (array.isDisposed) continue;
      array.storage.endedBy = this;
      array[Symbol.dispose]();
    }
  }
}

let ofCall: MadeArrays | undefined;

/** What is made after the end of a list, by code that nothing awaited, is for the enclosing one. */
function open(made: MadeArrays | undefined): MadeArrays | undefined {
  let at = made;
  while (at?.hasEnded === true) at = at.outer;
  return at;
}

function innermost(): MadeArrays | undefined {
  return open(ofCall ?? madeInRun());
}

/** Every array that the library makes for its caller passes here. */
export function noted<A extends MadeArray>(array: A): A {
  innermost()?.add(array);
  return array;
}

/** Calls `fn`, which makes its arrays before it returns: they are of this list. */
export function making<T>(made: MadeArrays, fn: () => T): T {
  const outer = ofCall;
  ofCall = made;
  try {
    return fn();
  } finally {
    ofCall = outer;
  }
}

/** Calls `fn`: the arrays that it and what it awaits make are of this list. */
export function makingOver<T>(made: MadeArrays, device: Device, fn: () => T): T {
  const outer = ofCall;
  ofCall = undefined;
  try {
    return runMaking(made, device, fn);
  } finally {
    ofCall = outer;
  }
}
