// The limit of the folder of built kernels: the least recently used go first, and none that was used within a day.
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { KernelCache } from '../../../src/toolchain/images/cache.js';
import { cacheLimit } from '../../../src/toolchain/system/cache-limit.js';
import { runChild } from '../../support/child.js';

const HOUR = 3600;
const scratch = mkdtempSync(join(tmpdir(), 'millrace-cache-limit-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(scratch, 'cache-'));
});
const cache = (limit: string): KernelCache => new KernelCache({ MILLRACE_CACHE_DIR: folder, MILLRACE_CACHE_LIMIT: limit });
const use = (name: string, hoursAgo: number): void => {
  const seconds = Date.now() / 1000 - hoursAgo * HOUR;
  utimesSync(join(folder, name), seconds, seconds);
};
const put = (name: string, bytes: number, hoursAgo: number): void => {
  writeFileSync(join(folder, name), Buffer.alloc(bytes), { mode: 0o700 });
  use(name, hoursAgo);
};

test('a limit in bytes or with a unit; a bad value is that of the default', () => {
  const limits = ['1000', '512M', '2G', '64k', '1.5G', '3MiB', '1T', '0', '', ' 2G '].map((text) =>
    cacheLimit({ MILLRACE_CACHE_LIMIT: text }),
  );
  const [k, m, g] = [2 ** 10, 2 ** 20, 2 ** 30];
  expect(limits).toEqual([1000, 512 * m, 2 * g, 64 * k, 1.5 * g, 3 * m, 1024 * g, 0, g, 2 * g]);
  for (const bad of ['much', '-1', '1e9', '2 GB!', '12X', 'NaN']) expect(cacheLimit({ MILLRACE_CACHE_LIMIT: bad })).toBe(g);
  expect(cacheLimit({})).toBe(g);
});

test('the least recently used files above the limit go, used ones and those of others stay', async () => {
  for (const [name, hours] of [
    ['a', 100],
    ['b', 90],
    ['c', 80],
    ['d', 70],
  ] as const)
    put(`${name}.so`, 1000, hours);
  put('young.so', 5000, 23);
  put('crashed.new', 10, 50);
  put('notes.txt', 9000, 500);
  const used = cache('8K');
  await used.add('a.so', Buffer.alloc(1000));
  expect(readdirSync(folder).toSorted()).toEqual(['a.so', 'c.so', 'd.so', 'notes.txt', 'young.so']);
  for (const name of ['a.so', 'young.so']) use(name, 60);
  // Small additions are not looked at; a sixteenth of the limit is.
  await used.add('e.so', Buffer.alloc(100));
  expect(readdirSync(folder)).toHaveLength(6);
  await used.add('f.so', Buffer.alloc(1500));
  expect(readdirSync(folder).toSorted()).toEqual(['a.so', 'e.so', 'f.so', 'notes.txt', 'young.so']);
});

test('a cache that is found again keeps what was used; one within the limit keeps everything', async () => {
  await cache('1G').add('kept.so', Buffer.alloc(2000));
  put('old.so', 2000, 90);
  use('kept.so', 100);
  expect(await cache('1K').find('kept.so')).toBeDefined();
  await cache('1G').add('more.so', Buffer.alloc(10));
  expect(readdirSync(folder).toSorted()).toEqual(['kept.so', 'more.so', 'old.so']);
  await cache('1K').add('more.so', Buffer.alloc(10));
  expect(readdirSync(folder).toSorted()).toEqual(['kept.so', 'more.so']);
});

test('several caches that remove at once keep the same files', async () => {
  for (let n = 0; n < 40; n++) put(`${n}.so`, 1000, 48 + n);
  await Promise.all(Array.from({ length: 6 }, (_, n) => cache('20000').add(`new-${n}.so`, Buffer.alloc(10))));
  const left = readdirSync(folder).filter((name) => !name.startsWith('new'));
  expect(left.length).toBeLessThan(20);
  // The most recently used ones.
  expect(left.toSorted()).toEqual(Array.from(left, (_, n) => `${n}.so`).toSorted());
});

test('a bad value is one warning, however many devices are opened', async () => {
  const code = `import { listDevices, openDevice } from 'millrace';
    await listDevices();
    const devices = [await openDevice('cpu'), await openDevice('cpu:1')];
    for (const device of devices) await device.close();`;
  const { stderr } = await runChild(code, { MILLRACE_CACHE_LIMIT: '12X', MILLRACE_CPU_DEVICES: '2' });
  expect(stderr.match(/MillraceWarning/g)).toHaveLength(1);
  expect(stderr).toContain('MILLRACE_CACHE_LIMIT (12X) is not a number of bytes, such as 536870912, 512M or 2G. The limit is 1 GiB.');
});
