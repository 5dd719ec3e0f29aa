// Loop fission: splits a kernel at its barriers. The statements between two barriers become a loop over the threads of the block, which the
// compiler vectorises; a barrier is the end of one loop and the start of the next.
//
// Applies only where the result is proven to be the same: barriers in the kernel's own body, none after a return, and uniform conditions
// for every loop and branch around one, so that they can be evaluated once. Of any other kernel, each thread has a stack.
import { BodyText } from '../read/variable-changes.js';
import type { Edit } from '../read/source-edits.js';
import type { FunctionTokens } from '../read/functions.js';
import { CutText, find } from './loop-fission-text.js';
import { constantsOf, roundsOf, unrollEdits, type Constants } from './uniform-loops.js';
import { parameterNames } from './parameters.js';
import type { Around, List, Part, Role, Variable } from './kernel-parts.js';
import { placeEdits } from './index-expressions.js';
import { isPure } from './purity.js';
import { dynamicArray, dynamicPointer } from './rewrite.js';
import { atomicsOn, sharedBy, sharedIn, withoutSpecifiers, type SharedVariable } from './shared-memory.js';
import { declarationOf, statementsOf, type Statement } from '../read/statements.js';
import type { Token } from '../read/tokens.js';

/** Thrown for code that is not understood; caught in this file. */
class NotUnderstood extends Error {}

const FORBIDDEN: ReadonlySet<string> = new Set(
  'return goto switch asm __asm__ try throw static struct class union enum typedef using template operator co_await'.split(' '),
);
const INDICES: ReadonlySet<string> = new Set(['blockIdx', 'blockDim', 'gridDim', 'warpSize']);
/** A loop of at most this many iterations is unrolled in place. */
const MOST_UNTURNED_ROUNDS = 8;

