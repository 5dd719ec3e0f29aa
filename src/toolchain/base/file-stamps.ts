// Whether files are those of last time, without reading them.
import { statSync } from 'node:fs';

/** What was found out about this machine, under everything that it was found out from. */
export interface Facts {
  /** What was found out of `from`, if it was. */
  recall(what: string, from: string): Promise<string | undefined>;
  remember(what: string, from: string, found: string): Promise<void>;
}

/** A file that changed this recently may change again within one tick of the file system's clock, and look the same. */
const SETTLED_MS = 2000;

/**
 * What any change of the files changes, by their names, sizes and times, the time of the change of the inode among them,
 * which nothing can set back; undefined where one is missing or was changed just now.
 */
export function stampOf(paths: readonly string[], nowMs: number = Date.now()): string | undefined {
  const parts: string[] = [];
  for (const path of paths) {
    const facts = statSync(path, { throwIfNoEntry: false });
    if (facts === undefined || nowMs - facts.ctimeMs < SETTLED_MS) return undefined;
    const { dev, ino, size, mtimeMs, ctimeMs } = facts;
    parts.push(`${path}\0${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`);
  }
  return parts.join('\n');
}
