// Another user who can write to the cache folder, a file in it or a parent folder must not get code loaded.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { KernelCache } from '../../../src/toolchain/images/cache.js';
import { isOfOneUser } from '../../../src/toolchain/system/private-folder.js';
import { runChild } from '../../support/child.js';

const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;
const scratch = mkdtempSync(join(tmpdir(), 'millrace-cache-folder-'));
// Another user must be able to reach the folder.
chmodSync(scratch, 0o755);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(scratch, 'cache-'));
});

const cache = (directory = folder): KernelCache => new KernelCache({ MILLRACE_CACHE_DIR: directory });

/** The content of a file with the footer that the cache writes. */
function whole(content: string): Buffer {
  const body = Buffer.from(content);
  return Buffer.concat([body, createHash('sha256').update(body).digest(), Buffer.from('MRKERNEL')]);
}
function plant(name: string, mode = 0o700): void {
  writeFileSync(join(folder, name), whole('planted'), { mode });
  chmodSync(join(folder, name), mode);
}
const found = async (name: string, directory = folder): Promise<string | undefined> =>
  (await cache(directory).find(name))?.content.toString();

test('a complete file of this user in a private folder is found', async () => {
  plant('a.so');
  expect(await found('a.so')).toBe('planted');
});

test('a folder that cannot be made is not used', async () => {
  writeFileSync(join(folder, 'file'), '');
  symlinkSync(join(folder, 'nowhere'), join(folder, 'link'));
  for (const place of ['/proc/x', '/proc/self/x/y', join(folder, 'file', 'x'), join(folder, 'link'), join(folder, 'link', 'x')]) {
    const { path } = await cache(place).add('not-made.so', Buffer.from('other'));
    expect(path).toMatch(/millrace-\d+/);
  }
  const { path } = await cache(join(folder, 'new', 'deep')).add('not-made.so', Buffer.from('other'));
  expect(path).toBe(join(folder, 'new', 'deep', 'not-made.so'));
  expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700);
});

test.each([0o777, 0o702, 0o770])('a folder that others could write to (%o) is emptied and made private', async (mode) => {
  if (mode === 0o770) {
    if (!isRoot) return;
    chownSync(folder, 0, NOBODY);
  }
  plant('a.so');
  plant('package-00');
  mkdirSync(join(folder, 'b.so'));
  writeFileSync(join(folder, 'notes.txt'), 'of somebody else');
  chmodSync(folder, mode);
  expect(await found('a.so')).toBeUndefined();
  expect([readdirSync(folder), statSync(folder).mode & 0o7777]).toEqual([['notes.txt'], 0o700]);
  await cache().add('a.so', Buffer.from('built'));
  expect(await found('a.so')).toBe('built');
});

test("a group is private when it has no other member and is no other user's primary group", () => {
  const groups = 'root:x:0:\nann:x:1000:\nbob:x:1001:ann\ncat:x:1002:cat\nlab:x:1003:\n';
  const users = 'root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:\ncat:x:1002:1002::/:\ndan:x:1004:1003::/:\n';
  const asked = [
    [0, 'root'],
    [1000, 'ann'],
    [1001, 'bob'],
    [1002, 'cat'],
    [1003, 'eve'],
    [1009, 'ann'],
  ] as const;
  expect(asked.map(([gid, user]) => isOfOneUser(gid, user, groups, users))).toEqual([true, true, false, true, false, false]);
  expect(isOfOneUser(1000, 'ann', `${groups}also:x:1000:bob\n`, users)).toBe(false);
});

test('a folder that others could read keeps its files', async () => {
  plant('a.so');
  chmodSync(folder, 0o755);
  expect(await found('a.so')).toBe('planted');
  expect(statSync(folder).mode & 0o7777).toBe(0o700);
});

test('a folder whose emptying was interrupted is emptied', async () => {
  plant('a.so');
  chmodSync(folder, 0o1700);
  expect(await found('a.so')).toBeUndefined();
  expect(statSync(folder).mode & 0o7777).toBe(0o700);
});

test('a folder that becomes writable for others while it is in use is emptied', async () => {
  const used = cache();
  plant('a.so');
  expect((await used.find('a.so'))?.content.toString()).toBe('planted');
  chmodSync(folder, 0o777);
  expect(await used.find('a.so')).toBeUndefined();
  expect(statSync(folder).mode & 0o7777).toBe(0o700);
});

test('a folder with the sticky bit that all users can write to is neither changed nor used', async () => {
  chmodSync(folder, 0o1777);
  plant('a.so');
  expect(await found('a.so')).toBeUndefined();
  await cache().add('b.so', Buffer.from('built'));
  expect([readdirSync(folder), statSync(folder).mode & 0o7777]).toEqual([['a.so'], 0o1777]);
});

