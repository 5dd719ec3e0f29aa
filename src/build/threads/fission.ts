// A kernel of a CUDA text, cut at its barriers: what stands between two of them becomes a loop over the threads of the
// block, which the compiler vectorises, and a barrier is the end of one loop and the start of the next.
//
// Only where it is sure to be the same: barriers in the kernel's own body, none behind a return, and every loop and
// branch around one decided by what all threads of a block share, so that it may be decided once. Whatever is not
// understood leaves the kernel to coroutines (coroutines.ts).
import { BodyText } from '../text/body.js';
import type { FunctionText } from '../text/functions.js';
import { elementType } from './rewrite.js';
import { declarationOf, statementsOf, type Declarator, type Statement } from '../text/statements.js';
import { namespaceScope, type Token } from '../text/text.js';

/** What a local variable is to the parts of the kernel. */
type Role =
  /** Used in one part only: stays where it is. */
  | 'local'
  /** The same for all threads, and never assigned: declared once, outside the loops over threads. */
  | 'uniform'
  /** Made of indices and parameters, and never assigned: declared anew in each part, or indexing by it could not be vectorised. */
  | 'recomputed'
  /** Outlives the part that declares it: an array with an element for each thread. */
  | 'crossing';

interface Variable extends Declarator {
  readonly id: number;
  readonly type: string;
  role: Role;
  readonly declaredIn: Part;
  readonly usedIn: Set<Part>;
}
/** Statements between two barriers. */
interface Part {
  readonly kind: 'part';
  readonly statements: Statement[];
}
/** A statement around barriers. */
interface Around {
  readonly kind: 'around';
  /** `for (...)`, `if (...)`, or nothing for a block. */
  readonly head: string;
  readonly bodies: readonly List[];
}
interface List {
  readonly outer: List | undefined;
  readonly shared: string[];
  readonly variables: Map<string, Variable>;
  readonly items: (Part | Around)[];
}

/** Thrown by what is not understood; never leaves this file. */
class NotUnderstood extends Error {}

const FORBIDDEN: ReadonlySet<string> = new Set(
  'return goto switch asm __asm__ try throw static struct class union enum typedef using template operator co_await'.split(' '),
);
const INDICES: ReadonlySet<string> = new Set(['blockIdx', 'blockDim', 'gridDim', 'warpSize']);
/** May stand in what is computed anew: types of casts, and functions that read nothing. */
const PURE_WORDS: ReadonlySet<string> = new Set(
  'int unsigned signed long short char float double bool size_t const int32_t uint32_t int64_t uint64_t static_cast min max true false x y z'.split(
    ' ',
  ),
);
/** The kernel as a function of whole blocks (whole_blocks.h), or undefined. */
export function cutKernel(source: string, tokens: readonly Token[], fn: FunctionText): string | undefined {
  try {
    return new Cutter(source, tokens, fn).text();
  } catch (error) {
    if (error instanceof NotUnderstood) return undefined;
    throw error;
  }
}

class Cutter {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  readonly #fn: FunctionText;
  readonly #body: BodyText;
  readonly #params: ReadonlySet<string>;
  /** Constants of the text. */
  readonly #constants: ReadonlySet<string>;
  readonly #declared: Variable[] = [];
  /** Variables of loops around barriers. */
  readonly #counters = new Set<string>();
  #barriers = 0;

  constructor(source: string, tokens: readonly Token[], fn: FunctionText) {
    this.#source = source;
    this.#tokens = tokens;
    this.#fn = fn;
    this.#body = new BodyText(tokens, fn);
    this.#params = this.#parameters();
    this.#constants = constantsOf(tokens);
  }

  text(): string {
    const { bodyOpen, bodyEnd, open, close, name } = this.#fn;
    const body = this.#tokens.slice(bodyOpen + 1, bodyEnd);
    this.#require(!body.some(({ text }) => FORBIDDEN.has(text)));
    const statements = statementsOf(this.#tokens, bodyOpen + 1, bodyEnd - 1);
    this.#require(statements !== undefined);
    const list = this.#read(statements, undefined);
    // Every one of them was found as a statement of its own.
    this.#require(this.#barriers === body.filter(({ text }) => text === '__syncthreads').length);
    this.#assignRoles(list);
    const params = this.#slice(open + 1, close - 1);
    const indices = 'mr_index3 blockIdx, mr_index3 blockDim, mr_index3 gridDim';
    const head = `static MR_INLINE mr_whole_block ${name}(${indices}${params === '' ? '' : `, ${params}`})`;
    const after = this.#tokens[bodyEnd]!.line;
    return `${head} {\n${this.#written(list)}return {};\n}\n#line ${after} "kernel.cu"\n`;
  }

  #require(condition: boolean): asserts condition {
    if (!condition) throw new NotUnderstood();
  }

