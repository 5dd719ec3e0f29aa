// The contents of the package, and the message of the build if a tool is missing.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { identityOf } from '../../src/toolchain/base/package-and-cpu-identity.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Packed {
  readonly files: readonly { readonly path: string }[];
}

test('the package has its files for run time, and no development files', (context) => {
  const npm = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, encoding: 'utf8' });
  if ((npm.error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') context.skip('npm is not installed here');
  expect(npm.status, npm.stderr).toBe(0);
  const [packed] = JSON.parse(npm.stdout) as readonly [Packed];
  const paths = packed.files.map((file) => file.path);
  const worker = ['cpu-task', 'device-builds', 'device-timers', 'device-worker', 'machine-report'].map(
    (name) => `dist/workers/${name}.cjs`,
  );
  const device = [...worker, 'build/Release/millrace.node', 'dist/package-identity'];
  for (const needed of ['dist/index.js', 'dist/index.d.ts', 'dist/testing/index.js', 'dist/testing/index.d.ts', 'LICENSE', ...device]) {
    expect(paths).toContain(needed);
  }
  for (const folder of ['native/cpu/shim/', 'dist/headers/kernels/', 'dist/headers/cpu/']) {
    expect(paths.some((path) => path.startsWith(folder))).toBe(true);
  }
  // Bundles and the code that they share, and no modules.
  const code = paths.filter((path) => /^dist\/(?!cli\/).*\.c?js$/.test(path)).map((path) => path.replace(/-[\w-]{8}\.js$/, '.js'));
  expect(code.toSorted()).toEqual(['dist/index.js', 'dist/shared.js', 'dist/testing/index.js', ...worker]);
  expect(paths.filter((path) => /^(test|examples|bench|node_modules|docs|\.)/.test(path))).toEqual([]);
});

test('the bundle keeps the names of functions and classes', async () => {
  const library: Record<string, unknown> = await import('millrace');
  const names = Object.entries(library).flatMap(([key, value]) => (typeof value === 'function' ? [[key, value.name]] : []));
  expect(names.length).toBeGreaterThan(40);
  for (const [key, name] of names) expect(name).toBe(key);
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
