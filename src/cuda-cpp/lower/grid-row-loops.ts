// Turns a kernel whose threads never wait into loops over rows of threads. A row spans the whole grid if the threads use only their global
// x index. Leading guards (`if (i >= n) return;`, a border case) are evaluated once per stretch of a row in which they are constant, so the
// loops over the rest have no branches.
//
// Applies only where the result is proven to be the same; any other kernel runs thread by thread (rewrite.ts).
import { BodyText } from '../read/variable-changes.js';
import { editedSlice, type Edit } from '../read/source-edits.js';
import { functionsOf, type FunctionTokens } from '../read/functions.js';
import { statementsOf, type Statement } from '../read/statements.js';
import type { Token } from '../read/tokens.js';
import { conditionOf, type Condition, type Place } from './row-split-conditions.js';
import { constantsOf, MOST_LOOPED_TOKENS, unrollEdits, type Constants } from './uniform-loops.js';
import { INDEX } from './index-type-uses.js';
import { parameterNames } from './parameters.js';
import { isPlace, placeEdits } from './index-expressions.js';
import { isPure } from './purity.js';
import { hasGroups } from './library-headers.js';

const FORBIDDEN: ReadonlySet<string> = new Set(
  'static extern __shared__ struct class union enum typedef using template asm __asm__ try throw co_await goto'.split(' '),
);
/** Functions that can wait for, or order themselves with, threads of other blocks: then blocks run in order. */
const ORDERED = /^(?:atomic\w+|printf|volatile|__threadfence\w*|__nanosleep|clock(?:64)?|asm|__asm__|__atomic_\w+)$/;
/** The number of tokens of a global index. */
const PLACE_TOKENS = 11;

/** The text of the edit in index-expressions.ts, and its replacement in a grid row. */
const GRID_PLACE = /(?:(?:blockIdx|blockDim|threadIdx) \. x(?: [*+] )?){3}/g;
const ROW_PLACE = 'mr_index(mr_x)';

/** A part of the kernel that runs for threads for which `condition` holds and no earlier guard's does. */
interface Guard {
  readonly condition: Condition;
  readonly body: Statement;
  /** Number of the kernel's declarations before it. */
  readonly declarations: number;
}

/** Edits for those of `kernels` that can become loops over grid rows. */
export function rowEdits(source: string, tokens: readonly Token[], kernels: readonly string[]): { edits: Edit[]; names: string[] } {
  if (kernels.length === 0) return { edits: [], names: [] };
  const functions = functionsOf(tokens);
  const isKernel = ({ start, at }: FunctionTokens): boolean => tokens.slice(start, at).some(({ text }) => text === '__global__');
  const bodies = functions.filter((fn) => isKernel(fn) && fn.bodyOpen >= 0 && fn.bodyEnd < tokens.length);
  const inKernel = (i: number): boolean => bodies.some(({ bodyOpen, bodyEnd }) => i > bodyOpen && i < bodyEnd);
  // Threads of several blocks interleave in a grid row, so they cannot share memory that another function declares.
  if (tokens.some(({ text }, i) => text === '__shared__' && !inKernel(i))) return { edits: [], names: [] };
  // A called function could use the index of a thread, which loops over rows do not set.
  if (hasGroups(tokens) || tokens.some(({ text }, i) => INDEX.test(text) && !inKernel(i))) return { edits: [], names: [] };
  const constants = constantsOf(tokens);
  const byName = new Map<string, FunctionTokens[]>();
  for (const fn of functions) {
    const same = byName.get(fn.name);
    if (same) same.push(fn);
    else byName.set(fn.name, [fn]);
  }
  const edits: Edit[] = [];
  const names: string[] = [];
  for (const fn of bodies) {
    if (!kernels.includes(fn.name) || fn.bodyEnd - fn.bodyOpen > MOST_LOOPED_TOKENS) continue;
    const isAlone = byName.get(fn.name)!.length === 1;
    const hasLambdas = functions.some(({ kind, at }) => kind === 'lambda' && at > fn.bodyOpen && at < fn.bodyEnd);
    if (!isAlone || hasLambdas || tokens[fn.start - 1]?.text === '>') continue;
    const text = new Rows(source, tokens, fn, constants, byName).text();
    if (text === undefined) continue;
    edits.push({ start: tokens[fn.start]!.start, end: tokens[fn.bodyEnd]!.end, text });
    names.push(fn.name);
  }
  return { edits, names };
}

