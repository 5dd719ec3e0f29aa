// Calls of a communicator that are issued together (decision 0073). While the function of a group runs, calls are checked and kept; when it has
// returned, all are issued.
// Thread: owner.
import { types } from 'node:util';
import { badArgument, show } from '../core/base/arguments.js';
import { StateError } from '../core/base/errors.js';
import { isPromiseLike } from '../core/base/promise-like.js';
import type { DeviceArray } from '../core/api/array.js';
import type { Stream } from '../core/api/stream.js';
import type { DType } from '../core/elements/dtype.js';
import type { Results } from './ranks.js';

/** What a call reads and writes, of all ranks of this process. */
export interface Uses {
  readonly name: string;
  readonly reads: readonly DeviceArray[];
  readonly writes: readonly DeviceArray[];
  readonly streams: readonly Stream[];
}

/** What a call of a group ends with, once the group is issued. */
export class Later<T> {
  #value: T | undefined = undefined;
  #state: 'collected' | 'issued' | 'dropped' = 'collected';

  get value(): T {
    if (this.#state === 'issued') return this.#value!;
    const why = this.#state === 'dropped' ? 'its group was not issued' : 'its group is not issued before the function has returned';
    throw new StateError('ERR_MILLRACE_STATE', `The call has no operations: ${why}.`);
  }

  settle(value: T): void {
    this.#value = value;
    this.#state = 'issued';
  }

  drop(): void {
    if (this.#state === 'collected') this.#state = 'dropped';
  }
}

interface Kept {
  readonly call: unknown;
  readonly later: Later<unknown>;
  readonly uses: Uses;
  /** Their timelines, which a capture replaces. */
  readonly timelines: readonly object[];
}

/** Functions of a group are synchronous, so one variable of the thread is enough. */
let open: { readonly owner: object; readonly kept: Kept[]; readonly made: DeviceArray[] } | undefined;

/** Whether calls of this communicator are kept. Throws StateError for a call of another one, and for one that has no place in a group. */
export function isGrouping(owner: object, alone?: string): boolean {
  if (open === undefined) return false;
  if (open.owner !== owner)
    throw new StateError('ERR_MILLRACE_STATE', 'A group has calls of one communicator: call the others before or after it.');
  if (alone === undefined) return true;
  throw new StateError('ERR_MILLRACE_STATE', `A group orders nothing inside, so a ${alone} has no place in it: call it before or after.`);
}

/** Keeps a call of the open group. `made`: results that are nobody's if it is not issued. Throws ArgumentError if it needs another call of the group. */
export function keep<Call, Ended>(call: Call, uses: Uses, made: readonly DeviceArray[]): Later<Ended> {
  const { kept, made: all } = open!;
  all.push(...made);
  for (const { uses: earlier } of kept) {
    const pairs = [
      [uses.reads, earlier.writes],
      [uses.writes, earlier.reads],
      [uses.writes, earlier.writes],
    ] as const;
    for (const [some, others] of pairs) {
      const array = some.find((one) => others.some((other) => mayShare(one, other)));
      if (array === undefined) continue;
      const message = `The calls of a group have no order, and both the ${earlier.name} and the ${uses.name} use ${array.label}, which one of them writes.`;
      throw badArgument('arrays', array, `${message} Make them two groups.`);
    }
  }
  const later = new Later<Ended>();
  kept.push({ call, later, uses, timelines: uses.streams.map(({ timeline }) => timeline) });
  return later;
}

/** Runs `fn`, then issues its calls together: `issue` throws before anything is submitted. Returns what `fn` returned. */
export function runGroup<R, Call, Ended>(owner: object, fn: () => R, issue: (calls: readonly Call[]) => readonly Ended[]): R {
  if (typeof fn !== 'function') throw badArgument('fn', fn, `The function given to group (${show(fn)}) is not a function.`);
  if (open !== undefined) throw new StateError('ERR_MILLRACE_STATE', 'A group cannot be in another: make all calls in one of them.');
  const why = 'a group ends when the function returns, and calls behind an `await` would not be in it';
  if (types.isAsyncFunction(fn)) throw badArgument('fn', fn, `The function given to group is async: ${why}.`);
  const group = (open = { owner, kept: [] as Kept[], made: [] as DeviceArray[] });
  let isIssued = false;
  try {
    const result = fn();
    open = undefined;
    if (isPromiseLike(result)) {
      result.then(undefined, () => undefined);
      throw badArgument('fn', fn, `The function given to group returned a promise: ${why}.`);
    }
    for (const { uses, timelines } of group.kept) {
      const disposed = [...uses.reads, ...uses.writes].find((array) => array.isDisposed);
      if (disposed !== undefined) throw disposed.disposedError();
      for (const stream of uses.streams) stream.checkOpen();
      if (uses.streams.some(({ timeline }, at) => timeline !== timelines[at]))
        throw new StateError('ERR_MILLRACE_STATE', `A capture began or ended between the ${uses.name} and the end of its group.`);
    }
    if (group.kept.length > 0) {
      const ended = issue(group.kept.map(({ call }) => call as Call));
      group.kept.forEach(({ later }, at) => later.settle(ended[at]));
    }
    isIssued = true;
    return result;
  } finally {
    open = undefined;
    if (!isIssued) {
      for (const { later } of group.kept) later.drop();
      for (const array of group.made) array[Symbol.dispose]();
    }
  }
}

/** Where a call of a group writes its results, and which of these arrays are new. */
export function resultsOf<D extends DType>({ into, root, streams, result, dtype }: Results<D>): [DeviceArray<D>[], DeviceArray<D>[]] {
  if (into !== undefined) return [[...into], []];
  const made = (root === undefined ? streams : [streams[root]!]).map((stream) => stream.empty(result, dtype));
  return [made, made];
}

/** Whether they may have bytes in common. */
export function mayShare(one: DeviceArray, other: DeviceArray): boolean {
  if (one.storage !== other.storage) return false;
  const [range, others] = [one.byteRange, other.byteRange];
  return range[0] < others[1] && others[0] < range[1];
}
