// The sorts of examples/dynamic, on the CPU device, and on a GPU where there is one.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { checkWithNvcc, hasNvcc } from '../support/nvcc.js';
import { listDevices, openDevice, type DeviceName } from 'millrace';
import { mergesort, submit as submitMergesort, TILE } from '../../examples/dynamic/mergesort.js';
import { quicksort, SHORT, submit as submitQuicksort } from '../../examples/dynamic/quicksort.js';
import { someKeys, sortAndCheck } from '../../examples/dynamic/sort.js';

const PROGRAMS = path.resolve(import.meta.dirname, '../../build/js/examples/dynamic');
const README = path.resolve(import.meta.dirname, '../../examples/dynamic/README.md');
const SORTS = [
  { name: 'quicksort', kernel: quicksort, submit: submitQuicksort },
  { name: 'mergesort', kernel: mergesort, submit: submitMergesort },
] as const;
/** The first run compiles kernels. */
const RUN_MS = 60_000;

const isRequired = process.env['MILLRACE_TEST_CUDA'] === '1';
const hasGpu = (await listDevices()).some(({ id }) => id === 'cuda:0');

for (const name of ['cpu', 'cuda:0'] as const satisfies readonly DeviceName[]) {
  describe.skipIf(name === 'cuda:0' && !hasGpu && !isRequired)(`on ${name}${hasGpu ? '' : ' (skipped where there is no GPU)'}`, () => {
    test.each(SORTS)('$name sorts keys of all lengths and kinds', { timeout: 2 * RUN_MS }, async (sort) => {
      await using device = await openDevice(name);
      for (const count of [1, 2, 3, SHORT - 1, SHORT, SHORT + 1, TILE + 1, 3 * TILE, 100_003, 300_000]) {
        await sortAndCheck(device, sort, someKeys(count));
      }
      const n = 50_000;
      await sortAndCheck(device, sort, new Int32Array(n).fill(7));
      await sortAndCheck(
        device,
        sort,
        Int32Array.from({ length: n }, (_, i) => i),
      );
      await sortAndCheck(
        device,
        sort,
        Int32Array.from({ length: n }, (_, i) => -i),
      );
      await sortAndCheck(
        device,
        sort,
        Int32Array.from({ length: n }, (_, i) => (i % 3) - 1),
      );
      await sortAndCheck(
        device,
        sort,
        Int32Array.from({ length: n }, (_, i) => [2 ** 31 - 1, -(2 ** 31), 0][i % 3]!),
      );
    });

    test('a wrong key is told', async () => {
      await using device = await openDevice(name);
      await expect(sortAndCheck(device, { ...SORTS[0], submit: () => {} }, Int32Array.of(2, 1))).rejects.toThrow(/key 0 of 2 is 2, not 1/);
    });
  });
}

test('each is a program with a --count', { timeout: RUN_MS }, async () => {
  const run = promisify(execFile);
  for (const { name } of SORTS) {
    const { stdout } = await run(process.execPath, [path.join(PROGRAMS, `${name}.js`), '--device', 'cpu', '--count', '20000']);
    expect(stdout).toMatch(new RegExp(`^${name}: 20000 keys sorted on cpu:0 in \\d+\\.\\d ms, as JavaScript sorts them\\.\\n$`));
    const failed = await run(process.execPath, [path.join(PROGRAMS, `${name}.js`), '--count', '0']).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('--count (0)') as string });
    expect(await readFile(README, 'utf8')).toContain(`[${name}](${name}.ts)`);
  }
});

test.skipIf(!hasNvcc)('nvcc takes both texts (skipped where there is no nvcc)', { timeout: 2 * RUN_MS }, () =>
  checkWithNvcc(
    SORTS.map(({ kernel }) => kernel.source),
    ['-arch=sm_90'],
  ),
);
