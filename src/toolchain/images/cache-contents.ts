// What the cache of built kernels contains, and its removal, for `diagnostics()` and `npx millrace cache`.
import { existsSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { cachePlaces } from './cache.js';
import { isOurs, openFolder } from './private-cache-folder.js';

export interface CacheContents {
  /** Undefined with MILLRACE_CACHE=off. */
  readonly folder: string | undefined;
  /** Why the folder is not used. */
  readonly reason?: string;
  /** The least recently used first. */
  readonly files: readonly { readonly path: string; readonly bytes: number; readonly usedMs: number }[];
  readonly bytes: number;
}

/** Creates no folder. */
export async function cacheContents(env: NodeJS.ProcessEnv = process.env): Promise<CacheContents> {
  const places = cachePlaces(env);
  const there = places.filter((place) => existsSync(place)).map((folder) => ({ folder, opened: openFolder(folder) }));
  const used = there.find(({ opened }) => 'path' in opened) ?? there[0];
  if (used === undefined) return { folder: places[0], files: [], bytes: 0 };
  const { folder, opened } = used;
  if ('reason' in opened) return { folder, reason: opened.reason, files: [], bytes: 0 };
  const names = (await readdir(folder)).filter(isOurs);
  const files = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      // Another process may remove it.
      const { size = 0, mtimeMs = 0 } = (await stat(path).catch(() => undefined)) ?? {};
      return { path, bytes: size, usedMs: mtimeMs };
    }),
  );
  return { folder, files: files.toSorted((a, b) => a.usedMs - b.usedMs), bytes: files.reduce((sum, one) => sum + one.bytes, 0) };
}

/** Removes the files that nobody has used since then. Processes that have loaded one keep it. Resolves to what was removed. */
export async function cleanCache(
  usedBeforeMs: number,
  env?: NodeJS.ProcessEnv,
): Promise<{ readonly count: number; readonly bytes: number }> {
  const { files } = await cacheContents(env);
  const old = files.filter(({ usedMs }) => usedMs < usedBeforeMs);
  await Promise.all(old.map(({ path }) => rm(path, { force: true, recursive: true })));
  return { count: old.length, bytes: old.reduce((sum, one) => sum + one.bytes, 0) };
}
