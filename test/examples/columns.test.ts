// The columns example: the totals of the device are those of plain JavaScript, whatever the sizes of the batches, and the table is an Arrow file.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tableFromArrays, tableFromIPC, tableToIPC } from 'apache-arrow';
import { afterAll, expect, test } from 'vitest';
import { openDevice } from 'millrace';
import { readOptions } from '../../examples/columns/options.js';
import { areEqual, inPlainJavaScript, onDevice, type Totals } from '../../examples/columns/totals.js';
import { BATCH_ROWS, readTrips, type Trips, writeTrips, ZONES } from '../../examples/columns/trips.js';

const MAIN = fileURLToPath(new URL('../../build/js/examples/columns/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'millrace-columns-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function* of(...batches: readonly Trips[]): AsyncGenerator<Trips> {
  yield* batches;
}

/** Trips of a few rows, whose totals one can see. */
const few = (zone: readonly number[], km: readonly number[], cents: readonly number[]): Trips => ({
  zone: Uint8Array.from(zone),
  km: Float32Array.from(km),
  cents: Uint32Array.from(cents),
});

test('the device has the totals of plain JavaScript', { timeout: 60_000 }, async () => {
  await using device = await openDevice('cpu');
  const small = [few([0, 255, 0, 7], [2, 5, 1.9, 2.1], [2 ** 32 - 1, 10, 3, 4]), few([], [], []), few([0], [3], [2 ** 32 - 1])];
  for (const engine of [onDevice(device), inPlainJavaScript]) {
    const { trips, cents } = await engine(of(...small), 2);
    expect([trips[0], trips[7], trips[255], trips.reduce((sum, one) => sum + one)]).toEqual([2, 1, 1, 4]);
    expect([cents[0], cents[7], cents[255]]).toEqual([2n * (2n ** 32n - 1n), 4n, 10n]);
  }
  // Two batches, the last one of a length that no block divides.
  const rows = BATCH_ROWS + 12_345;
  const file = join(folder, 'trips.arrow');
  await writeTrips(file, rows);
  let read = 0;
  for await (const { km } of readTrips(file)) read += km.length;
  expect(read).toBe(rows);
  const all = await onDevice(device)(readTrips(file), 0);
  expect(all.trips.reduce((sum, one) => sum + one)).toBe(rows);
  const long = await onDevice(device)(readTrips(file), 2.1);
  const plain: Totals = await inPlainJavaScript(readTrips(file), 2.1);
  expect(areEqual(long, plain)).toBe(true);
  expect(areEqual(long, all)).toBe(false);
  expect(long.trips.filter((count) => count > 0).length).toBe(ZONES);
});

test('the program writes the table, and refuses what it cannot read in one line', { timeout: 60_000 }, async () => {
  const run = (...args: readonly string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string } =>
    spawnSync(process.execPath, [MAIN, '--device', 'cpu', ...args], { encoding: 'utf8' });
  const [file, out] = [join(folder, 'few.arrow'), join(folder, 'totals.arrow')];
  await writeTrips(file, 1000);
  expect(run('--file', file, '--out', out)).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('plain JavaScript') });
  const table = tableFromIPC(readFileSync(out));
  expect(table.schema.names).toEqual(['zone', 'trips', 'euros']);
  const expected = await inPlainJavaScript(readTrips(file), 2);
  expect(
    Number(
      table
        .getChild('trips')!
        .toArray()
        .reduce((sum: number, one: number) => sum + one, 0),
    ),
  ).toBe(expected.trips.reduce((sum, one) => sum + one));
  const other = join(folder, 'other.arrow');
  writeFileSync(other, tableToIPC(tableFromArrays({ zone: Float64Array.of(1) }), 'file'));
  await expect(readTrips(other).next()).rejects.toThrow(/Column zone of .* is of type Float64, not Uint8/);
  await expect(readTrips(join(folder, 'none')).next()).rejects.toThrow(/cannot be read/);
  expect(() => readOptions(['--least-km', 'far'])).toThrow(/--least-km far/);
  expect(() => readOptions(['--rows', '0'])).toThrow(/--rows 0/);
});
