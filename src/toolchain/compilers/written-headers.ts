// The folder of the headers that have one line, for a compiler that searches folders.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { UNPACKED_HEADERS, WRITTEN_HEADERS, writeHeaders } from '../base/kernel-headers.js';
import { temporaryFolder } from '../system/temporary-folder.js';

/**
 * That of a clone, or one that this thread keeps until it ends: undefined if it is not made yet and `isNeeded` is false. Throws an UnavailableError
 * if there is no temporary folder.
 */
export function writtenHeaders(isNeeded: boolean): string | undefined {
  if (existsSync(WRITTEN_HEADERS)) return WRITTEN_HEADERS;
  if (!isNeeded) return undefined;
  const folder = join(temporaryFolder(), UNPACKED_HEADERS);
  if (!existsSync(folder)) writeHeaders(folder);
  return folder;
}
