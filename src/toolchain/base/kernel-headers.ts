// The headers that kernel sources may include on both devices: the files of native/kernel_headers, and those that the build writes by the
// table native/headers.txt. The CPU device's compiler searches the folders; NVRTC gets the texts.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Relative to the package's root, from src and from dist. */
const folder = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
export const HEADER_DIRECTORY: string = folder('native/kernel_headers');
/** Those of the table: `kernels` for both devices, `cpu` for the CPU device alone. */
export const WRITTEN_HEADERS: string = folder('dist/headers');
const FOLDERS: readonly string[] = [HEADER_DIRECTORY, join(WRITTEN_HEADERS, 'kernels')];

let texts: ReadonlyMap<string, string> | undefined;

/** The headers' texts by the names that sources include. Read once. */
export function kernelHeaders(): ReadonlyMap<string, string> {
  return (texts ??= new Map(
    FOLDERS.flatMap((directory) =>
      readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry): [string, string] => {
          const path = join(entry.parentPath, entry.name);
          return [path.slice(directory.length + 1), readFileSync(path, 'utf8')];
        }),
    ).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  ));
}

let names: ReadonlySet<string> | undefined;

/** The names alone, which are faster to read. */
export function kernelHeaderNames(): ReadonlySet<string> {
  return (names ??= new Set(FOLDERS.flatMap((directory) => readdirSync(directory, { recursive: true }).map(String))));
}

let cpuNames: ReadonlySet<string> | undefined;

/** Those of the table that are for the CPU device alone. */
export function cpuHeaderNames(): ReadonlySet<string> {
  return (cpuNames ??= new Set(readdirSync(join(WRITTEN_HEADERS, 'cpu'), { recursive: true }).map(String)));
}
