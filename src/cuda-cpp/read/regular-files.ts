// Tells which paths must not be opened as source text: devices and pipes have no end, and opening a pipe waits for its writer.
import { type Stats, statfsSync, statSync } from 'node:fs';

/** The type of the file system /proc, whose regular files may wait for the kernel, and have a size of 0. */
const PROCFS = 0x9fa0;

/** Why the path, which exists, is not a regular file: "is a directory". Undefined for a regular file, and for a path that does not exist. */
export function notRegular(path: string): string | undefined {
  try {
    const facts = statSync(path);
    if (!facts.isFile()) return `is ${kindOf(facts)}, not a file`;
    return facts.size === 0 && statfsSync(path).type === PROCFS ? 'is in the file system /proc, which has no regular files' : undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ELOOP' ? 'is a symbolic link to itself' : undefined;
  }
}

function kindOf(facts: Stats): string {
  if (facts.isDirectory()) return 'a directory';
  if (facts.isFIFO()) return 'a pipe';
  return facts.isSocket() ? 'a socket' : 'a device';
}
