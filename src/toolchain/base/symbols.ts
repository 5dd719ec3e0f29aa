// The symbols of kernels that are not extern "C". NVRTC chooses them, so an image that it made carries a table behind its end, which the
// disk cache keeps with it; other compilers get sources in which the symbol follows from the kernel's C++ name.
import { createHash } from 'node:crypto';
import type { BuildFacts } from '../../core/channel/build-spec.js';

/** Separates the image from the table. */
const MARK = Buffer.from('\nmillrace symbols\n');

/** By the C++ names that the sources' kernels have at their end. */
export type Symbols = Readonly<Record<string, string>>;

/** Appends a table. */
export function withSymbols(image: Uint8Array, symbols: Symbols): Uint8Array {
  const table = Buffer.from(JSON.stringify(symbols));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(table.length);
  return Buffer.concat([image, MARK, table, length]);
}

/** Takes the table off. */
export function splitSymbols(stored: Uint8Array): { readonly image: Uint8Array; readonly symbols: Symbols } {
  const all = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const table = all.length < 4 + MARK.length ? 0 : all.length - 4 - all.readUInt32LE(all.length - 4);
  const end = table - MARK.length;
  if (end < 0 || !all.subarray(end, table).equals(MARK)) return { image: stored, symbols: {} };
  return { image: all.subarray(0, end), symbols: JSON.parse(all.toString('utf8', table, all.length - 4)) as Symbols };
}

/** In images of the CPU device: an identifier. The digest tells instances of a template apart that differ only in signs: `f<1>`, `f<-1>`. */
export function cpuSymbol(path: string): string {
  const name = path.replace(/\W+/g, '_');
  return path.includes('<') ? `${name}${createHash('sha256').update(path).digest('hex').slice(0, 8)}` : name;
}

/** Whether a kernel is an instance of a template. */
export function isInstance({ path }: BuildFacts): boolean {
  return path?.includes('<') === true;
}

/** Without template arguments and namespaces: the symbol in images of nvcc. */
export function plainName(path: string): string {
  return path
    .replace(/\s*<.*$/s, '')
    .split('::')
    .at(-1)!;
}
