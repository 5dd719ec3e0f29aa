// Emits a kernel after loop fission (loop-fission.ts): a sequence of loops over the threads of the block.
import { editedSlice, type Edit } from '../read/source-edits.js';
import type { Statement } from '../read/statements.js';
import type { Token } from '../read/tokens.js';
import type { List, Part, Variable } from './kernel-parts.js';

/** Most per-thread variables that are kept on the stack: they take 64 KiB of it, half of what a thread may use. */
const MOST_ON_STACK = 8;
const SCALAR = /^(?:(?:const|unsigned|signed|long|short|int|char|float|double|bool|size_t|u?int(?:8|16|32|64)_t)(?: |$))+$/;

export class CutText {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  /** Sorted and not nested. */
  readonly #edits: readonly Edit[];
  readonly #declared: readonly Variable[];
  readonly #onStack: ReadonlySet<number>;
  readonly #tiles: ReadonlySet<string>;

  /** `tiles`: shared memory of a kernel whose loops over rows may have a known length. */
  constructor(source: string, tokens: readonly Token[], edits: readonly Edit[], declared: readonly Variable[], tiles: ReadonlySet<string>) {
    this.#tiles = tiles;
    this.#source = source;
    this.#tokens = tokens;
    this.#edits = edits.toSorted((a, b) => a.start - b.start);
    this.#declared = declared;
    const small = declared.filter(
      ({ role, type, prefix, suffix }) => role === 'crossing' && suffix === '' && (prefix !== '' || SCALAR.test(type)),
    );
    this.#onStack = new Set(small.slice(0, MOST_ON_STACK).map(({ id }) => id));
  }

  /** The content of the kernel's braces. */
  of(list: List): string {
    let text = list.shared.join('');
    for (const variable of list.variables.values()) {
      const { role, initializer } = variable;
      if (role === 'uniform') text += `${fixed(variable)} = ${this.#slice(initializer!.from, initializer!.to)};\n`;
      if (role === 'crossing') text += this.#storage(variable) + begin(variable);
    }
    for (const item of list.items) {
      if (item.kind === 'part') text += this.#part(item, list);
      else text += `${item.head} {\n${item.bodies.map((body) => this.of(body)).join('} else {\n')}}\n`;
    }
    return text;
  }

  #storage({ id, type, prefix, suffix }: Variable): string {
    const typedef = `typedef ${type.replace(/\bconst\b(?=[^*]*$)/, prefix === '' ? '' : 'const')} ${prefix} mr_type_${id} ${suffix};\n`;
    if (this.#onStack.has(id)) return `${typedef}mr_of_threads<mr_type_${id}> mr_values_${id};\n`;
    return `${typedef}static thread_local mr_of_threads<mr_type_${id}> mr_storage_${id};\nauto& mr_values_${id} = *mr_kept(&mr_storage_${id});\n`;
  }

  /** An object is constructed in its array element: its constructor may store the address, and assignment is not construction. */
  #begin({ id, name, isObject }: Variable, value: string): string {
    if (value === '') return `mr_begin(${name});\n`;
    return isObject
      ? `::new (mr_at{__builtin_addressof(${name})}) mr_begun<mr_type_${id}>{${value.slice(' = '.length)}};\n`
      : `${name}${value};\n`;
  }

  #slice(from: number, to: number): string {
    return to < from ? '' : editedSlice(this.#source, this.#tokens[from]!.start, this.#tokens[to]!.end, this.#edits);
  }

  #part(part: Part, list: List): string {
    // Unrolled rows keep a part's tile in registers for the next part. Other parts would only take longer to compile.
    const rows = this.#tiles.size > 0 && !this.#usesTile(part) ? '\n#pragma GCC unroll 1\n' : '';
    let text = `for (int mr_z = 0; mr_z < blockDim.z.value; ++mr_z)
${rows}for (int mr_y = 0; mr_y < blockDim.y.value; ++mr_y)
for (int mr_x = 0; mr_x < blockDim.x.value; ++mr_x) {
const mr_index3 threadIdx{mr_index(mr_x), mr_index(mr_y), mr_index(mr_z)};
::threadIdx = threadIdx;
const int mr_thread_number = (mr_z * blockDim.y.value + mr_y) * blockDim.x.value + mr_x;
`;
    for (const one of this.#declared) {
      const { name, id, role, initializer } = one;
      if (find(name, list)?.id !== id) continue;
      if (role === 'crossing' && one.usedIn.has(part)) text += `auto& ${name} = mr_values_${id}.of[mr_thread_number];\n`;
      if (role === 'recomputed') text += `${fixed(one)} = ${this.#slice(initializer!.from, initializer!.to)};\n`;
    }
    for (const one of part.statements) {
      text += `#line ${this.#tokens[one.from]!.line} "kernel.cu"\n`;
      text += one.kind === 'declaration' ? this.#declaration(one, list) : `${this.#slice(one.from, one.to)}\n`;
    }
    return `${text}}\n`;
  }

  #usesTile({ statements }: Part): boolean {
    return statements.some(({ from, to }) => this.#tokens.slice(from, to + 1).some(({ text }) => this.#tiles.has(text)));
  }

  #declaration(one: Statement & { kind: 'declaration' }, list: List): string {
    let text = '';
    for (const { name, prefix, suffix, initializer } of one.declaration.declarators) {
      const { role } = list.variables.get(name)!;
      const value = initializer === undefined ? '' : ` = ${this.#slice(initializer.from, initializer.to)}`;
      if (role === 'local')
        text += `${this.#slice(one.declaration.type.from, one.declaration.type.to)} ${prefix} ${name} ${suffix}${value};\n`;
      if (role === 'crossing') text += this.#begin(list.variables.get(name)!, value);
    }
    return text;
  }
}

/** Declares a variable as const. If it changes after all, compilation fails, and each thread gets a stack. */
function fixed({ name, type, prefix }: Variable): string {
  const isSaid = prefix === '' ? /\bconst\b/.test(type) : prefix.endsWith('const');
  return isSaid ? `${type} ${prefix} ${name}` : `${type} ${prefix} const ${name}`;
}

/** Initialises each thread's copy of a parameter when the kernel begins. */
function begin({ id, name, isParameter }: Variable): string {
  const threads = 'blockDim.x.value * blockDim.y.value * blockDim.z.value';
  return isParameter ? `for (int mr_n = 0; mr_n < ${threads}; ++mr_n) mr_values_${id}.of[mr_n] = ${name};\n` : '';
}

/** The variable that a name refers to in a list. */
export function find(name: string, list: List | undefined): Variable | undefined {
  for (let at = list; at !== undefined; at = at.outer) {
    const found = at.variables.get(name);
    if (found) return found;
  }
  return undefined;
}
