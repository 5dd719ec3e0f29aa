// A model of what failures do: programs run call by call on plain numbers, and each element of an array is good, failed, or something that
// the rules leave open.

export const LENGTH = 64;
/** Values are below it, so that no kernel overflows. */
export const MODULUS = 1009;

/**
 * What an element is, worst last. GOOD: it has the value of the model. EITHER: it has that value, or what uses it rejects: the rules do not say
 * whether the good part of a poisoned array can be read (S605 is about arrays). OPEN: nothing is known: it came from host memory to which a
 * failed copy wrote, and code may have been told of the failure (S611). FAILED: what uses it rejects.
 */
export const [GOOD, EITHER, OPEN, FAILED] = [0, 1, 2, 3] as const;
export type State = typeof GOOD | typeof EITHER | typeof OPEN | typeof FAILED;

/** Elements of an array: the first, how many, and the distance between them. */
export interface Part {
  readonly start: number;
  readonly count: number;
  readonly stride: number;
}
export const WHOLE: Part = { start: 0, count: LENGTH, stride: 1 };

export const isWhole = ({ count }: Part): boolean => count === LENGTH;
export const indexIn = ({ start, stride }: Part, n: number): number => start + n * stride;

/** The outcome of an operation, as the model knows it. */
export interface Outcome {
  readonly state: State;
  /** The failures that it may tell of. */
  readonly roots: ReadonlySet<number>;
}

export class ModelArray {
  readonly values: Int32Array = new Int32Array(LENGTH);
  readonly states: Uint8Array = new Uint8Array(LENGTH);
  /** Failures since the whole array was overwritten last. */
  readonly roots: Set<number> = new Set();
  /** Something in it failed, or may have. */
  isTainted = false;
  /** Memory of the host. */
  readonly isHost: boolean;
  /** Code may have been told of what failed in it. */
  isOpen = false;

  constructor(isHost = false) {
    this.isHost = isHost;
  }

  copy(): ModelArray {
    const copy = new ModelArray(this.isHost);
    copy.isOpen = this.isOpen;
    copy.become(this);
    return copy;
  }

  become({ values, states, roots, isTainted }: ModelArray): void {
    this.values.set(values);
    this.states.set(states);
    this.roots.clear();
    for (const root of roots) this.roots.add(root);
    this.isTainted = isTainted;
  }

  /** Code may have been told of what failed so far, and may be told of what fails later. */
  open(): void {
    this.isOpen = true;
    for (const [n, state] of this.states.entries()) if (state === FAILED) this.states[n] = OPEN;
  }

  stateOf(part: Part): State {
    let worst: State = GOOD;
    for (let n = 0; n < part.count; n++) worst = Math.max(worst, this.states[indexIn(part, n)]!) as State;
    return worst;
  }

  valuesOf(part: Part): number[] {
    return Array.from({ length: part.count }, (_, n) => this.values[indexIn(part, n)]!);
  }

  /** An operation with this outcome may have written a part. */
  worsen(part: Part, { state, roots }: Outcome): void {
    if (state === GOOD) return;
    this.isTainted = true;
    for (const root of roots) this.roots.add(root);
    for (let n = 0; n < part.count; n++) this.states[indexIn(part, n)] = Math.max(this.states[indexIn(part, n)]!, state);
    for (let n = 0; n < LENGTH; n++) if (this.states[n] === GOOD) this.states[n] = EITHER;
  }

  /** An operation with this outcome wrote a part. `heals`: a good one clears an earlier failure if it wrote all. */
  write(part: Part, values: ArrayLike<number>, { state: given, roots }: Outcome, heals = true): void {
    // Whether a copy that failed wrote anything to host memory is not known, and JavaScript may have overwritten it.
    const isUnknown = this.isHost && given !== GOOD && (this.isOpen || given !== FAILED);
    const state = isUnknown ? OPEN : given;
    for (let n = 0; n < part.count; n++) this.values[indexIn(part, n)] = values[n]!;
    if (state === GOOD && isWhole(part) && heals) {
      this.isTainted = false;
      this.roots.clear();
    }
    if (state !== GOOD) this.isTainted = true;
    for (const root of roots) this.roots.add(root);
    const written = state === GOOD && this.isTainted ? EITHER : state;
    for (let n = 0; n < part.count; n++) this.states[indexIn(part, n)] = written;
    if (!this.isTainted || isWhole(part)) return;
    for (let n = 0; n < LENGTH; n++) if (this.states[n] === GOOD) this.states[n] = EITHER;
  }
}

export function outcomeOf(reads: readonly (readonly [ModelArray, Part])[], own?: number): Outcome {
  let state: State = own === undefined ? GOOD : FAILED;
  const roots = new Set<number>(own === undefined ? [] : [own]);
  for (const [array, part] of reads) {
    state = Math.max(state, array.stateOf(part)) as State;
    for (const root of array.roots) roots.add(root);
  }
  return { state, roots };
}

/** A read, which runs on a stream of its own: nothing orders it before a later failure that poisons another part of the array. */
export function readOf(array: ModelArray, part: Part): Outcome {
  const outcome = outcomeOf([[array, part]]);
  return outcome.state === GOOD && !isWhole(part) ? { state: EITHER, roots: new Set() } : outcome;
}

