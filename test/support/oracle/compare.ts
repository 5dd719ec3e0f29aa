// One random kernel on a device, and what of it is not as the interpreter says.
import { BoundsError, LaunchError } from 'millrace';
import type { Device, DeviceArray, Kernel, Operation, PinnedArray } from 'millrace';
import { hold } from '../latch.js';
import type { Target } from '../target.js';
import { type Decided, type Outcome, writtenBy } from './cases.js';
import { ASSERTION, type Fault } from './interpreter.js';
import type { Memory } from './memory.js';
import { launchShapeOf } from './plans.js';
import { allowedUlps, INEXACT, ulpsBetween } from './tolerance.js';
import { MATHS, SHARED_BYTES } from './typed-kernel.js';

const FUNCTIONS = Object.keys(INEXACT);

/** Runs the kernel and looks at all that it wrote, also where threads stopped: that poisons the arrays, but not memory. */
export async function differenceOn(
  target: Target,
  device: Device,
  { one, data, outcome }: Decided,
  made: Kernel = one.made,
): Promise<string | undefined> {
  const { stream } = device;
  const { plan } = one.text;
  const written = writtenBy(plan);
  const arrays = Object.fromEntries(
    Object.entries(data.arrays).map(([name, { data: values, shape, dtype }]) => [
      name,
      device.from(values as never, { dtype, shape: shape as never }),
    ]),
  ) as Record<string, DeviceArray>;
  const results = written.map((name) => device.pinned(arrays[name]!.shape as never, arrays[name]!.dtype) as PinnedArray);
  const copied = (): Operation[] => written.map((name, at) => stream.copy(results[at]!, arrays[name]!));
  // Their pages are locked by the first.
  await Promise.all(copied().map(({ done }) => done));
  // The bytes of poisoned arrays arrive where they are asked for before anybody knows of the failure.
  const latch = outcome.faults.length > 0 ? await hold(target, stream) : undefined;
  const launch = stream.launch(made, launchShapeOf(plan, SHARED_BYTES), { ...arrays, ...data.scalars } as never);
  const copies = copied();
  launch.done.catch(() => undefined);
  const ended = Promise.allSettled(copies.map(({ done }) => done));
  latch?.open();
  await ended;
  await stream.record().done;
  const difference =
    (await endOf(launch, outcome.faults)) ??
    written
      .map((name, at) => arrayDifference(name, results[at]!.data as unknown as Memory, outcome, target))
      .find((found) => found !== undefined);
  await latch?.[Symbol.asyncDispose]();
  for (const array of [...Object.values(arrays), ...results]) array[Symbol.dispose]();
  return difference;
}

/** The launch ends as the interpreter says: with one of the faults, if there are any. */
async function endOf(launch: Operation, faults: readonly Fault[]): Promise<string | undefined> {
  const error = await launch.done.then(
    () => undefined,
    (reason: Error) => reason,
  );
  if (error === undefined) return faults.length === 0 ? undefined : 'no thread stops';
  if (faults.length === 0 || !(error instanceof LaunchError)) return `it fails: ${error.message}`;
  const isOfThread = error instanceof BoundsError ? isOneOf(error, faults) : faults.some(({ array }) => array === ASSERTION);
  return isOfThread ? undefined : `no thread stops for this: ${error.message}`;
}

function isOneOf(error: BoundsError, faults: readonly Fault[]): boolean {
  const shown = ({ array, dimension, index, limit, block, thread }: Fault): string =>
    [array, dimension, index, limit, block, thread].join(' ');
  return faults.map(shown).includes(shown(error));
}

/** Bit by bit, or within what is stated of the function that gave the element. */
function arrayDifference(name: string, own: Memory, { arrays }: Outcome, target: Target): string | undefined {
  const wanted = arrays[name]!;
  const maths = MATHS.find(([values]) => values === name);
  const marks = maths && arrays[maths[2]];
  for (let at = 0; at < wanted.length; at++) {
    if (isSame(own[at]!, wanted[at]!)) continue;
    const by = marks && FUNCTIONS[Number(marks[at]) - 1];
    const allowed = by === undefined ? 0 : allowedUlps(by, maths![1], target);
    const ulps = maths ? ulpsBetween(maths[1], Number(own[at]), Number(wanted[at])) : Number.POSITIVE_INFINITY;
    if (ulps > allowed) return `${name}[${at}] is ${own[at]}, not ${wanted[at]} (${by ?? 'exact'}, ${ulps} ulp)`;
  }
  return undefined;
}

export function isSame(a: number | bigint, b: number | bigint): boolean {
  return Object.is(a, b);
}
