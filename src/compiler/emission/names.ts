// Names in emitted source. Each name of the user's maps to a unique C++ name that ends in an underscore, so none is a keyword.
import { sanitized } from './cpp-text.js';
import type { ArrayRef, Variable } from '../ir/ir.js';

/** Names of the launch indices, in array order. */
export const INDEX_NAMES = ['mr_i', 'mr_j', 'mr_k'] as const;

export class Names {
  readonly #variables = new Map<Variable, string>();
  readonly #parameters = new Map<string, string>();
  readonly #arrays = new Map<ArrayRef, string>();
  readonly #taken = new Set<string>();
  #temporaries = 0;

  variable(variable: Variable): string {
    return this.#of(this.#variables, variable, variable.name);
  }

  /** The name of a scalar or pointer parameter; an array's extents are named with it as the prefix. */
  parameter(name: string): string {
    return this.#of(this.#parameters, name, name);
  }

  array(array: ArrayRef): string {
    return array.space === 'parameter' ? this.parameter(array.name) : this.#of(this.#arrays, array, array.name);
  }

  /** One dimension of an array: a literal when the declaration gives it, else a parameter. */
  extent(array: ArrayRef, dimension: number): string {
    return array.extents.length > 0 ? String(array.extents[dimension]!) : `${this.array(array)}n${dimension}`;
  }

  temporary(): string {
    this.#temporaries++;
    return `mr_t${this.#temporaries}`;
  }

  #of<K>(names: Map<K, string>, key: K, wanted: string): string {
    let name = names.get(key);
    if (name === undefined) {
      name = this.#claim(wanted);
      names.set(key, name);
    }
    return name;
  }

  #claim(wanted: string): string {
    const base = `${sanitized(wanted)}_`;
    let name = base;
    for (let n = 2; this.#taken.has(name); n++) name = `${base}${n}_`;
    this.#taken.add(name);
    return name;
  }
}
