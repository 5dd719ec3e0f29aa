// The digits: decoded on the pool's threads, straight into page-locked memory, which all threads read.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CpuTasks, Device } from 'millrace';
import type * as cpuStages from './cpu-stages.js';
import { PIXELS, SHEET } from './shape.js';
import type { DataSet } from './train.js';

/** Sheets from this one on are for tests. */
const FIRST_TEST_SHEET = 16;

export interface Digits extends Disposable {
  readonly training: DataSet;
  readonly test: DataSet;
}

/** The first `sheets` files of the training set, and all of the test set. */
export async function readDigits(
  device: Device,
  cpu: CpuTasks<typeof cpuStages>,
  folder: string,
  sheets = FIRST_TEST_SHEET,
): Promise<Digits> {
  const labels = JSON.parse(await readFile(join(folder, 'labels.json'), 'utf8')) as Readonly<Record<string, string>>;
  const files = Object.keys(labels).toSorted();
  const read = async (names: readonly string[]): Promise<DataSet> => {
    const digits = device.pinned(names.length * SHEET * PIXELS, 'u8');
    const size = SHEET * PIXELS;
    await Promise.all(
      names.map((name, at) => cpu.run('decode', { file: join(folder, name), into: digits.data.subarray(at * size, (at + 1) * size) })),
    );
    return { digits, labels: Uint8Array.from(names.map((name) => labels[name]!).join(''), Number) };
  };
  const [training, test] = await Promise.all([read(files.slice(0, sheets)), read(files.slice(FIRST_TEST_SHEET))]);
  const dispose = (): void => {
    for (const { digits } of [training, test]) digits[Symbol.dispose]();
  };
  return { training, test, [Symbol.dispose]: dispose };
}
