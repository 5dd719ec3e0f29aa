// The headers that kernel sources may include on both devices: the files of native/kernel_headers, and those of one line in the table
// native/headers.txt. NVRTC gets the texts. The CPU device's compiler searches folders, so the headers of the table must be files for it: a
// clone has them from its build, and an installed package, which contains the table alone, writes them when a kernel needs them.
import { linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Relative to the package's root, from src and from dist. */
const inRoot = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
export const HEADER_DIRECTORY: string = inRoot('native/kernel_headers');
/** In a clone: those of the table, in `kernels` for both devices and `cpu` for the CPU device alone. */
export const WRITTEN_HEADERS: string = inRoot('dist/headers');
/** The folder for them of an installed package, in a temporary one. */
export const UNPACKED_HEADERS = 'millrace-headers';

type Texts = ReadonlyMap<string, string>;

let table: Readonly<Record<'kernels' | 'cpu', Texts>> | undefined;

/** Each line of names in the table is indented, below the text of its headers. */
function headersOfTable(): Readonly<Record<'kernels' | 'cpu', Texts>> {
  if (table !== undefined) return table;
  const made = { kernels: new Map<string, string>(), cpu: new Map<string, string>() };
  let [device, text]: ['kernels' | 'cpu', string] = ['kernels', ''];
  for (const line of readFileSync(inRoot('native/headers.txt'), 'utf8').split('\n')) {
    const [, to, its] = /^(kernels|cpu): (.+)$/.exec(line) ?? [];
    if (its !== undefined) [device, text] = [to as typeof device, its.startsWith('//') ? `${its}\n#pragma once\n` : `${its}\n`];
    if (line.startsWith(' ')) for (const name of line.trim().split(' ')) made[device].set(name, text);
  }
  return (table = made);
}

/** Writes the headers of the table. Most have the same text as others and are links to one file, which takes a fifth of the time. */
export function writeHeaders(folder: string): void {
  const written = new Map<string, string>();
  for (const [device, headers] of Object.entries(headersOfTable())) {
    const folders = new Set([...headers.keys()].map((name) => dirname(join(folder, device, name))));
    for (const each of folders) mkdirSync(each, { recursive: true });
    for (const [name, text] of headers) {
      const path = join(folder, device, name);
      const same = written.get(text);
      if (same === undefined || !isLinked(same, path)) writeFileSync(path, text);
      written.set(text, same ?? path);
    }
  }
}

/** False on file systems without links. */
function isLinked(file: string, path: string): boolean {
  try {
    linkSync(file, path);
    return true;
  } catch {
    return false;
  }
}

let texts: Texts | undefined;

/** The headers' texts by the names that sources include. Read once. */
export function kernelHeaders(): Texts {
  if (texts !== undefined) return texts;
  const files = readdirSync(HEADER_DIRECTORY, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry): [string, string] => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(HEADER_DIRECTORY.length + 1), readFileSync(path, 'utf8')];
    });
  return (texts = new Map([...files, ...headersOfTable().kernels].toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

let names: ReadonlySet<string> | undefined;

/** The names alone, which are faster to read. */
export function kernelHeaderNames(): ReadonlySet<string> {
  return (names ??= new Set([...readdirSync(HEADER_DIRECTORY, { recursive: true }).map(String), ...headersOfTable().kernels.keys()]));
}

/** Those of the table that are for the CPU device alone. */
export function cpuHeaderNames(): Pick<Texts, 'has'> {
  return headersOfTable().cpu;
}
