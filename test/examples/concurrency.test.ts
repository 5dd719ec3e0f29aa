// The programs of examples/concurrency, each on the CPU device or on two of them, and on GPUs where there are any.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CPU_DEVICES } from '../support/two-cpu-devices.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listDevices, openDevice, type Device, type DeviceName } from 'millrace';
import { PROGRAMS } from '../../examples/concurrency/catalog.js';

const FOLDER = path.resolve(import.meta.dirname, '../../examples/concurrency');
const PARTS = new Set(['catalog.ts', 'kernels.ts', 'main.ts']);
/** The first run compiles kernels. */
const RUN_MS = 60_000;

const gpus = (await listDevices()).filter(({ backend }) => backend === 'cuda').map(({ id }) => id);
const isRequired = process.env['MILLRACE_TEST_CUDA'] === '1';

test('every program is in the catalog and in the README', () => {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.ts') && !PARTS.has(file));
  const names = files.map((file) => file.slice(0, -3)).toSorted();
  expect(PROGRAMS.map(({ name }) => name).toSorted()).toEqual(names);
  const readme = readFileSync(path.join(FOLDER, 'README.md'), 'utf8');
  for (const { name, devices } of PROGRAMS)
    expect(readme).toMatch(new RegExp(`^\\| \\[${name}\\]\\(${name}\\.ts\\) \\|.*\\| ${devices} \\|$`, 'm'));
});

test('the runner runs the ones that are named, on the devices that are named', { timeout: RUN_MS }, async () => {
  const main = path.resolve(import.meta.dirname, '../../build/js/examples/concurrency/main.js');
  const run = (...args: readonly string[]) => promisify(execFile)(process.execPath, [main, ...args]);
  const { stdout } = await run('--device', 'cpu', 'side-stream', 'peer-copy');
  expect(stdout).toMatch(/^peer-copy: skipped, .*\nside-stream: right\n$/);
  await expect(run('--device', 'cpu', 'no-such')).rejects.toMatchObject({ code: 1 });
  await expect(run('--device', 'cuda:4000', 'side-stream')).rejects.toMatchObject({ code: 1 });
});

runOn(['cpu:0', `cpu:${CPU_DEVICES - 1}`]);

if (gpus.length > 0) runOn(gpus.slice(0, 2));
else {
  test('the programs on GPUs', (context) => {
    expect(isRequired, 'MILLRACE_TEST_CUDA is 1, and no GPU is listed').toBe(false);
    context.skip('this machine has no GPU');
  });
}

function runOn(names: readonly DeviceName[]): void {
  describe(names.join(' and '), () => {
    let opened: Device[] = [];
    beforeAll(async () => {
      opened = await Promise.all(names.map((name) => openDevice(name)));
    });
    afterAll(async () => {
      await Promise.all(opened.map((device) => device.close()));
    });

    for (const { name, devices, run } of PROGRAMS) {
      test(name, { timeout: RUN_MS }, async (context) => {
        const [first, second] = opened;
        if (first === undefined) throw new Error('No device was opened.');
        if (devices === 2 && second === undefined) context.skip('there is one GPU only');
        const result = await run([first, second ?? first]);
        if (result !== undefined) console.log(`${name} on ${first.info.id}:`, result instanceof Error ? result.message : result);
        // What a program leaves behind would disturb the next one.
        expect(first.stream).toBe(first.defaultStream);
        await first.synchronize({ timeoutMs: RUN_MS });
      });
    }
  });
}
