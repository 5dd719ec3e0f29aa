// Reads the names of variables of thread storage duration from an image of the CPU device: a shared object with its symbols (ELF, 64 bits,
// little-endian). The worker reads them when it describes a race. native/cpu/guard_variables.cpp also reads this table, when it loads the image:
// it needs the ranges of other symbols before the first launch, also for images that were built by another process. To pass them through the
// builder, the addon and the interface of backends would take more code than to read them there.

export interface ThreadVariable {
  /** As the source spells it, without its function and namespaces. */
  readonly name: string;
  /** From the start of the image's thread-local storage. */
  readonly offset: number;
  readonly bytes: number;
}

const SECTION_BYTES = 64;
const SYMBOL_BYTES = 24;
const SYMBOL_TABLE = 2;
const THREAD_LOCAL = 6;
/** Parts of a mangled name with digits that are no length: a template argument that is a number, and references to earlier parts. */
const PASSED_OVER = /^(?:L[a-z]n?\d+E|[ST][\dA-Z]*_)/;

/** Throws a RangeError for a file that is cut off. */
export function threadVariables(file: Buffer): ThreadVariable[] {
  const sections = Number(file.readBigUInt64LE(40));
  const count = file.readUInt16LE(60);
  const found: ThreadVariable[] = [];
  for (let n = 0; n < count; n++) {
    const table = section(file, sections, n);
    if (table.type !== SYMBOL_TABLE) continue;
    const names = section(file, sections, table.link);
    for (let at = table.offset; at + SYMBOL_BYTES <= table.offset + table.bytes; at += SYMBOL_BYTES) {
      if ((file[at + 4]! & 15) !== THREAD_LOCAL) continue;
      const start = names.offset + file.readUInt32LE(at);
      const name = plainNameOf(file.toString('latin1', start, file.indexOf(0, start)));
      found.push({ name, offset: Number(file.readBigUInt64LE(at + 8)), bytes: Number(file.readBigUInt64LE(at + 16)) });
    }
  }
  return found;
}

function section(file: Buffer, sections: number, n: number): { type: number; link: number; offset: number; bytes: number } {
  const at = sections + n * SECTION_BYTES;
  return {
    type: file.readUInt32LE(at + 4),
    link: file.readUInt32LE(at + 40),
    offset: Number(file.readBigUInt64LE(at + 24)),
    bytes: Number(file.readBigUInt64LE(at + 32)),
  };
}

/**
 * The last identifier of a symbol: of a function's variable `_ZZ6kernelPfE4tile`, of a namespace's `_ZN5spaceL4tileE`. Compilers number
 * equal names (`_ZZ6kernelPfE4tile_0`) and copies of functions (`tile.1`).
 */
export function plainNameOf(symbol: string): string {
  let name = symbol.replace(/\..*$/, '');
  if (!name.startsWith('_Z')) return name;
  for (let at = 2; at < symbol.length && symbol[at] !== '_'; ) {
    const rest = symbol.slice(at);
    const length = /^[1-9]\d*/.exec(rest)?.[0];
    if (length === undefined) {
      at += PASSED_OVER.exec(rest)?.[0].length ?? 1;
      continue;
    }
    const start = at + length.length;
    at = start + Number(length);
    name = symbol.slice(start, at);
  }
  return name;
}
