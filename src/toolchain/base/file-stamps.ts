// Detects changed files without reading them.
import { statSync } from 'node:fs';
import { Date } from '../../core/base/timers.js';

/** Cached facts about this machine, keyed by everything that they were derived from. */
export interface MachineFacts {
  /** The cached fact, if it was derived from the same `from`. */
  recall(what: string, from: string): Promise<string | undefined>;
  remember(what: string, from: string, found: string): Promise<void>;
}

/** A file that changed this recently can change again within one tick of the file system's clock without a new timestamp. */
const SETTLED_MS = 2000;

/**
 * A stamp of the files' names, sizes and times. It includes the inode change time, which user code cannot set back. Undefined when a file
 * is missing or changed just now.
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