class Rows {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  readonly #fn: FunctionTokens;
  readonly #body: BodyText;
  readonly #constants: Constants;
  readonly #params: readonly string[] | undefined;
  /** First tokens of the global x indices, if the kernel uses x in no other way; else undefined. */
  readonly #merged: readonly number[] | undefined;
  readonly #places = new Map<string, Place>();
  readonly #declarations: Statement[] = [];
  readonly #edits: readonly Edit[];

  constructor(
    source: string,
    tokens: readonly Token[],
    fn: FunctionTokens,
    constants: Constants,
    byName: ReadonlyMap<string, readonly FunctionTokens[]>,
  ) {
    this.#source = source;
    this.#tokens = tokens;
    this.#fn = fn;
    this.#body = new BodyText(tokens, fn);
    this.#constants = constants;
    this.#params = parameterNames(tokens, fn);
    this.#merged = isOrdered(tokens, fn, byName) ? undefined : this.#placesOfGrid();
    const renamed = (text: string): string => (this.#merged === undefined ? text : text.replace(GRID_PLACE, ROW_PLACE));
    this.#edits = [
      ...placeEdits(tokens, fn, new Set()).map((edit) => ({ ...edit, text: renamed(edit.text) })),
      ...unrollEdits(tokens, fn.bodyOpen + 1, fn.bodyEnd - 1, constants),
      ...(this.#merged ?? []).map((at) => ({ start: tokens[at]!.start, end: tokens[at + PLACE_TOKENS - 1]!.end, text: ROW_PLACE })),
    ].toSorted((a, b) => a.start - b.start || a.end - b.end);
  }

  text(): string | undefined {
    const { bodyOpen, bodyEnd, open, close, name } = this.#fn;
    if (this.#params === undefined || this.#tokens.slice(bodyOpen, bodyEnd).some(({ text }) => FORBIDDEN.has(text))) return undefined;
    const statements = statementsOf(this.#tokens, bodyOpen + 1, bodyEnd - 1);
    if (statements === undefined) return undefined;
    const { guards, rest } = this.#guards(statements);
    if (guards.length === 0 && this.#merged === undefined) return undefined;
    const params = open + 1 < close ? `, ${this.#source.slice(this.#tokens[open + 1]!.start, this.#tokens[close - 1]!.end)}` : '';
    const indices = 'mr_index3 mr_thread, mr_index3 blockIdx, mr_index3 blockDim, mr_index3 gridDim';
    const kind = this.#merged === undefined ? 'mr_rows_of_block' : 'mr_rows_of_grid';
    let text = `static MR_INLINE ${kind} ${name}(${indices}, mr_row mr_whole${params}) {\n`;
    const bodies = [...guards.map(({ body, declarations }) => ({ statements: [body], declarations })), rest];
    for (const [at, body] of bodies.entries()) {
      const inner = body.statements.map((one) => `${this.#line(one)}${this.#slice(one.from, one.to)}\n`).join('');
      text += `const auto mr_case_${at} = [&](const int mr_x${params}) MR_IN_ROW {\n${this.#head(body.declarations)}${inner}};\n`;
    }
    const args = this.#params.map((param) => `, ${param}`).join('');
    text += `for (int mr_from = mr_whole.from; mr_from < mr_whole.to;) {\nint mr_until = mr_whole.to;\n`;
    for (const { condition, declarations } of guards) {
      for (const change of condition.changes) {
        text += `mr_until = mr_same_until(mr_from, mr_until, [&](const int mr_x) MR_IN_ROW {\n${this.#head(declarations)}return ${this.#slice(...change.left)} ${change.operator} ${this.#slice(...change.right)};\n});\n`;
      }
    }
    for (const [at, { condition, declarations }] of guards.entries()) {
      const isHeld = `[&](const int mr_x) MR_IN_ROW {\n${this.#head(declarations)}return ${this.#slice(condition.from, condition.to)};\n}(mr_from)`;
      text += `if (${isHeld}) {\nfor (int mr_x = mr_from; mr_x < mr_until; ++mr_x) mr_case_${at}(mr_x${args});\n} else `;
    }
    text += `for (int mr_x = mr_from; mr_x < mr_until; ++mr_x) mr_case_${guards.length}(mr_x${args});\nmr_from = mr_until;\n}\nreturn {};\n}\n`;
    return `${text}#line ${this.#tokens[bodyEnd]!.line} "kernel.cu"\n`;
  }

  /** The leading guards, with the declarations between them, and the remaining statements. */
  #guards(statements: readonly Statement[]): { guards: Guard[]; rest: { statements: readonly Statement[]; declarations: number } } {
    const guards: Guard[] = [];
    let at = 0;
    for (; at < statements.length; at++) {
      const one = statements[at]!;
      if (one.kind === 'declaration' && this.#declare(one)) continue;
      if (one.kind !== 'if') break;
      const isLast = at === statements.length - 1;
      if (!(isLast || (one.otherwise === undefined && this.#returns(one.body)))) break;
      const condition = this.#condition(one.head.from, one.head.to);
      if (condition === undefined) break;
      guards.push({ condition, body: one.body, declarations: this.#declarations.length });
      if (isLast) {
        const otherwise = one.otherwise === undefined ? [] : [one.otherwise];
        return { guards, rest: { statements: otherwise, declarations: this.#declarations.length } };
      }
    }
    return { guards, rest: { statements: statements.slice(at), declarations: this.#declarations.length } };
  }

  #returns(one: Statement): boolean {
    if (one.kind === 'block') return one.body.length > 0 && this.#returns(one.body.at(-1)!);
    return one.kind === 'simple' && this.#tokens[one.from]!.text === 'return';
  }

  /** Whether a declaration can be repeated wherever its variables are used. */
  #declare(one: Statement & { kind: 'declaration' }): boolean {
    const { bodyOpen, bodyEnd } = this.#fn;
    const { type, declarators } = one.declaration;
    const places = new Map<string, Place>();
    for (const { name, prefix, suffix, initializer } of declarators) {
      const isAgain = this.#places.has(name) || places.has(name) || this.#params!.includes(name) || INDEX.test(name);
      if (isAgain || suffix !== '' || prefix.includes('&') || initializer === undefined) return false;
      if (this.#body.isAssigned(name, bodyOpen, bodyEnd) || this.#body.isExposed(name)) return false;
      const { from, to } = initializer;
      const place = this.#placeOf(from, to);
      if (place === undefined) return false;
      const types = this.#tokens.slice(type.from, type.to + 1).map(({ text }) => text);
      const isIndex =
        place === 'index' && prefix === '' && types.every((word) => /^(?:const|int|unsigned|auto|size_t|u?int(?:32|64)_t)$/.test(word));
      places.set(
        name,
        isIndex && types.includes('int') && !types.includes('unsigned')
          ? 'signed index'
          : isIndex
            ? 'index'
            : place === 'index'
              ? 'row'
              : place,
      );
    }
    for (const [name, place] of places) this.#places.set(name, place);
    this.#declarations.push(one);
    return true;
  }

  /** What the tokens depend on; undefined if they may change or are not understood. */
  #placeOf(from: number, to: number): Place | undefined {
    const isX = (at: number): boolean => {
      const { text } = this.#tokens[at]!;
      if (text === 'threadIdx') return this.#tokens[at + 2]!.text === 'x';
      if (text === 'blockIdx' && this.#merged !== undefined) return this.#tokens[at + 2]!.text === 'x';
      const place = this.#places.get(text);
      return place !== undefined && place !== 'all';
    };
    const isFixed = (at: number): boolean => {
      const { text } = this.#tokens[at]!;
      if (INDEX.test(text)) return this.#tokens[at + 1]!.text === '.';
      if (this.#places.has(text) || this.#constants.has(text) || text === 'warpSize') return true;
      return this.#params!.includes(text) && !this.#body.isAssigned(text, this.#fn.bodyOpen, this.#fn.bodyEnd);
    };
    if (!isPure(this.#tokens, this.#body, from, to, isFixed)) return undefined;
    // A guard before it may exclude a zero divisor.
    for (let i = from; i <= to; i++) {
      if ('/%'.includes(this.#tokens[i]!.text) && !/^[1-9]/.test(this.#tokens[i + 1]!.text)) return undefined;
    }
    let isOfRow = false;
    for (let i = from; i <= to; i++) if (this.#tokens[i]!.kind === 'name' && !this.#body.isMember(i) && isX(i)) isOfRow = true;
    if (!isOfRow) return 'all';
    const isName = from === to && this.#places.get(this.#tokens[from]!.text);
    if (isName) return isName;
    const isIndex =
      isPlace(this.#tokens, from, to) && this.#tokens[to]!.text === 'x' && (this.#merged === undefined || to - from + 1 === PLACE_TOKENS);
    return isIndex && this.#tokens.slice(from, to).every(({ text }) => !/^[yz]$/.test(text)) ? 'index' : 'row';
  }

  #condition(from: number, to: number): Condition | undefined {
    return conditionOf(this.#tokens, from, to, (first, last) => this.#placeOf(first, last));
  }

  /** First tokens of the global x indices; undefined if the kernel uses x in any other way. */
  #placesOfGrid(): number[] | undefined {
    const found: number[] = [];
    const { bodyOpen, bodyEnd } = this.#fn;
    for (let i = bodyOpen + 1; i < bodyEnd; i++) {
      const { text } = this.#tokens[i]!;
      if (!INDEX.test(text)) continue;
      const last = i + PLACE_TOKENS - 1;
      const isOfGrid = last < bodyEnd && this.#tokens[last]!.text === 'x' && isPlace(this.#tokens, i, last);
      if (isOfGrid && '=(,['.includes(this.#tokens[i - 1]!.text) && this.#isEnd(last + 1)) {
        found.push(i);
        i = last;
      } else if (
        this.#tokens[i + 1]!.text !== '.' ||
        (this.#tokens[i + 2]!.text === 'x' && (text === 'threadIdx' || text === 'blockIdx'))
      ) {
        return undefined;
      }
    }
    return found.length > 0 ? found : undefined;
  }

  #isEnd(at: number): boolean {
    const { text, end } = this.#tokens[at]!;
    if (text === '<' || text === '>') return this.#tokens[at + 1]!.text !== text || this.#tokens[at + 1]!.start !== end;
    return ';),]'.includes(text);
  }

  #line(one: Statement): string {
    return `#line ${this.#tokens[one.from]!.line} "kernel.cu"\n`;
  }

  #head(declarations: number): string {
    const own = this.#declarations.slice(0, declarations).map((one) => `${this.#line(one)}${this.#slice(one.from, one.to)}\n`);
    return `const mr_index3 threadIdx{mr_index(mr_x), mr_thread.y, mr_thread.z};\n${own.join('')}`;
  }

  #slice(from: number, to: number): string {
    return editedSlice(this.#source, this.#tokens[from]!.start, this.#tokens[to]!.end, this.#edits);
  }
}

/** Whether the kernel or a function that it calls may wait for threads of another block. */
function isOrdered(tokens: readonly Token[], kernel: FunctionTokens, byName: ReadonlyMap<string, readonly FunctionTokens[]>): boolean {
  const reached = new Set<FunctionTokens>([kernel]);
  for (const fn of reached) {
    const names = new Set<string>();
    for (let i = fn.bodyOpen + 1; i < fn.bodyEnd; i++) if (tokens[i]!.kind === 'name') names.add(tokens[i]!.text);
    for (const name of names) {
      if (ORDERED.test(name)) return true;
      for (const other of byName.get(name) ?? []) if (other.bodyOpen >= 0) reached.add(other);
    }
  }
  return tokens.slice(kernel.open, kernel.close).some(({ text }) => ORDERED.test(text));
}