/** The kernel as a function of whole blocks (loop_fission.h); undefined if it cannot be split. */
export function splitKernel(source: string, tokens: readonly Token[], fn: FunctionTokens): string | undefined {
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
  readonly #fn: FunctionTokens;
  readonly #body: BodyText;
  readonly #params: ReadonlySet<string>;
  /** Constants of the source. */
  readonly #constants: Constants;
  readonly #shared: ReadonlyMap<string, SharedVariable>;
  /** Tokens of atomic functions that operate on shared memory. */
  readonly #atomics: readonly number[];
  readonly #declared: Variable[] = [];
  /** Counters of loops around barriers. */
  readonly #counters = new Set<string>();
  #barriers = 0;

  constructor(source: string, tokens: readonly Token[], fn: FunctionTokens) {
    this.#source = source;
    this.#tokens = tokens;
    this.#fn = fn;
    this.#body = new BodyText(tokens, fn);
    const params = parameterNames(tokens, fn);
    this.#require(params !== undefined);
    this.#params = new Set(params);
    this.#constants = constantsOf(tokens);
    this.#shared = sharedIn(tokens, fn);
    this.#atomics = atomicsOn(tokens, fn, this.#shared);
  }

  text(): string {
    const { bodyOpen, bodyEnd, open, close, name } = this.#fn;
    const body = this.#tokens.slice(bodyOpen + 1, bodyEnd);
    this.#require(this.#body.isUnderstood && !body.some(({ text }) => FORBIDDEN.has(text)));
    const statements = statementsOf(this.#tokens, bodyOpen + 1, bodyEnd - 1);
    this.#require(statements !== undefined);
    const list = this.#read(statements, undefined);
    // Every barrier must be a statement that was found.
    this.#require(this.#barriers === body.filter(({ text }) => text === '__syncthreads').length);
    this.#assignRoles(list);
    const params = this.#slice(open + 1, close - 1);
    const indices = 'mr_index3 blockIdx, mr_index3 blockDim, mr_index3 gridDim';
    const head = (of: string): string => `static MR_INLINE mr_whole_block ${of}(${indices}${params === '' ? '' : `, ${params}`})`;
    const tile = this.#tile();
    const tiles = new Set(tile === undefined ? [] : this.#shared.keys());
    const text = `{\n${new CutText(this.#source, this.#tokens, this.#edits(), this.#declared, tiles).of(list)}return {};\n}\n`;
    const after = `#line ${this.#tokens[bodyEnd]!.line} "kernel.cu"\n`;
    if (tile === undefined) return `${head(name)} ${text}${after}`;
    const args = [...this.#params].map((param) => `, ${param}`).join('');
    return `${head(`mr_cut_${name}`)} ${text}${head(name)} {
constexpr int mr_width = ${tile[1]}, mr_height = ${tile[0]};
if (blockDim.x.value == mr_width && blockDim.y.value == mr_height && blockDim.z.value == 1)
return mr_cut_${name}(blockIdx, mr_index3{mr_index(mr_width), mr_index(mr_height), mr_index(1)}, gridDim${args});
return mr_cut_${name}(blockIdx, blockDim, gridDim${args});
}\n${after}`;
  }

  #edits(): Edit[] {
    const { bodyOpen, bodyEnd } = this.#fn;
    return [
      ...placeEdits(this.#tokens, this.#fn, new Set(this.#shared.keys())),
      ...unrollEdits(this.#tokens, bodyOpen + 1, bodyEnd - 1, this.#constants),
      ...this.#atomics.map((at) => ({ start: this.#tokens[at]!.end, end: this.#tokens[at]!.end, text: '_block' })),
    ];
  }

  /**
   * The most likely block shape for this kernel, rows first: that of a tile in its shared memory, whose rows may have one extra element
   * against bank conflicts. Loops over rows of a known length run a third faster.
   */
  #tile(): readonly [string, string] | undefined {
    const isOfRows = this.#tokens
      .slice(this.#fn.bodyOpen, this.#fn.bodyEnd)
      .some(({ text }, i, all) => text === 'y' && all[i - 2]?.text === 'threadIdx');
    for (const { sizes, isPlain } of isOfRows ? this.#shared.values() : []) {
      const [rows, columns] = sizes;
      if (!isPlain || sizes.length !== 2 || rows === undefined || columns === undefined) continue;
      return [rows, columns === `${rows} + 1` || Number(columns) === Number(rows) + 1 ? rows : columns];
    }
    return undefined;
  }

  #require(condition: boolean): asserts condition {
    if (!condition) throw new NotUnderstood();
  }

  #slice(from: number, to: number): string {
    return to < from ? '' : this.#source.slice(this.#tokens[from]!.start, this.#tokens[to]!.end);
  }

  #read(statements: readonly Statement[], outer: List | undefined): List {
    const list: List = { outer, shared: [], variables: new Map(), items: [] };
    if (outer === undefined) this.#takeParameters(list);
    let part: Part | undefined;
    for (const one of statements) {
      if (one.kind === 'shared') {
        list.shared.push(this.#sharedText(one, outer === undefined));
      } else if (one.kind === 'barrier') {
        this.#barriers++;
        part = undefined;
      } else if (this.#hasBarrier(one)) {
        part = undefined;
        list.items.push(this.#around(one, list));
      } else {
        const turned = this.#turned(one, list);
        if (turned) {
          part = undefined;
          list.items.push(turned);
          continue;
        }
        if (part === undefined) list.items.push((part = { kind: 'part', statements: [] }));
        part.statements.push(one);
        if (one.kind === 'declaration') this.#declare(one, list, part);
        this.#refuseJumps(one);
      }
    }
    return list;
  }

  /** Parameters that threads assign become per-thread variables. */
  #takeParameters(list: List): void {
    const { open, close, bodyOpen, bodyEnd } = this.#fn;
    let from = open + 1;
    for (let to = from; to <= close; to++) {
      if (to < close && this.#tokens[to]!.text !== ',') continue;
      const name = this.#tokens[to - 1]!.text;
      if (this.#params.has(name) && this.#body.isAssigned(name, bodyOpen, bodyEnd)) {
        const type = this.#slice(from, to - 2)
          .replaceAll(/\b__restrict(?:__)?\b/g, '')
          .trim();
        const prefix = type.endsWith('*') ? '*' : '';
        const declaredIn: Part = { kind: 'part', statements: [] };
        const variable: Variable = {
          name,
          prefix,
          suffix: '',
          initializer: undefined,
          id: this.#declared.length,
          type: type.slice(0, type.length - prefix.length),
          isParameter: true,
          isObject: false,
          role: 'crossing',
          declaredIn,
          usedIn: new Set(),
        };
        this.#declared.push(variable);
        list.variables.set(name, variable);
      }
      from = to + 1;
    }
  }

  #isDeclaredBefore(name: string, end: number): boolean {
    for (let at = this.#fn.bodyOpen + 1; at < end; at++) {
      if (this.#tokens[at]!.text === name && !this.#body.isMember(at) && this.#body.isDeclaratorAt(at)) return true;
    }
    return false;
  }

  #isDeclaredFirst(name: string): boolean {
    let at = this.#fn.bodyOpen;
    while (this.#tokens[at]!.text !== name || this.#body.isMember(at)) at++;
    return this.#body.isDeclaratorAt(at);
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

  /** Memory that the kernel's outermost block declares has no other aliases, so it can stay in registers. */
  #sharedText({ from, to }: Statement, isOutermost: boolean): string {
    // The declaration moves to the front, so its size must not use a name declared before it.
    for (let i = from; i < to; i++) {
      const { kind, text } = this.#tokens[i]!;
      this.#require(kind !== 'name' || !this.#isDeclaredBefore(text, from));
    }
    const tokens = this.#tokens.slice(from, to);
    if (tokens.some(({ text }) => text === 'extern')) {
      const array = dynamicArray(tokens);
      this.#require(array !== undefined);
      return `${dynamicPointer(array)}\n`;
    }
    const variables = sharedBy(this.#tokens, from, to - 1);
    if (!isOutermost || variables.length === 0 || variables.some(({ isPlain }) => !isPlain)) return `${this.#slice(from, to)}\n`;
    const type = withoutSpecifiers(this.#tokens, from, to - 1);
    const end = type.findIndex(({ text }) => text === variables[0]!.name);
    const isCounted = new Set(this.#atomics.flatMap((at) => [this.#tokens[at + 2]!.text, this.#tokens[at + 3]!.text]));
    return variables
      .map(({ name, sizes }) => {
        const dimensions = sizes.map((size) => `[${size}]`).join('');
        const element = type
          .slice(0, end)
          .map(({ text }) => text)
          .join(' ');
        const own = `mr_shared_${name}`;
        const reached = isCounted.has(name) ? `*mr_kept(&${own})` : `mr_own(${own})`;
        return `alignas(64) static thread_local ${element} ${own}${dimensions};\nstatic_assert(sizeof(${own}) <= mr_most_shared_bytes);\nauto& ${name} = ${reached};\n`;
      })
      .join('');
  }

  /**
   * Interchanges a uniform loop without barriers and the loop over the threads: if its body accesses memory, adjacent threads then access
   * adjacent elements.
   */
  #turned(one: Statement, list: List): Around | undefined {
    if (one.kind !== 'for' || (roundsOf(this.#tokens, one.from, this.#constants) ?? Infinity) <= MOST_UNTURNED_ROUNDS) return undefined;
    const declared = this.#declared.length;
    const counters = [...this.#counters];
    for (let i = one.from; i <= one.to; i++) {
      const role = this.#body.isMember(i) ? undefined : find(this.#tokens[i]!.text, list)?.role;
      // A per-thread accumulator stays in a register without the interchange.
      if (role !== undefined && role !== 'uniform' && role !== 'recomputed') return undefined;
    }
    try {
      const around = this.#around(one, list);
      const own = this.#declared.slice(declared);
      if (own.every(({ name, suffix }) => suffix === '' && !this.#body.isExposed(name))) return around;
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
    }
    this.#declared.length = declared;
    this.#counters.clear();
    for (const name of counters) this.#counters.add(name);
    return undefined;
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
      // The loop's body must not assign the counter.
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

  #declare(one: Statement & { kind: 'declaration' }, list: List, part: Part): void {
    const { type, declarators } = one.declaration;
    const { bodyOpen, bodyEnd } = this.#fn;
    for (const declarator of declarators) {
      const { name, prefix, suffix, initializer } = declarator;
      this.#require(!this.#isKnown(name, list) && !this.#params.has(name) && !this.#counters.has(name) && !INDICES.has(name));
      const isFixed =
        suffix === '' && !prefix.includes('&') && initializer !== undefined && !this.#body.isAssigned(name, bodyOpen, bodyEnd);
      // No earlier code may refer to a global variable of the same name.
      this.#require(this.#isDeclaredFirst(name));
      let role: Role = 'local';
      if (isFixed && this.#isMadeOf(initializer.from, initializer.to, list, false)) role = 'uniform';
      else if (isFixed && this.#isMadeOf(initializer.from, initializer.to, list, true)) role = 'recomputed';
      const variable = {
        ...declarator,
        id: this.#declared.length,
        type: this.#slice(type.from, type.to),
        isParameter: false,
        isObject: !prefix.includes('*') && this.#body.isObjectType(type.from, type.to),
        role,
        declaredIn: part,
        usedIn: new Set([part]),
      };
      this.#declared.push(variable);
      list.variables.set(name, variable);
    }
  }

  /** Whether the tokens use only unchanging values; with `ofThreads`, also the thread's index. */
  #isMadeOf(from: number, to: number, list: List, ofThreads: boolean, mayAssign = false): boolean {
    const isFixed = (at: number): boolean => {
      const { text } = this.#tokens[at]!;
      if (INDICES.has(text) || this.#counters.has(text) || (ofThreads && text === 'threadIdx')) return true;
      const variable = find(text, list);
      if (variable) return variable.role === 'uniform' || (ofThreads && variable.role === 'recomputed');
      if (this.#params.has(text)) return !this.#body.isAssigned(text, this.#fn.bodyOpen, this.#fn.bodyEnd);
      return this.#constants.has(text);
    };
    return isPure(this.#tokens, this.#body, from, to, isFixed, mayAssign);
  }

  #assignRoles(list: List): void {
    this.#noteUses(list);
    for (const variable of this.#declared) {
      const isShort = variable.usedIn.size === 1;
      // A variable whose address may be taken keeps its storage.
      const isKept = variable.suffix !== '' || this.#body.isExposed(variable.name);
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
      for (const name of this.#namesIn(item)) find(name, list)?.usedIn.add(item);
    }
  }

  #namesIn(part: Part): Set<string> {
    const names = new Set<string>();
    for (const { from, to } of part.statements) {
      for (let i = from; i <= to; i++) if (this.#tokens[i]!.kind === 'name' && !this.#body.isMember(i)) names.add(this.#tokens[i]!.text);
    }
    return names;
  }
}