  #slice(from: number, to: number): string {
    return to < from ? '' : this.#source.slice(this.#tokens[from]!.start, this.#tokens[to]!.end);
  }

  #parameters(): Set<string> {
    const { open, close } = this.#fn;
    const names = new Set<string>();
    if (close === open + 1) return names;
    let name = '';
    for (let i = open + 1; i <= close; i++) {
      const { text, kind } = this.#tokens[i]!;
      this.#require(!'([{=&'.includes(text));
      if (text === ',' || i === close) {
        this.#require(name !== '' && name !== 'void');
        names.add(name);
        name = '';
      } else if (kind === 'name') name = text;
    }
    return names;
  }

  #read(statements: readonly Statement[], outer: List | undefined): List {
    const list: List = { outer, shared: [], variables: new Map(), items: [] };
    let part: Part | undefined;
    for (const one of statements) {
      if (one.kind === 'shared') {
        list.shared.push(this.#shared(one));
      } else if (one.kind === 'barrier') {
        this.#barriers++;
        part = undefined;
      } else if (this.#hasBarrier(one)) {
        part = undefined;
        list.items.push(this.#around(one, list));
      } else {
        if (part === undefined) list.items.push((part = { kind: 'part', statements: [] }));
        part.statements.push(one);
        if (one.kind === 'declaration') this.#declare(one, list, part);
        this.#refuseJumps(one);
      }
    }
    return list;
  }

  #hasBarrier({ from, to }: Statement): boolean {
    return this.#tokens.slice(from, to + 1).some(({ text }) => text === '__syncthreads');
  }

  /** `break` and `continue` of a loop around a barrier would end the loop over the threads. */
  #refuseJumps(one: Statement): void {
    if (one.kind === 'for' || one.kind === 'other') return;
    if (one.kind === 'block') for (const inner of one.body) this.#refuseJumps(inner);
    else if (one.kind === 'if') for (const inner of [one.body, ...(one.otherwise ? [one.otherwise] : [])]) this.#refuseJumps(inner);
    else this.#require(!['break', 'continue'].includes(this.#tokens[one.from]!.text));
  }

  #shared({ from, to }: Statement): string {
    const tokens = this.#tokens.slice(from, to);
    if (tokens[0]!.text !== 'extern') return `${this.#slice(from, to)}\n`;
    const bracket = tokens.findIndex(({ text }) => text === '[');
    this.#require(bracket > 1);
    const type = elementType(tokens.slice(0, bracket - 1));
    return `${type}* const ${tokens[bracket - 1]!.text} = reinterpret_cast<${type}*>(mr_dynamic_shared);\n`;
  }

  #around(one: Statement, list: List): Around {
    if (one.kind === 'block') return { kind: 'around', head: '', bodies: [this.#read(one.body, list)] };
    this.#require(one.kind === 'for' || one.kind === 'if');
    const { from, to } = one.head;
    const head = `${one.kind} (${this.#slice(from, to)})`;
    if (one.kind === 'if') {
      this.#require(this.#isMadeOf(from, to, list, false));
      const bodies = [one.body, ...(one.otherwise ? [one.otherwise] : [])].map((body) => this.#readBody(body, list));
      return { kind: 'around', head, bodies };
    }
    const first = this.#tokens.findIndex(({ text }, i) => i >= from && text === ';');
    const second = this.#tokens.findIndex(({ text }, i) => i > first && text === ';');
    const declaration = declarationOf(this.#tokens, from, first);
    this.#require(declaration !== undefined && second < to);
    const names = declaration.declarators.map(({ name }) => name);
    for (const { name, prefix, suffix, initializer } of declaration.declarators) {
      this.#require(prefix === '' && suffix === '' && initializer !== undefined);
      this.#require(this.#isMadeOf(initializer.from, initializer.to, list, false));
      this.#require(!this.#counters.has(name) && !this.#isKnown(name, list) && !this.#params.has(name));
      // In the body it is left alone.
      this.#require(!this.#body.isAssigned(name, to + 2, one.to));
    }
    for (const name of names) this.#counters.add(name);
    this.#require(this.#isMadeOf(first + 1, second - 1, list, false) && this.#isMadeOf(second + 1, to, list, false, true));
    const bodies = [this.#readBody(one.body, list)];
    for (const name of names) this.#counters.delete(name);
    return { kind: 'around', head, bodies };
  }

  #readBody(body: Statement, list: List): List {
    return this.#read(body.kind === 'block' ? body.body : [body], list);
  }

  #isKnown(name: string, list: List | undefined): boolean {
    for (let at = list; at !== undefined; at = at.outer) if (at.variables.has(name)) return true;
    return false;
  }

  #find(name: string, list: List): Variable | undefined {
    for (let at: List | undefined = list; at !== undefined; at = at.outer) {
      const found = at.variables.get(name);
      if (found) return found;
    }
    return undefined;
  }

  #declare(one: Statement & { kind: 'declaration' }, list: List, part: Part): void {
    const { type, declarators, isConst } = one.declaration;
    for (const declarator of declarators) {
      const { name, prefix, suffix, initializer } = declarator;
      this.#require(!this.#isKnown(name, list) && !this.#params.has(name) && !this.#counters.has(name) && !INDICES.has(name));
      const isFixed = suffix === '' && !prefix.includes('&') && initializer !== undefined && this.#keeps(name, isConst && prefix === '');
      let role: Role = 'local';
      if (isFixed && this.#isMadeOf(initializer.from, initializer.to, list, false)) role = 'uniform';
      else if (isFixed && this.#isMadeOf(initializer.from, initializer.to, list, true)) role = 'recomputed';
      const variable = {
        ...declarator,
        id: this.#declared.length,
        type: this.#slice(type.from, type.to),
        role,
        declaredIn: part,
        usedIn: new Set([part]),
      };
      this.#declared.push(variable);
      list.variables.set(name, variable);
    }
  }

  #keeps(name: string, isConst: boolean): boolean {
    return isConst || !this.#body.isAssigned(name, this.#fn.bodyOpen, this.#fn.bodyEnd);
  }

  /** Whether the tokens compute with nothing but what does not change; `ofThreads`: with the index of the thread too. */
  #isMadeOf(from: number, to: number, list: List, ofThreads: boolean, mayAssign = false): boolean {
    for (let i = from; i <= to; i++) {
      const { text, kind } = this.#tokens[i]!;
      const next = this.#tokens[i + 1]!;
      if (kind === 'string' || text === '[' || text === '{') return false;
      if (text === '*' && (i === from || !this.#body.isOperand(i - 1))) return false;
      if (text === '&' && next.text !== '&' && (i === from || !this.#body.isOperand(i - 1)) && this.#tokens[i - 1]!.text !== '&')
        return false;
      if (text === '-' && next.text === '>') return false;
      if (kind !== 'name') {
        const isAssignment = text === '=' && next.text !== '=' && !/[=!<>]/.test(this.#tokens[i - 1]!.text);
        const isShifted = text === '=' && /[<>]/.test(this.#tokens[i - 1]!.text) && this.#tokens[i - 2]!.text === this.#tokens[i - 1]!.text;
        const isStep = (text === '+' || text === '-') && next.text === text;
        if (!mayAssign && (isAssignment || isShifted || isStep)) return false;
        continue;
      }
      if (this.#body.isMember(i)) {
        if (!'xyz'.includes(text)) return false;
        continue;
      }
      if (PURE_WORDS.has(text) && text.length > 1) continue;
      if (INDICES.has(text) || this.#counters.has(text) || (ofThreads && text === 'threadIdx')) continue;
      const variable = this.#find(text, list);
      if (variable) {
        if (variable.role !== 'uniform' && !(ofThreads && variable.role === 'recomputed')) return false;
      } else if (this.#params.has(text)) {
        if (this.#body.isAssigned(text, this.#fn.bodyOpen, this.#fn.bodyEnd)) return false;
      } else if (!this.#constants.has(text)) {
        return false;
      }
      if (next.text === '(') return false;
    }
    return true;
  }

  #assignRoles(list: List): void {
    this.#noteUses(list);
    for (const variable of this.#declared) {
      const isShort = variable.usedIn.size === 1;
      // What may be pointed to is kept, whoever points to it.
      const isKept = variable.suffix !== '' || this.#body.isPointedTo(variable.name);
      if (variable.role !== 'local' || (isShort && !isKept)) continue;
      variable.role = 'crossing';
      const { type, prefix, suffix, initializer } = variable;
      this.#require(!/\bauto\b/.test(type) && !/[&]|const/.test(prefix) && !(suffix !== '' && initializer !== undefined));
    }
  }

  #noteUses(list: List): void {
    for (const item of list.items) {
      if (item.kind === 'around') {
        for (const body of item.bodies) this.#noteUses(body);
        continue;
      }
      for (const name of this.#namesIn(item)) this.#find(name, list)?.usedIn.add(item);
    }
  }

  #namesIn(part: Part): Set<string> {
    const names = new Set<string>();
    for (const { from, to } of part.statements) {
      for (let i = from; i <= to; i++) if (this.#tokens[i]!.kind === 'name' && !this.#body.isMember(i)) names.add(this.#tokens[i]!.text);
    }
    return names;
  }

  #written(list: List): string {
    let text = list.shared.join('');
    for (const variable of list.variables.values()) {
      const { id, name, type, prefix, suffix, role, initializer } = variable;
      if (role === 'uniform') text += `${type} ${prefix} ${name} = ${this.#slice(initializer!.from, initializer!.to)};\n`;
      if (role !== 'crossing') continue;
      text += `typedef ${type.replace(/\bconst\b(?=[^*]*$)/, prefix === '' ? '' : 'const')} ${prefix} mr_type_${id} ${suffix};\nstatic thread_local mr_of_threads<mr_type_${id}> mr_values_${id};\n`;
    }
    for (const item of list.items) {
      if (item.kind === 'part') text += this.#writtenPart(item, list);
      else text += `${item.head} {\n${item.bodies.map((body) => this.#written(body)).join('} else {\n')}}\n`;
    }
    return text;
  }

  #writtenPart(part: Part, list: List): string {
    let text = `for (int mr_z = 0; mr_z < blockDim.z.value; ++mr_z)
for (int mr_y = 0; mr_y < blockDim.y.value; ++mr_y)
for (int mr_x = 0; mr_x < blockDim.x.value; ++mr_x) {
const mr_index3 threadIdx{mr_index(mr_x), mr_index(mr_y), mr_index(mr_z)};
::threadIdx = threadIdx;
const int mr_thread_number = (mr_z * blockDim.y.value + mr_y) * blockDim.x.value + mr_x;
`;
    for (const { name, id, role, type, prefix, initializer } of this.#declared) {
      const variable = this.#find(name, list);
      if (variable?.id !== id) continue;
      if (role === 'crossing' && variable.usedIn.has(part)) text += `auto& ${name} = mr_values_${id}.of[mr_thread_number];\n`;
      if (role === 'recomputed') text += `${type} ${prefix} ${name} = ${this.#slice(initializer!.from, initializer!.to)};\n`;
    }
    for (const one of part.statements) {
      text += `#line ${this.#tokens[one.from]!.line} "kernel.cu"\n`;
      text += one.kind === 'declaration' ? this.#writtenDeclaration(one, list) : `${this.#slice(one.from, one.to)}\n`;
    }
    return `${text}}\n`;
  }

  #writtenDeclaration(one: Statement & { kind: 'declaration' }, list: List): string {
    let text = '';
    for (const { name, prefix, suffix, initializer } of one.declaration.declarators) {
      const { role } = list.variables.get(name)!;
      const value = initializer === undefined ? '' : ` = ${this.#slice(initializer.from, initializer.to)}`;
      if (role === 'local')
        text += `${this.#slice(one.declaration.type.from, one.declaration.type.to)} ${prefix} ${name} ${suffix}${value};\n`;
      if (role === 'crossing' && value !== '') text += `${name}${value};\n`;
    }
    return text;
  }
}

/** Names of `const int N = 16;` and `constexpr int N = 16;` at namespace scope. */
function constantsOf(tokens: readonly Token[]): Set<string> {
  const names = new Set<string>();
  for (const [i, isOutside] of namespaceScope(tokens).entries()) {
    if (!isOutside || (tokens[i]!.text !== 'const' && tokens[i]!.text !== 'constexpr')) continue;
    const equals = tokens.findIndex(({ text }, at) => at > i && !/^\w+$/.test(text));
    const words = tokens.slice(i, equals).map(({ text }) => text);
    if (tokens[equals]?.text === '=' && words.some((word) => /^(?:int|unsigned|size_t|u?int\d+_t)$/.test(word))) names.add(words.at(-1)!);
  }
  return names;
}
