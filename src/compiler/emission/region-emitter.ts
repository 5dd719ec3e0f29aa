// Emits a kernel with barriers. On CUDA a region is a block of statements. On the CPU device it is a loop over the threads of the block
// (the shim's barrier_regions.h), and the statements outside the regions run once per block.
import { BARRIER_MACROS } from './block-prelude.js';
import type { ExpressionEmitter } from './expression.js';
import { INDEX_NAMES } from './names.js';
import { loopText } from './loop.js';
import type { StatementEmitter } from './statement.js';
import { CPP_TYPE, generated, indented, type Line, nested, storageType } from './cpp-text.js';
import type { ArrayRef, Axis, KernelIr, ScalarType, Stmt, Variable } from '../ir/ir.js';
import { type RangeTest, rangeTest } from './ranges.js';
import type { Piece, Plan, Region } from '../analysis/region-plan.js';
import { placeVariables, type RegionStorage, type Storage } from '../analysis/storage.js';
import { expressionsOf, someExpr, someStmt, statementsIn } from '../ir/walk.js';
import { type Place, withFastVersion } from './loop-versioning.js';

const CUDA_AXES = ['x', 'y', 'z'] as const;

/** `const int mr_i = ...`: a launch index; array order, the last is x. */
export function indexDeclaration(rank: KernelIr['indexRank'], axis: Axis): string {
  const of = CUDA_AXES[rank - 1 - axis]!;
  return `const int ${INDEX_NAMES[axis]} = int(blockIdx.${of} * blockDim.${of} + threadIdx.${of});`;
}

/** The declarations of the indices that a region uses. */
export function indexDeclarations(rank: KernelIr['indexRank'], used: ReadonlySet<Axis>): string[] {
  return ([0, 1, 2] as const).filter((axis) => used.has(axis)).map((axis) => indexDeclaration(rank, axis));
}

/** A region, and what its emission depends on. */
export interface RegionParts {
  readonly region: Region;
  readonly storage: RegionStorage;
  /** The region's statements, without declarations that only other regions need. */
  readonly body: readonly Stmt[];
  /** Whether later code must know which threads returned in this region. */
  readonly isLosing: boolean;
  /** The test that no thread leaves an array; undefined when an index has no range. */
  readonly test: RangeTest | undefined;
}

export class RegionEmitter {
  readonly #ir: KernelIr;
  readonly #plan: Plan;
  readonly #storage: Storage;
  readonly #isChecked: boolean;
  readonly #statements: StatementEmitter;
  /** Regions after which some threads may have returned while others continue. */
  readonly #losing: ReadonlySet<Region>;
  readonly #write: ((parts: RegionParts) => Line[]) | undefined;

  /** `write` replaces the emission of regions. */
  constructor(ir: KernelIr, plan: Plan, isChecked: boolean, statements: StatementEmitter, write?: (parts: RegionParts) => Line[]) {
    this.#ir = ir;
    this.#write = write;
    this.#plan = plan;
    this.#isChecked = isChecked;
    this.#statements = statements;
    this.#storage = placeVariables(ir.body, plan);
    const last = plan.pieces.at(-1);
    this.#losing = new Set(plan.regions.filter((region) => region !== last && leaves(region, isChecked)));
    for (const variable of this.#storage.crossing) statements.declared.add(variable);
  }

  body(): Line[] {
    const { crossing, crossingArrays } = this.#storage;
    const begin = this.#losing.size > 0 ? 'MR_BEGIN_BLOCK_OF_LEAVING' : 'MR_BEGIN_BLOCK';
    const head = [
      `${begin}(mr_n0, mr_n1, mr_n2)`,
      ...[...crossing].map((variable) => `MR_CROSSING(${this.#declarator(variable)})`),
      ...[...crossingArrays].map((array) => `MR_CROSSING_ARRAY(${arrayDeclarator(array, this.#expressions)})`),
    ];
    this.#onceMode();
    return [...generated(head), ...this.#pieces(this.#plan.pieces)];
  }

  #declarator(variable: Variable): string {
    return `${CPP_TYPE[variable.type as ScalarType]}, ${this.#expressions.names.variable(variable)}`;
  }

  get #expressions(): ExpressionEmitter {
    return this.#statements.expressions;
  }

