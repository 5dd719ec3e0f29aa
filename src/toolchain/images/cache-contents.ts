// What the cache of built kernels contains, and its removal, for `diagnostics()` and `npx millrace cache`.
import { accessSync, constants, existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { cachePlaces, filesIn, type StoredFile } from './cache.js';
import { existingPart, openFolder } from './private-cache-folder.js';

export interface CacheContents {
  /** Undefined with MILLRACE_CACHE=off. */
  readonly folder: string | undefined;
  /** Why the folder is not used. */
  readonly reason?: string;
  /** The least recently used first. */
  readonly files: readonly StoredFile[];
  readonly bytes: number;
}

/** Creates no folder. */
export async function cacheContents(env: NodeJS.ProcessEnv = process.env): Promise<CacheContents> {
  const places = cachePlaces(env);
  const there = places.filter((place) => existsSync(place)).map((folder) => ({ folder, opened: openFolder(folder) }));
  const used = there.find(({ opened }) => 'path' in opened) ?? there[0];
  if (used === undefined) {
    const made = places.find((place) => !isRefused(place));
    const refused = made === undefined && places.length > 0 && { reason: `this user cannot write to ${existingPart(places[0]!)}` };
    return { folder: made ?? places[0], ...refused, files: [], bytes: 0 };
  }
  const { folder, opened } = used;
  if ('reason' in opened) return { folder, reason: opened.reason, files: [], bytes: 0 };
  const files = await filesIn(folder);
  return { folder, files, bytes: files.reduce((sum, one) => sum + one.bytes, 0) };
}

/** Whether this user may not make the folder. */
function isRefused(folder: string): boolean {
  try {
    accessSync(existingPart(folder), constants.W_OK | constants.X_OK);
    return false;
  } catch {
    return true;
  }
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
