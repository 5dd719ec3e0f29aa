// A scope: the arrays that are made in it are disposed at its end.
// Thread: owner.
import { badArgument, refuseSurplus, show } from '../base/arguments.js';
import { callSite } from '../base/call-site.js';
import { describeAs } from '../base/describe.js';
import { StateError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-names.js';
import { isPromiseLike } from '../base/promise-like.js';
import type { DType, DTypeLike } from '../elements/dtype.js';
import type { Shape } from '../elements/shape.js';
import { DeviceArray } from './array.js';
import { ArrayFactory } from './array-factory.js';
import type { Device } from './device.js';
import { type MadeArray, MadeArrays, makingOver } from './made-arrays.js';
import { PinnedArray } from './pinned.js';
import type { Stream } from './stream.js';

/** Options of `device.scope`. */
export interface ScopeOptions {
  /** The name in messages. Default the place of the call. */
  readonly label?: string;
}

/**
 * Owns arrays until its end: `tf.tidy` and `tf.keep`, CuPy's `using_allocator` around one memory pool, Warp's `ScopedX` classes for what they set. It
 * owns the arrays that its own factories make, the results of operations with `{ stream: scope }`, and every array that a function of
 * `run` makes, also behind an `await`. At its end, `using` or the end of the function of `device.scope(fn)`, each of them is disposed: its
 * memory is freed in stream order, after every operation that was submitted before. Nothing waits. A later use is a StateError that names
 * the scope. Textures, streams, events and graphs are not of a scope, and a graph keeps the memory that it uses.
 * @example
 * using scope = device.scope(); // `await using` does the same
 * const x = scope.from(samples);
 * const y = add(multiply(x, x, { stream: scope }), 8, { stream: scope });
 * console.log(await y.read());
 */
export class Scope extends ArrayFactory implements Disposable, AsyncDisposable {
  /** The name in messages. */
  readonly label: string;
  /** The device that opened it, and that `run` makes the default one. */
  readonly device: Device;
  readonly #made: MadeArrays;

  /** @internal Made by `device.scope`. */
  constructor(device: Device, opts: ScopeOptions = {}) {
    super();
    checkOptionNames(opts, ['label']);
    this.label = labelOf(opts.label) ?? `of ${callSite()}`;
    this.device = device;
    this.#made = new MadeArrays(`the scope ${this.label}`, 'scope.keep(array) keeps it');
  }

  /** The current stream of the device, on which the scope makes its arrays. */
  get stream(): Stream {
    return this.device.stream;
  }

  /** Whether the scope has ended. */
  get isDisposed(): boolean {
    return this.#made.hasEnded;
  }

  /** @internal */
  protected get target(): Stream {
    this.#checkOpen();
    return this.stream;
  }

  /** @internal */
  protected override own<A extends DeviceArray>(array: A): A {
    this.#made.add(array);
    return array;
  }

  /** Page-locked host memory of the scope, f32 unless `dtype` is given; contents undefined. Throws as `device.pinned` does. */
  pinned(shape: Shape): PinnedArray<'f32'>;
  pinned<D extends DType>(shape: Shape, dtype: DTypeLike<D>): PinnedArray<D>;
  pinned<D extends DType>(shape: Shape, dtype?: DTypeLike<D>): PinnedArray<D> {
    if (arguments.length > 2) refuseSurplus('pinned', arguments, 2);
    this.#checkOpen();
    const array = this.device.makePinned(shape, dtype);
    this.#made.add(array);
    return array;
  }

  /**
   * Calls `fn` with the device as the default one, as `device.run` does: arrays that `fn` and what it awaits make, on any device, are of the
   * scope. Returns what `fn` returns, and ends nothing. Lanes keep the arrays of their items. Throws ArgumentError if `fn` is not a
   * function, StateError after the end.
   */
  run<T>(fn: () => T): T {
    if (arguments.length > 1) refuseSurplus('run', arguments, 1);
    this.#checkOpen();
    if (typeof fn !== 'function') throw badArgument('fn', fn, `The function to run (${show(fn)}) is not a function.`);
    return makingOver(this.#made, this.device, fn);
  }

  /**
   * Removes arrays from the scope: an array, a view (with what it is a view of), or a list or plain object with some, whose getters are not called. They belong to the
   * scope or `tidy` that encloses this one, else to the caller, who disposes them. Returns its argument: `tf.keep`. Throws ArgumentError for
   * an array that is not of this scope, StateError after the end.
   * @example const best = scope.keep(argmax(scores, { stream: scope }));
   */
  keep<T>(value: T): T {
    if (arguments.length > 1) refuseSurplus('keep', arguments, 1);
    this.#checkOpen();
    const arrays = arraysIn(value);
    if (arrays.length === 0) throw badArgument('value', value, `The value to keep (${show(value)}) is no array, and has none in it.`);
    const [stranger] = this.#made.keep(arrays);
    if (stranger === undefined) return value;
    const { description } = stranger.storage;
    const message = `The array to keep, ${description}, is not of the scope ${this.label}: it was not made there, or was kept or disposed before.`;
    throw badArgument('value', value, message);
  }

  /** Disposes the arrays of the scope. Doing it again does nothing. Never throws. */
  [Symbol.dispose](): void {
    this.#made.end();
  }

  /** The same, for `await using`. Resolves at once. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#made.end();
    return Promise.resolve();
  }

  /** @internal `device.scope(fn)`. */
  within<T>(fn: (scope: Scope) => T): T {
    if (typeof fn !== 'function') throw badArgument('fn', fn, `The function of the scope (${show(fn)}) is not a function.`);
    const leave = <V>(value: V): V => {
      this.#made.keep(arraysIn(value));
      this.#made.end();
      return value;
    };
    let result: T;
    try {
      result = makingOver(this.#made, this.device, () => fn(this));
    } catch (error) {
      this.#made.end();
      throw error;
    }
    if (!isPromiseLike(result)) return leave(result);
    return result.then(leave, (error: unknown) => {
      this.#made.end();
      throw error;
    }) as T;
  }

  #checkOpen(): void {
    if (!this.#made.hasEnded) return;
    const message = `The scope ${this.label} has ended.`;
    throw new StateError('ERR_MILLRACE_STATE', message, { device: this.device.info.id });
  }
}

function labelOf(label: unknown): string | undefined {
  if (label === undefined || typeof label === 'string') return label;
  throw badArgument('label', label, `The label of a scope (${show(label)}) is not a string.`);
}

/** The arrays in a value: itself, or those in lists and plain objects. Getters are not called: that of a promise would leave its rejection to nobody. */
export function arraysIn(value: unknown): readonly MadeArray[] {
  const found: MadeArray[] = [];
  const seen: Set<unknown> = new Set([value]);
  // Iterating a Set also visits the values that the loop adds.
  for (const one of seen) {
    if (one instanceof DeviceArray || one instanceof PinnedArray) found.push(one);
    else for (const member of membersOf(one)) if (typeof member === 'object' && member !== null) seen.add(member);
  }
  return found;
}

function membersOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (typeof value !== 'object' || value === null) return [];
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return [];
  const properties = Object.values(Object.getOwnPropertyDescriptors(value));
  return properties.filter(({ enumerable }) => enumerable).map((property): unknown => property.value);
}

describeAs(
  Scope.prototype,
  ({ label, isDisposed }) => `Scope ${label}${isDisposed ? ' (ended)' : ''}`,
  ({ label, device, isDisposed }) => ({ label, device: device.info.id, isDisposed }),
);