  /** Outside the regions, all remaining threads do the same and leave together. */
  #onceMode(): void {
    this.#expressions.exit = { report: 'MR_FAULT_ALL', leave: 'return;' };
  }

  #pieces(pieces: readonly Piece[]): Line[] {
    this.#expressions.enterBlock();
    const lines = pieces.flatMap((piece) => this.#piece(piece));
    this.#expressions.leaveBlock();
    return lines;
  }

  #piece(piece: Piece): Line[] {
    switch (piece.kind) {
      case 'region':
        return this.#region(piece);
      case 'once':
        return this.#statements.statement(piece.stmt);
      case 'barrier':
        return [{ text: `${BARRIER_MACROS[piece.scope]};`, at: piece.at }];
      case 'if': {
        const { at } = piece;
        const test = this.#expressions.emit(piece.test);
        const before = this.#statements.taken(at);
        const then = nested(this.#pieces(piece.then));
        const otherwise = piece.otherwise.length === 0 ? [] : [{ text: '} else {', at }, ...nested(this.#pieces(piece.otherwise))];
        return [...before, { text: `if (${test}) {`, at }, ...then, ...otherwise, { text: '}', at }];
      }
      case 'loop':
        return this.#loop(piece);
      case 'block':
        return [{ text: '{', at: piece.at }, ...nested(this.#pieces(piece.body)), { text: '}', at: piece.at }];
    }
  }

  #loop({ loop, init, update, body }: Extract<Piece, { kind: 'loop' }>): Line[] {
    const expressions = this.#expressions;
    expressions.enterBlock();
    const initLines = init.flatMap((piece) => this.#piece(piece));
    const test = expressions.capture(() => (loop.test === undefined ? undefined : expressions.emit(loop.test)));
    const updateLines = this.#pieces(update);
    const bodyLines = this.#pieces(body);
    expressions.leaveBlock();
    const isPlain = (pieces: readonly Piece[], kind: Stmt['kind'], lines: readonly Line[]): boolean =>
      pieces.every((piece) => piece.kind === 'once' && piece.stmt.kind === kind) && pieces.length === lines.length;
    const text = {
      init: initLines,
      isPlainInit: init.length === 1 && isPlain(init, 'declare', initLines),
      test,
      update: updateLines,
      isPlainUpdate: isPlain(update, 'assign', updateLines),
      body: bodyLines,
    };
    return loopText(loop, text, () => expressions.names.temporary());
  }

  /** On the CPU device, also emits a loop without checks, for blocks in which no thread has returned and no index can leave an array. */
  #region(region: Region): Line[] {
    const { number } = region;
    const isLosing = this.#losing.has(region);
    if (this.#write !== undefined) {
      const body = region.body.filter((stmt) => !this.#storage.isOnlyElsewhere(region, stmt));
      const lines = this.#write({ region, storage: this.#storage.of.get(region)!, body, isLosing, test: this.#rangeTest(region) });
      this.#onceMode();
      return lines;
    }
    const checked = [...this.#threads(region, String(number), 'MR_THREADS', this.#isChecked), ...this.#left(isLosing)];
    const test = this.#rangeTest(region);
    if (test === undefined) return checked;
    return [
      ...generated(['#ifdef MILLRACE_CPU_DEVICE', ...fastTest(number, test)]),
      ...nested([...this.#threads(region, `fast_${number}`, 'MR_EVERY_THREAD', false), ...this.#left(isLosing && leaves(region, false))]),
      ...generated(['} else', '#endif', '{']),
      ...nested(checked),
      ...generated(['}']),
    ];
  }

  #rangeTest(region: Region): RangeTest | undefined {
    const body = [...this.#storage.of.get(region)!.anew, ...region.body];
    const test = rangeTest(body, this.#expressions.names, this.#plan.shared, this.#ir.indexRank);
    if (test !== undefined && this.#isChecked && test.holds.length > 0) return test;
    // An unchecked region still gains from a version that does not test whether each thread has returned.
    const mayBeGone = this.#plan.regions.some((other) => this.#losing.has(other) && other.number < region.number);
    return mayBeGone && (test !== undefined || !this.#isChecked) ? { makes: [], holds: [] } : undefined;
  }

  #left(isLosing: boolean): Line[] {
    return isLosing ? generated(['MR_SOME_LEFT']) : [];
  }

  #place(region: Region, body: readonly Stmt[]): Place {
    const storage = this.#storage.of.get(region)!;
    const known = new Set([...this.#plan.shared, ...storage.crossing]);
    for (const stmt of statementsIn(body)) if (stmt.kind === 'declare' || stmt.kind === 'assign') known.delete(stmt.variable);
    const isClosed = storage.crossingArrays.length === 0 && storage.crossing.every((variable) => known.has(variable));
    return { indexRank: this.#ir.indexRank, known, head: this.#own(storage), isClosed };
  }

  /** Declarations of indices and local arrays that only this region uses. */
  #own({ indices, ownArrays }: RegionStorage): string[] {
    const arrays = ownArrays.map((array) => localArray(array, this.#expressions));
    return [...indexDeclarations(this.#ir.indexRank, indices), ...arrays];
  }

  #threads(region: Region, label: string, begin: string, isChecked: boolean): Line[] {
    const { body } = region;
    const expressions = this.#expressions;
    const storage = this.#storage.of.get(region)!;
    const head = [
      ...this.#own(storage),
      ...storage.crossing.map((variable) => `MR_OWN(${this.#declarator(variable)})`),
      ...storage.crossingArrays.map((array) => `MR_OWN_ARRAY(${arrayDeclarator(array, this.#expressions)})`),
    ];
    expressions.exit = { report: 'MR_FAULT', leave: `${this.#losing.has(region) ? 'MR_LEAVE' : 'MR_FINISH'}(${label})` };
    expressions.isChecked = isChecked;
    const own = [...storage.anew, ...body.filter((stmt) => !this.#storage.isOnlyElsewhere(region, stmt))];
    const lines = begin === 'MR_THREADS' ? withFastVersion(own, this.#place(region, own), this.#statements) : this.#statements.block(own);
    expressions.isChecked = this.#isChecked;
    this.#onceMode();
    const { at } = body[0]!;
    return [{ text: `${begin}(${label})`, at }, ...generated(indented(head)), ...nested(lines), { text: `MR_END(${label})`, at }];
  }
}

/** The head of the loop without checks. */
function fastTest(number: number, test: RangeTest): string[] {
  return [...fastDeclaration(number, test), `if (mr_is_fast_${number}) {`];
}

/** `bool mr_is_fast_1 = ...`: no thread has returned, and no index can leave an array. */
export function fastDeclaration(number: number, { makes, holds }: RangeTest): string[] {
  const name = `mr_is_fast_${number}`;
  const ranges = [`if (${name}) {`, ...indented([...makes, `${name} = ${holds.join(' && ')};`]), '}'];
  return [`bool ${name} = !mr_are_some_gone;`, ...(holds.length === 0 ? [] : ranges)];
}

/** Whether a thread can return in the region. */
export function leaves({ body }: Region, isChecked: boolean): boolean {
  return body.some((stmt) =>
    someStmt(stmt, (inner) => {
      if (inner.kind === 'return' || inner.kind === 'assert') return true;
      return isChecked && (inner.kind === 'store' || expressionsOf(inner).some((expr) => someExpr(expr, isAccessing)));
    }),
  );
}

function isAccessing({ kind }: { readonly kind: string }): boolean {
  return kind === 'load' || kind === 'atomic';
}

/** Arguments of the macros that declare per-thread arrays. */
export function arrayDeclarator(array: ArrayRef, { names }: ExpressionEmitter): string {
  return `${storageType(array.dtype)}, ${names.array(array)}, ${elementsOf(array)}`;
}

export function elementsOf(array: ArrayRef): number {
  return array.extents.reduce((product, extent) => product * extent, 1);
}

export function localArray(array: ArrayRef, expressions: ExpressionEmitter): string {
  return `${storageType(array.dtype)} ${expressions.names.array(array)}[${elementsOf(array)}];`;
}
