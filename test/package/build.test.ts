// What the build writes, and its message if a tool is missing.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { identityOf } from '../../src/toolchain/base/package-and-cpu-identity.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('the bundle keeps the names of functions and classes', async () => {
  const library: Record<string, unknown> = await import('millrace');
  const names = Object.entries(library).flatMap(([key, value]) => (typeof value === 'function' ? [[key, value.name]] : []));
  expect(names.length).toBeGreaterThan(40);
  for (const [key, name] of names) expect(name).toBe(key);
});

// Time of an import is time to read code: 24 us for a kilobyte on two cores of an AMD EPYC.
test('the import reads neither the compiler nor the parser of kernels, which the first kernel does', () => {
  const program = `const read = () => Object.keys(require.cache).reduce((sum, file) => sum + fs.statSync(file).size, 0);
    const { f32, inout, kernel } = require('millrace');
    const first = read();
    kernel('one', { x: inout(f32) }, ({ x }, { i }) => { x[i] = 1; });
    console.log(first, read());`;
  const { stdout } = spawnSync(process.execPath, ['-e', program], { cwd: root, encoding: 'utf8' });
  const [imported, all] = stdout.split(' ').map(Number);
  expect(imported).toBeLessThan(820_000);
  expect(all).toBeGreaterThan(imported! + 300_000);
});

test('the names of built kernels depend on all files of the package that affect them', async () => {
  const brings = [
    'native/cpu/shim',
    'native/kernel_headers',
    'dist/headers',
    'dist/toolchain',
    'dist/cuda-cpp',
    'dist/compiler',
    'dist/core/channel',
    'dist/core/elements',
  ].map((folder) => join(root, folder));
  expect(readFileSync(join(root, 'dist/package-identity'), 'utf8')).toBe(await identityOf(brings));
});

describe('the build without a required tool', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-tools-'));
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  const build = (): { readonly status: number | null; readonly stderr: string } =>
    spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], { encoding: 'utf8', env: { PATH: folder, TMPDIR: tmpdir() } });
  const offer = (tool: string): void => {
    symlinkSync('/bin/true', join(folder, tool));
  };

  test('names the tool and the command that installs it, in one sentence', () => {
    const command = 'apt-get install -y cmake g++ make';
    for (const [missing, next] of [
      ['cmake is not installed', 'cmake'],
      ['neither make nor ninja is installed', 'make'],
      ['there is no C++ compiler', undefined],
    ] as const) {
      const { status, stderr } = build();
      expect(status).toBe(1);
      expect(stderr).toBe(`Millrace cannot be built here: ${missing} (on Debian or Ubuntu: ${command}).\n`);
      if (next) offer(next);
    }
  });

  test('tests the compiler and does not rely on its name', () => {
    symlinkSync('/bin/false', join(folder, 'g++'));
    const { status, stderr } = build();
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Millrace cannot be built here: the compiler g\+\+ does not understand C\+\+20.*\n$/);
  });
});
