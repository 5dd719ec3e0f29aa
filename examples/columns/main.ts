// An Arrow file, batch by batch, through a device; and the same in plain JavaScript. See README.md beside this file.
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { tableToIPC } from 'apache-arrow';
import { openDevice } from 'millrace';
import { run } from '../command-line.js';
import { readOptions } from './options.js';
import { areEqual, type Engine, group, inPlainJavaScript, onDevice, tableOf, type Totals } from './totals.js';
import { readTrips, writeTrips } from './trips.js';

/** Of so many runs the best counts. */
const RUNS = 5;
const SHOWN = 5;

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  const { file, leastKm, out } = options;
  if (options.rows !== undefined) {
    await mkdir(dirname(file), { recursive: true });
    await writeTrips(file, options.rows);
    console.log(`${file} has ${options.rows} trips, ${((await stat(file)).size / 2 ** 20).toFixed(0)} MiB`);
    return 0;
  }
  await using device = await openDevice(options.device);
  await device.compile(group);
  const readingAlone: Engine = async (batches) => {
    let rows = 0;
    for await (const { zone } of batches) rows += zone.length;
    return { trips: Uint32Array.of(rows), cents: new BigUint64Array() };
  };
  const engines: readonly (readonly [name: string, engine: Engine])[] = [
    ['reading alone', readingAlone],
    ['plain JavaScript', inPlainJavaScript],
    [device.info.name, onDevice(device)],
  ];
  const times = engines.map(() => Infinity);
  const results: Totals[] = [];
  // In turns, so that what else the machine does meets all of them.
  for (let n = 0; n < RUNS; n++)
    for (const [at, [, engine]] of engines.entries()) {
      const start = performance.now();
      results[at] = await engine(readTrips(file), leastKm);
      times[at] = Math.min(times[at]!, performance.now() - start);
    }
  const gibibytes = (await stat(file)).size / 2 ** 30;
  for (const [at, [name]] of engines.entries())
    console.log(`${name.padEnd(28)} ${times[at]!.toFixed(0).padStart(7)} ms  ${((1000 * gibibytes) / times[at]!).toFixed(2)} GiB/s`);
  const [, plain, totals] = results as [Totals, Totals, Totals];
  const table = tableOf(totals);
  console.log(`${table.numRows} zones; the first ${SHOWN}:`);
  console.table(
    table
      .slice(0, SHOWN)
      .toArray()
      .map((row) => ({ ...(row as { toJSON(): object }).toJSON() })),
  );
  if (out !== undefined) await writeFile(out, tableToIPC(table, 'file'));
  if (areEqual(plain, totals)) return 0;
  process.stderr.write('The totals of the device and those of plain JavaScript differ.\n');
  return 1;
}

await run(main);
