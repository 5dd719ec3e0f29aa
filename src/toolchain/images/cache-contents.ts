// What the cache of built kernels contains, and its removal, for `diagnostics()` and `npx millrace cache`.
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { cachePlaces, filesIn, type StoredFile } from './cache.js';
import { openFolder, whyNotMade } from './private-cache-folder.js';

export interface CacheContents {
  /** Undefined with MILLRACE_CACHE=off. */
  readonly folder: string | undefined;
  /** Why the folder is not used. */
  readonly reason?: string;
  /** The user's own folder, in whose place this one is used, and why. */
  readonly instead?: string;
  /** The least recently used first. */
  readonly files: readonly StoredFile[];
  readonly bytes: number;
}

/** Of the folder that a build would use: the first one that can be used. Creates none. */
export async function cacheContents(env: NodeJS.ProcessEnv = process.env): Promise<CacheContents> {
  const nothing = { files: [], bytes: 0 };
  let first: CacheContents | undefined;
  for (const folder of cachePlaces(env)) {
    const opened = existsSync(folder) ? openFolder(folder) : undefined;
    const reason = opened === undefined ? whyNotMade(folder) : 'reason' in opened ? opened.reason : undefined;
    const instead = first?.reason === undefined ? {} : { instead: `${first.folder} is not used: ${first.reason}` };
    if (reason === undefined) {
      const files = opened === undefined ? [] : await filesIn(folder);
      return { folder, files, bytes: files.reduce((sum, one) => sum + one.bytes, 0), ...instead };
    }
    first ??= { folder, reason, ...nothing };
  }
  return first ?? { folder: undefined, ...nothing };
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
