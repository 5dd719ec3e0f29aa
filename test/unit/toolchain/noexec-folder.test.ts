// A cache folder whose file system is mounted noexec: the loader could not map an image from it, so images are stored elsewhere.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { loaderHelp } from '../../../src/native/load.js';
import { isNoExec } from '../../../src/toolchain/images/private-cache-folder.js';

const MOUNTS = String.raw`21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /home rw,nosuid,noexec,relatime shared:2 - ext4 /dev/sda2 rw
23 22 0:21 / /home/ann/.cache rw,nosuid shared:3 - tmpfs tmpfs rw
24 21 0:22 / /media/two\040words rw,noexec - vfat /dev/sdb1 rw
25 21 0:23 / /twice rw,noexec - tmpfs tmpfs rw
26 25 0:24 / /twice rw - tmpfs tmpfs rw
27 21 0:25 / /super rw,relatime - tmpfs noexec rw,noexec
`;

test.each([
  ['the root', '/', false],
  ['a folder of the root', '/var/cache', false],
  ['the mount point', '/home', true],
  ['a folder below the mount point', '/home/bob/.cache/millrace', true],
  ['a folder whose name begins with the name of the mount point', '/homeless', false],
  ['a folder of a deeper mount', '/home/ann/.cache/millrace', false],
  ['a mount point with a space in its name', '/media/two words/kernels', true],
  ['a mount point with a later mount over it', '/twice/kernels', false],
  ['a mount whose device, not its mount options, says noexec', '/super/kernels', false],
])('%s: %s is mounted noexec: %s', (_, directory, expected) => {
  expect(isNoExec(directory, MOUNTS)).toBe(expected);
});

test('a root that is mounted noexec, with an executable mount below', () => {
  const mounts = '1 0 8:1 / / ro,noexec - ext4 a rw\n2 1 8:2 / /tmp rw - tmpfs b rw\n';
  expect([isNoExec('/var', mounts), isNoExec('/tmp/x', mounts)]).toEqual([true, false]);
});

const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-noexec-')));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs a shell script in a mount namespace of its own, with a file system on the scratch folder that is mounted noexec. */
const mounted = (script: string, args: readonly string[]) =>
  spawnSync('unshare', ['-m', '/bin/sh', '-c', `mount -t tmpfs -o noexec tmpfs ${scratch} && ${script}`, 'sh', ...args], {
    encoding: 'utf8',
    timeout: 20_000,
  });

test('a real noexec folder as cache, as TMPDIR or as both: an image is stored where it can be loaded, or the error says noexec', (context) => {
  if (mounted('true', []).status !== 0) context.skip('this user may not mount a file system');
  const cache = pathToFileURL(join(import.meta.dirname, '../../../dist/toolchain/images/cache.js')).href;
  const code = `import { KernelCache } from ${JSON.stringify(cache)};
    const told = (adding) => adding.then(({ path }) => path, (error) => [error.name, error.message, ...error.help].join(' '));
    const cache = new KernelCache();
    console.log(JSON.stringify([await told(cache.add('a.so', Buffer.from('built'))), await told(cache.addUnshared('b.so', Buffer.from('built')))]));`;
  const run = (env: string): string[] => {
    const ran = mounted(`exec env ${env} "$@"`, [process.execPath, '--input-type=module', '--eval', code]);
    expect(ran).toMatchObject({ status: 0, stderr: '' });
    return JSON.parse(ran.stdout) as string[];
  };
  const noexec = join(scratch, 'kernels');
  for (const path of run(`MILLRACE_CACHE_DIR=${noexec}`)) {
    expect(path).toMatch(/\/(?:\w+-)?[ab]\.so$/);
    expect(path.startsWith(scratch)).toBe(false);
  }
  const executable = mkdtempSync(join(tmpdir(), 'millrace-executable-'));
  const [kept = '', unshared = ''] = run(`TMPDIR=${scratch} MILLRACE_CACHE_DIR=${executable}`);
  expect(kept).toBe(join(executable, 'a.so'));
  expect(unshared.startsWith(`${executable}/millrace-`)).toBe(true);
  // The folder of the process has gone with it.
  expect(readdirSync(executable)).toEqual(['a.so']);
  rmSync(executable, { recursive: true });
  for (const env of [`TMPDIR=${scratch} MILLRACE_CACHE_DIR=${noexec}`, `TMPDIR=${scratch} MILLRACE_CACHE=off`]) {
    for (const error of run(env)) {
      expect(error).toMatch(/^UnavailableError K707: /);
      expect(error).toContain(`${scratch} is mounted noexec`);
      expect(error).toMatch(/ Set (?:TMPDIR|MILLRACE_CACHE_DIR)\b.* not mounted noexec\./);
    }
  }
  const [neither] = run(`TMPDIR=/proc/nonexistent MILLRACE_CACHE_DIR=${noexec}`);
  expect(neither).toContain(`UnavailableError K707: No folder can store the built kernels: ${noexec} (${noexec} is mounted noexec); `);
});

test('the help for an image or an addon that the loader does not map names noexec', () => {
  const [noexec, limits] = loaderHelp('/a/b.so: failed to map segment from shared object');
  expect([noexec, limits]).toEqual([expect.stringContaining('noexec'), expect.stringContaining('ulimit')]);
  expect([loaderHelp('Too many open files').length, loaderHelp('invalid ELF header')]).toEqual([1, []]);
});