test.skipIf(!isRoot)(
  'a file of another user is not loaded, even when the folder is private now (needs root, to act as that user)',
  async () => {
    chmodSync(folder, 0o777);
    const code = `require('fs').writeFileSync(${JSON.stringify(join(folder, 'a.so'))}, Buffer.from(${JSON.stringify(whole('theirs').toString('base64'))}, 'base64'), { mode: 0o755 })`;
    const planting = spawnSync(process.execPath, ['-e', code], { uid: NOBODY, gid: NOBODY, encoding: 'utf8' });
    expect(planting.stderr).toBe('');
    expect(statSync(join(folder, 'a.so')).uid).toBe(NOBODY);
    // An administrator may have made the folder private since.
    chmodSync(folder, 0o700);
    expect(await found('a.so')).toBeUndefined();
    expect(existsSync(join(folder, 'a.so'))).toBe(false);
    await cache().add('a.so', Buffer.from('built'));
    expect(await found('a.so')).toBe('built');
  },
);

test.each([0o720, 0o702])('a file that others may write to (%o) is not loaded', async (mode) => {
  plant('a.so', mode);
  if (isRoot) chownSync(join(folder, 'a.so'), 0, NOBODY);
  else if (mode === 0o720) return;
  expect(await found('a.so')).toBeUndefined();
});

test('an entry that is not a regular file is replaced by the built file', async () => {
  const target = join(scratch, 'target');
  writeFileSync(target, whole('behind a link'), { mode: 0o700 });
  symlinkSync(target, join(folder, 'link.so'));
  mkdirSync(join(folder, 'folder.so'));
  writeFileSync(join(folder, 'folder.so', 'file'), '');
  const server = createServer().listen(join(folder, 'socket.so'));
  await new Promise((resolve) => {
    server.once('listening', resolve);
  });
  writeFileSync(join(folder, 'large.so'), '', { mode: 0o700 });
  truncateSync(join(folder, 'large.so'), 2 ** 40);
  for (const name of readdirSync(folder)) {
    expect(await found(name)).toBeUndefined();
    await cache().add(name, Buffer.from('built'));
    expect(await found(name)).toBe('built');
  }
  server.close();
  expect(existsSync(target)).toBe(true);
});

// Without O_NONBLOCK, opening a FIFO waits for a writer for ever.
test.each(['pipe', 'link to /dev/zero', 'device'])('a %s does not block the thread', async (kind) => {
  const path = join(folder, 'a.so');
  if (kind === 'pipe') execFileSync('mkfifo', ['-m', '700', path]);
  else if (kind.startsWith('link')) symlinkSync('/dev/zero', path);
  else if (spawnSync('mknod', ['-m', '700', path, 'c', '1', '5']).status !== 0) return;
  const module = pathToFileURL(join(import.meta.dirname, '../../../dist/toolchain/images/cache.js')).href;
  const code = `import { KernelCache } from ${JSON.stringify(module)};
    console.log(String(await new KernelCache({ MILLRACE_CACHE_DIR: ${JSON.stringify(folder)} }).find('a.so')));`;
  expect(await runChild(code, {}, 10_000)).toMatchObject({ code: 0, signal: null, stdout: 'undefined\n', stderr: '' });
});

test.each([
  ['all users can write to', (parent: string) => chmodSync(parent, 0o777)],
  ['belongs to another user', (parent: string) => chownSync(parent, NOBODY, NOBODY)],
] as const)('a folder whose parent %s is not used, and not created', async (what, change) => {
  if (what.startsWith('belongs') && !isRoot) return;
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const inside = join(folder, 'kernels');
  change(folder);
  const used = cache(inside);
  await used.add('a.so', Buffer.from('built'));
  expect((await used.find('a.so'))?.path.startsWith(folder)).toBe(false);
  expect(existsSync(inside)).toBe(false);
  // An existing folder is not used either.
  mkdirSync(inside, { mode: 0o700 });
  writeFileSync(join(inside, 'a.so'), whole('planted'), { mode: 0o700 });
  expect(await found('a.so', inside)).not.toBe('planted');
  expect(warned.mock.calls.map(([message]) => message)).toEqual([
    expect.stringContaining(`are not kept in ${inside}, because other users could put code there: `),
  ]);
  expect(String(warned.mock.calls[0]![0])).toMatch(
    what.startsWith('all') ? /other users may write to .* \(mode 0777/ : /belongs to another user/,
  );
  warned.mockRestore();
});

test('a folder whose parent has the sticky bit is used', async () => {
  chmodSync(folder, 0o1777);
  const inside = join(folder, 'kernels');
  await cache(inside).add('a.so', Buffer.from('built'));
  expect(await found('a.so', inside)).toBe('built');
  expect(readdirSync(inside)).toEqual(['a.so']);
});
