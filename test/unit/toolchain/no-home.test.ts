// Users without a home folder, as in containers that run with any user id: built kernels are kept in a private folder in TMPDIR.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test, vi } from 'vitest';
import { cachePlaces, KernelCache } from '../../../src/toolchain/images/cache.js';

/** Of no user on this machine. */
const UID = 424_242;
const DIST = join(import.meta.dirname, '../../../dist');
const scratch = mkdtempSync(join(tmpdir(), 'millrace-no-home-'));
chmodSync(scratch, 0o1777);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const asNobody = (code: string, env: Readonly<Record<string, string>>): string => {
  const options = { uid: UID, gid: UID, cwd: '/', env, encoding: 'utf8', timeout: 30_000 } as const;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], options);
  return stdout + stderr;
};

const KERNEL = `import { f32, inout, kernel, openDevice } from ${JSON.stringify(pathToFileURL(join(DIST, 'index.js')).href)};
  const twice = kernel('twice', { x: inout(f32) }, ({ x }, { i }) => { x[i] = 2 * x[i]; });
  const device = await openDevice('cpu');
  const x = device.from(new Float32Array([1, 2, 3]));
  device.stream.launch(twice, 3, { x });
  console.log(String(await x.read()));
  await device.close();`;
const ADD = `import { KernelCache } from ${JSON.stringify(pathToFileURL(join(DIST, 'toolchain/images/cache.js')).href)};
  console.log((await new KernelCache().add('a.so', Buffer.from('built'))).path);`;

test('a user id without a home, and an environment without HOME and PATH: kernels build, and the next process finds them', (context) => {
  const probe = `import { accessSync } from 'node:fs'; accessSync(${JSON.stringify(join(DIST, 'index.js'))});`;
  if (process.getuid?.() !== 0 || asNobody(probe, {}) !== '') context.skip('needs root, and a package that other users can read');
  const env = { TMPDIR: scratch };
  expect(asNobody(KERNEL, env)).toBe('2,4,6\n');
  const folder = join(scratch, `millrace-kernels-${UID}`);
  expect(statSync(folder)).toMatchObject({ uid: UID, mode: 0o40700 });
  const built = readdirSync(folder);
  expect(built.filter((name) => name.endsWith('.so'))).toHaveLength(1);
  // A compiler that does not exist: the next process has what the first one built.
  expect(asNobody(KERNEL, { ...env, MILLRACE_CXX: '/nonexistent' })).toBe('2,4,6\n');
  expect(readdirSync(folder)).toEqual(built);
  expect(asNobody(ADD, { ...env, HOME: '/proc' })).toBe(`${folder}/a.so\n`);
  expect(asNobody(ADD, { ...env, MILLRACE_CACHE_DIR: join(scratch, 'named') })).toBe(`${scratch}/named/a.so\n`);
  expect(asNobody(ADD, { ...env, MILLRACE_CACHE: 'off' })).toMatch(/\/millrace-\d+-.*\/\w+-a\.so\n$/);
});

test('the folders for built kernels, by preference', () => {
  const own = join(tmpdir(), `millrace-kernels-${process.geteuid!()}`);
  const places = (env: Readonly<Record<string, string>>): readonly string[] => cachePlaces({ HOME: '', ...env });
  expect(places({ HOME: '/home/ann' })).toEqual(['/home/ann/.cache/millrace/kernels', own]);
  expect(places({ HOME: '/home/ann', XDG_CACHE_HOME: '/caches' })).toEqual(['/caches/millrace/kernels', own]);
  expect(places({ HOME: '/home/ann', XDG_CACHE_HOME: 'relative' })).toEqual(['/home/ann/.cache/millrace/kernels', own]);
  expect(places({})).toEqual([own]);
  expect(places({ HOME: 'relative' })).toEqual([own]);
  expect(places({ HOME: '/home/ann', MILLRACE_CACHE_DIR: '/named' })).toEqual(['/named']);
  expect(places({ HOME: '/home/ann', MILLRACE_CACHE: 'off', MILLRACE_CACHE_DIR: '/named' })).toEqual([]);
});

test('a home that cannot be written to: the folder in TMPDIR takes its place', async () => {
  const file = join(scratch, 'file');
  writeFileSync(file, '');
  vi.stubEnv('TMPDIR', scratch);
  const { path } = await new KernelCache({ HOME: file }).add('a.so', Buffer.from('built'));
  vi.unstubAllEnvs();
  expect(path).toBe(join(scratch, `millrace-kernels-${process.geteuid!()}`, 'a.so'));
});

test.skipIf(process.getuid?.() !== 0)(
  'a name in TMPDIR that another user has taken is not used (needs root, to act as that user)',
  async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const code = "const { symlinkSync } = await import('node:fs'); symlinkSync(process.env.TO, process.env.FROM);";
    const mine = join(scratch, 'mine');
    mkdirSync(mine);
    writeFileSync(join(mine, 'library.so'), '');
    chmodSync(mine, 0o777);
    for (const kind of ['link', 'folder']) {
      const temporary = join(scratch, kind);
      const taken = join(temporary, `millrace-kernels-${process.geteuid!()}`);
      mkdirSync(temporary);
      chmodSync(temporary, 0o1777);
      if (kind === 'link') expect(asNobody(code, { TO: mine, FROM: taken })).toBe('');
      else {
        mkdirSync(taken);
        chownSync(taken, UID, UID);
      }
      vi.stubEnv('TMPDIR', temporary);
      const { path } = await new KernelCache({ HOME: '' }).add('a.so', Buffer.from('built'));
      vi.unstubAllEnvs();
      expect(path.startsWith(taken)).toBe(false);
      expect(existsSync(join(mine, 'a.so'))).toBe(false);
      expect(warned.mock.calls.at(-1)![0]).toContain(`belongs to another user (uid ${UID})`);
    }
    expect([readdirSync(mine), statSync(mine).mode & 0o7777]).toEqual([['library.so'], 0o777]);
    warned.mockRestore();
  },
);
