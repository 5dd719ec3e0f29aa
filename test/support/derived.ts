// What the tests of derived failures share: kernels, a race that is repeated, and which errors tell of which failure.
import { BoundsError, f32, i32, inout, input, kernel, output, UpstreamError } from 'millrace';
import type { Device, DeviceArray, In, InOut, Kernel, MillraceError, Operation, Out, Scalar, Stream } from 'millrace';
import { IS_LONG } from './long.js';

/** Elements of the arrays: enough blocks for a kernel to run a while. */
export const LENGTH = 1024;
/** A race that shows in a few runs of a hundred is found: by the long form at once, by the short form on one of its targets. */
export const TIMES: number = IS_LONG ? 100 : 20;

/** y[i] = x[at]: a BoundsError of index `at`, known only after the kernel has run. */
export const pick: Kernel<{ x: In<'f32'>; at: Scalar<'i32'>; y: Out<'f32'> }> = kernel(
  'pick',
  { x: input(f32), at: i32, y: output(f32) },
  ({ x, at, y }, { i }) => {
    y[i] = x[at]!;
  },
);
export const plus: Kernel<{ y: In<'f32'>; z: Out<'f32'> }> = kernel('plus', { y: input(f32), z: output(f32) }, ({ y, z }, { i }) => {
  z[i] = y[i]! + 1;
});
export const plusHere: Kernel<{ x: InOut<'f32'> }> = kernel('plus_here', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i]! + 1;
});
/** Fails in place if `at` is outside. */
export const spoil: Kernel<{ x: InOut<'f32'>; at: Scalar<'i32'> }> = kernel('spoil', { x: inout(f32), at: i32 }, ({ x, at }, { i }) => {
  x[i] = x[at]! + x[i]!;
});
export const isPositive: Kernel<{ x: In<'f32'>; flag: Out<'i32'> }> = kernel(
  'is_positive',
  { x: input(f32), flag: output(i32) },
  ({ x, flag }, { i }) => {
    if (i === 0) flag[0] = x[0]! > 0 ? 1 : 0;
  },
);

export const KERNELS: readonly Kernel[] = [pick, plus, plusHere, spoil, isPositive] as unknown as Kernel[];

/** Undefined if the error tells of the failed `pick` with this index; else what it tells. */
export function otherThan(at: number, error: unknown): string | undefined {
  const first = error instanceof UpstreamError ? error.cause : error;
  if (!(first instanceof BoundsError)) return `${String(error)}, cause ${String((error as Error | undefined)?.cause)}`;
  return first.index === at ? undefined : `the failure of index ${first.index}, not ${at}`;
}

/** What a promise settled with, where it should have told of the failure of index `at`. */
export async function leakOf(at: number, name: string, promise: PromiseLike<unknown>): Promise<string | undefined> {
  try {
    const value = await promise;
    const shown = ArrayBuffer.isView(value) ? `${value.constructor.name} [${String((value as Float32Array)[0])}, ...]` : String(value);
    return `${name} fulfilled: ${shown}`;
  } catch (error) {
    const other = otherThan(at, error);
    return other && `${name} rejected with ${other}`;
  }
}

/** The arrays and streams of one repeated case. */
export interface Derived {
  readonly device: Device;
  /** Streams of the case: tracked. */
  readonly streams: readonly Stream[];
  readonly explicit: readonly Stream[];
  readonly x: DeviceArray<'f32'>;
  readonly y: DeviceArray<'f32'>;
  readonly z: DeviceArray<'f32'>;
  readonly w: DeviceArray<'f32'>;
}

/** The promises of one run, by name: all must reject because of the failure. */
export type Takes = Readonly<Record<string, PromiseLike<unknown> | Operation>>;

const promiseOf = (taken: PromiseLike<unknown> | Operation): PromiseLike<unknown> => ('done' in taken ? taken.done : taken);

/**
 * Runs a case `times` times. Each run gets an index of its own for its failing kernel, and returns what must reject with that failure. Before
 * each run every array is overwritten with good values, and after a run `y`, `z` and `w` are overwritten and must be good. Returns what leaked,
 * each with how often.
 */
export async function leaksOf(
  given: Derived,
  once: (given: Derived, at: number) => Takes | Promise<Takes>,
  times: number = TIMES,
): Promise<Record<string, number>> {
  const { device, x, y, z, w } = given;
  await device.compile(...KERNELS);
  const leaks: Record<string, number> = {};
  const note = (leak: string | undefined): void => {
    if (leak !== undefined) leaks[leak] = (leaks[leak] ?? 0) + 1;
  };
  for (let n = 0; n < times; n++) {
    const { stream } = device;
    stream.fill(x, 3);
    for (const array of [y, z, w]) stream.fill(array, -7);
    for (const one of given.explicit) one.waitStream(stream);
    const takes = Object.entries(await once(given, 5000 + n));
    for (const leak of await Promise.all(takes.map(([name, taken]) => leakOf(5000 + n, name, promiseOf(taken))))) note(leak);
    // Overwritten whole, they are good again.
    for (const array of [y, z]) stream.fill(array, n);
    stream.copy(w, z);
    const all = Object.entries({ x, y, z, w });
    const reads = await Promise.allSettled(all.map(([, array]) => array.read()));
    for (const [at, read] of reads.entries()) {
      const name = all[at]![0];
      const value = name === 'x' ? 3 : n;
      if (read.status === 'rejected') note(`${name} was not healed: ${String(read.reason)}`);
      else if (!read.value.every((one) => one === value)) note(`${name} is not ${value} everywhere after it was overwritten`);
    }
  }
  return leaks;
}

export async function withDerived<R>(device: Device, body: (given: Derived) => Promise<R>): Promise<R> {
  const make = (): DeviceArray<'f32'> => device.zeros(LENGTH);
  const streams = Array.from({ length: 3 }, () => device.createStream());
  const explicit = Array.from({ length: 3 }, () => device.createStream({ ordering: 'explicit' }));
  const given: Derived = { device, streams, explicit, x: make(), y: make(), z: make(), w: make() };
  // Failures that nobody awaits are expected here.
  const errors = device.errors$.subscribe((_error: MillraceError) => undefined);
  try {
    return await body(given);
  } finally {
    await Promise.all([...streams, ...explicit].map((stream) => stream.close()));
    for (const name of ['x', 'y', 'z', 'w'] as const) given[name][Symbol.dispose]();
    errors.unsubscribe();
  }
}