/** A copy. */
export function copyInModel(to: ModelArray, part: Part, from: ModelArray, fromPart: Part): Outcome {
  const outcome = outcomeOf([[from, fromPart]]);
  to.write(part, from.valuesOf(fromPart), outcome);
  return outcome;
}

/** Kernels by what they do to the elements. `by` is what makes them fail: 0 does not. */
export const KERNEL_NAMES = ['add', 'mix', 'bump', 'pick', 'shift', 'gather', 'split', 'plain', 'claim', 'half', 'some', 'stale'] as const;
export type KernelName = (typeof KERNEL_NAMES)[number];

interface KernelModel {
  readonly reads: readonly ('x' | 'y' | 'z')[];
  readonly writes: readonly ('y' | 'z')[];
  /** The new value of an element of each written array. */
  readonly values: (x: number, y: number, z: number, k: number) => readonly number[];
}
export const KERNEL_MODELS: Readonly<Record<KernelName, KernelModel>> = {
  add: { reads: ['x'], writes: ['y'], values: (x, _y, _z, k) => [(x * 3 + k) % MODULUS] },
  mix: { reads: ['x', 'y'], writes: ['y'], values: (x, y, _z, k) => [(y * 5 + x + k) % MODULUS] },
  plain: { reads: ['x', 'y'], writes: ['y'], values: (x, y, _z, k) => [(y * 3 + x * 2 + k) % MODULUS] },
  bump: { reads: ['y'], writes: ['y'], values: (_x, y, _z, k) => [(y + k) % MODULUS] },
  pick: { reads: ['x'], writes: ['y'], values: (x, _y, _z, k) => [(x + k) % MODULUS] },
  shift: { reads: ['y'], writes: ['y'], values: (_x, y, _z, k) => [(y * 7 + k) % MODULUS] },
  claim: { reads: ['x'], writes: ['y'], values: (x, _y, _z, k) => [(x * 2 + k) % MODULUS] },
  half: { reads: ['x'], writes: ['y'], values: (x, _y, _z, k) => [(x * 13 + k) % MODULUS] },
  some: { reads: ['x'], writes: ['y'], values: (x, _y, _z, k) => [(x * 17 + k) % MODULUS] },
  stale: { reads: ['x', 'y'], writes: ['y'], values: (x, y, _z, k) => [(y * 19 + x + k) % MODULUS] },
  gather: { reads: ['x', 'z'], writes: ['y'], values: (x, _y, _z, k) => [(x + k) % MODULUS] },
  split: { reads: ['x'], writes: ['y', 'z'], values: (x, _y, _z, k) => [(x + k) % MODULUS, (x * 11 + k) % MODULUS] },
};

/** The arguments of a kernel in a program: all arrays have the same part. */
export interface KernelCall {
  readonly name: KernelName;
  readonly x: number;
  readonly y: number;
  readonly z: number;
  readonly part: Part;
  readonly k: number;
  /** It fails; a gather fails if one of its indices is at least `limit`. */
  readonly isBad: boolean;
  readonly limit: number;
  /** In a graph: its index is a parameter, which is 0 where it does not fail. */
  readonly hasSlotIndex?: boolean;
}

/** What the threads of a call use of the part that its arrays have. */
export function usedPart({ name, part }: KernelCall): Part {
  return name === 'half' || name === 'some' ? { ...part, count: Math.ceil(part.count / 2) } : part;
}

/** Runs a kernel on model arrays. `root` names its own failure. */
export function runKernel(call: KernelCall, of: (which: number) => ModelArray, root: number, heals = true): Outcome {
  const { reads, writes, values } = KERNEL_MODELS[call.name];
  const [x, y, z] = [call.x, call.y, call.z].map((which) => of(which)) as [ModelArray, ModelArray, ModelArray];
  const arrays = { x, y, z };
  const part = usedPart(call);
  const fails = call.name === 'gather' ? z.valuesOf(part).some((index) => index >= call.limit) : call.isBad && canFail(call.name);
  let outcome = outcomeOf(
    reads.map((name) => [arrays[name], part] as const),
    fails ? root : undefined,
  );
  // Whether it fails depends on values that are not known.
  if (
    call.name === 'gather' &&
    z.stateOf(part) === OPEN &&
    outcomeOf([
      [x, part],
      [z, part],
    ]).state !== FAILED
  ) {
    outcome = { state: OPEN, roots: new Set([...outcome.roots, root]) };
  }
  const results = writes.map(() => new Int32Array(part.count));
  for (let n = 0; n < part.count; n++) {
    const from = call.name === 'pick' ? (call.hasSlotIndex ? 0 : call.k % part.count) : n;
    const at = (array: ModelArray): number => array.values[indexIn(part, from)]!;
    for (const [which, value] of values(at(x), at(y), at(z), call.k).entries()) results[which]![n] = value;
  }
  for (const [which, name] of writes.entries()) arrays[name].write(part, results[which]!, outcome, heals);
  return outcome;
}

export const canFail = (name: KernelName): boolean =>
  name === 'pick' || name === 'claim' || name === 'shift' || name === 'split' || name === 'gather';

/** The arrays that a kernel uses, by place. */
export function usesOf({ name, x, y, z }: KernelCall): { readonly reads: readonly number[]; readonly writes: readonly number[] } {
  const places = { x, y, z };
  const { reads, writes } = KERNEL_MODELS[name];
  return { reads: reads.map((which) => places[which]), writes: writes.map((which) => places[which]) };
}
