// The headers that kernel sources may include on both devices: the files of native/kernel_headers. The CPU device's compiler searches the
// folder; NVRTC gets the texts.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Relative to the package's root, from src and from dist. */
export const HEADER_DIRECTORY: string = fileURLToPath(new URL('../../../native/kernel_headers', import.meta.url));

let texts: ReadonlyMap<string, string> | undefined;

/** The headers' texts by the names that sources include. Read once. */
export function kernelHeaders(): ReadonlyMap<string, string> {
  return (texts ??= new Map(
    readdirSync(HEADER_DIRECTORY, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(HEADER_DIRECTORY.length + 1))
      .toSorted()
      .map((name) => [name, readFileSync(join(HEADER_DIRECTORY, name), 'utf8')]),
  ));
}

let names: ReadonlySet<string> | undefined;

/** The names alone, which are faster to read. */
export function kernelHeaderNames(): ReadonlySet<string> {
  return (names ??= new Set(readdirSync(HEADER_DIRECTORY, { recursive: true }).map(String)));
}
