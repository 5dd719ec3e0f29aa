// What the lessons share: a launch that is timed, a result that is compared, and a file that runs alone.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { elapsed, openDevice, UnavailableError, type Device, type DeviceSpec } from 'millrace';

export const FORMS = ['TypeScript', 'CUDA C++'] as const;
export type Form = (typeof FORMS)[number];

/** What one form of a kernel did: `ms` on the device, and the largest difference from plain JavaScript. */
export interface Outcome {
  readonly kernel: string;
  readonly form: Form;
  readonly difference: number;
  readonly ms: number;
}

/** Those that make files make them in the folder `out`. */
export type Run = (device: Device, out: string) => Promise<readonly Outcome[]>;

export const OUT = 'out/kernels';

/** Milliseconds on the device between the beginning and the end of what `submit` puts into the current stream. */
export async function timed(device: Device, submit: () => void): Promise<number> {
  using start = device.stream.record({ timing: true });
  submit();
  using end = device.stream.record({ timing: true });
  return elapsed(start, end);
}

/** Throws where an element is further from what is expected than `tolerance`. */
export function compare(
  { kernel, form, ms }: Omit<Outcome, 'difference'>,
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
): Outcome {
  if (actual.length !== expected.length) throw new Error(`${kernel}: there are ${actual.length} elements, not ${expected.length}.`);
  let difference = 0;
  for (let at = 0; at < expected.length; at++) {
    const here = Math.abs(actual[at]! - expected[at]!);
    // NaN is no difference that passes.
    if (!(here <= tolerance)) throw new Error(`${kernel}, ${form}: element ${at} is ${actual[at]}, not ${expected[at]} (+-${tolerance}).`);
    difference = Math.max(difference, here);
  }
  return { kernel, form, difference, ms };
}

export function print({ kernel, form, difference, ms }: Outcome): void {
  const largest = difference === 0 ? '0' : difference.toExponential(1);
  console.log(`${kernel.padEnd(22)} ${form.padEnd(10)}  largest difference ${largest.padStart(7)}  ${ms.toFixed(3).padStart(9)} ms`);
}

/** The same numbers between 0 and 1 in every run. */
export function someNumbers(count: number, seed = 1): Float32Array<ArrayBuffer> {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) / 2 ** 24;
  });
}

/** Runs the lessons on the device that `--device` names (auto where it names none). */
export async function perform(runs: readonly Run[], spec: string = 'auto', out: string = OUT): Promise<void> {
  try {
    await using device = await openDevice(spec as DeviceSpec);
    for (const run of runs) for (const outcome of await run(device, out)) print(outcome);
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

/** Runs one lesson if its file is the program that was started: `node saxpy.js --device cpu`. */
export async function runAlone(url: string, run: Run): Promise<void> {
  const program = process.argv[1];
  if (program === undefined || realpathSync(program) !== fileURLToPath(url)) return;
  const { values } = parseArgs({ options: { device: { type: 'string' }, out: { type: 'string' } } });
  await perform([run], values.device, values.out);
}
