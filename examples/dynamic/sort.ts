// What the sorting programs share: options, keys, and the comparison with the sorting of a typed array.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { elapsed, openDevice, UnavailableError, type Device, type DeviceArray, type DeviceSpec, type Kernel } from 'millrace';

const COUNT = 10_000_000;
/** What an i32 can index, with room for the kernels' arithmetic. */
const MAX_COUNT = 2 ** 30;

export interface Sort {
  readonly name: string;
  readonly kernel: Kernel;
  readonly submit: (device: Device, keys: DeviceArray<'i32'>) => void;
}

/** The same keys in every run, over the whole range of an i32. */
export function someKeys(count: number, seed = 1): Int32Array<ArrayBuffer> {
  let state = seed;
  return Int32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return state ^ (state >>> 15);
  });
}

/** Sorts on the device and compares with JavaScript. Throws at the first key that differs; gives milliseconds on the device. */
export async function sortAndCheck(device: Device, { name, kernel, submit }: Sort, given: Int32Array<ArrayBuffer>): Promise<number> {
  await device.compile(kernel);
  using keys = device.from(given);
  using start = device.stream.record({ timing: true });
  submit(device, keys);
  using end = device.stream.record({ timing: true });
  const sorted = await keys.read();
  const expected = given.toSorted();
  const wrong = expected.findIndex((key, at) => key !== sorted[at]);
  if (wrong >= 0) throw new Error(`${name}: key ${wrong} of ${given.length} is ${sorted[wrong]}, not ${expected[wrong]}.`);
  return elapsed(start, end);
}

/** Runs the program if its file is the one that was started: `node quicksort.js --device cpu --count 100000`. */
export async function runAlone(url: string, sort: Sort): Promise<void> {
  const program = process.argv[1];
  if (program === undefined || realpathSync(program) !== fileURLToPath(url)) return;
  const { values } = parseArgs({
    options: { device: { type: 'string', default: 'auto' }, count: { type: 'string', default: String(COUNT) } },
  });
  const count = Number(values.count);
  if (!Number.isInteger(count) || count < 1 || count > MAX_COUNT) {
    process.stderr.write(`--count (${values.count}) is a whole number from 1 to ${MAX_COUNT}.\n`);
    process.exitCode = 1;
    return;
  }
  try {
    await using device = await openDevice(values.device as DeviceSpec);
    const ms = await sortAndCheck(device, sort, someKeys(count));
    console.log(`${sort.name}: ${count} keys sorted on ${device.info.id} in ${ms.toFixed(1)} ms, as JavaScript sorts them.`);
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
