// Loop versioning for CUDA. An index check in a loop costs more than its comparison, because the loads behind it wait for it. So a thread
// tests once, before the loop, whether any index can leave the array, and if not runs a version without checks.
//
// That version also assumes row widths where constants suggest them: `bodies[k][0]` to `bodies[k][3]` suggest 4. Offsets within a row and
// the row stride then become immediates, and loads of several iterations overlap.
import type { ArrayRef, Expr, KernelIr, ScalarType, Stmt, Variable } from '../ir/ir.js';
import { bodiesOf, expressionsOf, someExpr, someExprOf, statementsIn } from '../ir/walk.js';
import { rangeTest } from './ranges.js';
import { RANGE_PARTS, RANGE_TYPE } from './ranges.gen.js';
import type { StatementEmitter } from './statement.js';
import { CPP_TYPE, declaration, generated, indented, type Line, nested } from './cpp-text.js';

interface FastVersion {
  readonly makes: readonly string[];
  readonly holds: readonly string[];
  readonly widths: ReadonlyMap<ArrayRef, number>;
}

/** The position of the emitted statements. */
export interface Place {
  readonly indexRank: KernelIr['indexRank'];
  /** Variables that are initialised before the statements and that the statements do not change. */
  readonly known: ReadonlySet<Variable>;
  /** Lines that declare the indices and local arrays. */
  readonly head: readonly string[];
  /** Whether the statements use no per-thread state other than `known`, and set none that later statements use. */
  readonly isClosed: boolean;
}

/** Emits `body` for one thread, in one version or two. */
export function withFastVersion(body: readonly Stmt[], place: Place, statements: StatementEmitter): Line[] {
  const { expressions } = statements;
  const { names, isChecked } = expressions;
  const fast = planFastVersion(body, statements, place);
  if (fast === undefined) return statements.block(body);
  statements.cuda.rangeText.push(...fast.makes, ...fast.holds);
  expressions.isChecked = false;
  const widths = [...fast.widths].map(([array, width]) => `const int ${names.extent(array, array.rank - 1)} = ${width};`);
  const fastLines = [...generated(widths), ...statements.block(body)];
  expressions.isChecked = isChecked;
  const first = generated([...fast.makes, `if (${fast.holds.join(' && ')}) {`]);
  const plain = statements.block(body);
  if (!isChecked || !place.isClosed) {
    return [
      ...generated(['#ifndef MILLRACE_CPU_DEVICE']),
      ...first,
      ...nested(fastLines),
      ...generated(['} else', '#endif', '{']),
      ...nested(plain),
      ...generated(['}']),
    ];
  }
  const call = asFunction(body, place, statements);
  return [
    ...generated(['#ifndef MILLRACE_CPU_DEVICE']),
    ...first,
    ...nested(fastLines),
    ...generated([`} else if (!${call}) {`, `  ${expressions.exit.leave}`, '}', '#else']),
    ...plain,
    ...generated(['#endif']),
  ];
}

/**
 * Emits the checked version as a function of its own, and returns a call to it, which is false when the thread leaves the kernel. In the
 * same function, ptxas schedules the unchecked version worse (n-body on an H200: 3.5 ms instead of 2.6).
 */
function asFunction(body: readonly Stmt[], { known, head }: Place, statements: StatementEmitter): string {
  const { expressions, cuda } = statements;
  const used = [...known].filter((variable) =>
    body.some((stmt) => someExprOf(stmt, (expr) => expr.kind === 'variable' && expr.variable === variable)),
  );
  const name = `mr_checked_${++cuda.functions}`;
  const parameters = [
    ...cuda.parameters,
    ...used.map((variable) => ({ type: CPP_TYPE[variable.type as ScalarType], name: expressions.names.variable(variable) })),
  ];
  const { exit } = expressions;
  expressions.exit = { report: 'MR_FAULT', leave: 'return false;' };
  const lines = statements.block(body);
  expressions.exit = exit;
  cuda.outlined.push(
    ...generated(['#ifndef MILLRACE_CPU_DEVICE']),
    ...generated([`static __device__ __noinline__ bool ${name}(${parameters.map(declaration).join(', ')}) {`, ...indented(head)]),
    ...nested(lines),
    ...generated(['  return true;', '}', '#endif']),
  );
  return `${name}(${parameters.map((one) => one.name).join(', ')})`;
}

/** The range functions that the sources use, for CUDA. The CPU device has a header of them. */
export function rangePrelude(texts: readonly string[]): string[] {
  const used = new Set<string>();
  const note = (text: string): void => {
    for (const [name] of text.matchAll(/\bmr_\w+/g)) {
      const own = RANGE_PARTS[name];
      if (own === undefined || used.has(name)) continue;
      used.add(name);
      note(own);
    }
  };
  texts.forEach(note);
  if (used.size === 0) return [];
  const parts = Object.entries(RANGE_PARTS).flatMap(([name, text]) => (used.has(name) ? text.split('\n') : []));
  return ['#ifndef MILLRACE_CPU_DEVICE', ...RANGE_TYPE.split('\n'), ...parts, '#endif'];
}

function planFastVersion(
  body: readonly Stmt[],
  { expressions: { names, isChecked } }: StatementEmitter,
  { known, indexRank }: Place,
): FastVersion | undefined {
  const inLoops = arraysInLoops(body);
  const widths = guessedWidths(body, inLoops);
  const guesses = [...widths].map(([array, width]) => `${names.extent(array, array.rank - 1)} == ${width}`);
  if (!isChecked) return guesses.length === 0 ? undefined : { makes: [], holds: guesses, widths };
  // Compilers see fixed extents themselves.
  if (![...inLoops].some((array) => array.extents.length === 0)) return undefined;
  const test = rangeTest(body, names, known, indexRank, 'thread');
  if (test === undefined || test.holds.length === 0) return undefined;
  return { makes: test.makes, holds: [...guesses, ...test.holds], widths };
}

/** An array and the indices of a load, store or atomic. */
interface Access {
  readonly array: ArrayRef;
  readonly indices: readonly Expr[];
}

function* accessesOf(stmt: Stmt): Generator<Access, void, undefined> {
  if (stmt.kind === 'store') yield stmt;
  const found: Access[] = [];
  for (const expr of expressionsOf(stmt)) {
    someExpr(expr, (part) => {
      if (part.kind === 'load' || part.kind === 'atomic') found.push(part);
      return false;
    });
  }
  yield* found;
}

function arraysInLoops(body: readonly Stmt[]): Set<ArrayRef> {
  const arrays = new Set<ArrayRef>();
  for (const loop of statementsIn(body)) {
    if (loop.kind !== 'loop') continue;
    for (const stmt of [loop, ...statementsIn(bodiesOf(loop).flat())]) for (const { array } of accessesOf(stmt)) arrays.add(array);
  }
  return arrays;
}

/** Guesses the width of each array with rows whose last index is always a constant. */
function guessedWidths(body: readonly Stmt[], arrays: ReadonlySet<ArrayRef>): Map<ArrayRef, number> {
  const widths = new Map<ArrayRef, number>();
  for (const stmt of statementsIn(body)) {
    for (const { array, indices } of accessesOf(stmt)) {
      if (array.rank < 2 || array.extents.length > 0 || !arrays.has(array)) continue;
      const last = indices.at(-1)!;
      const width = last.kind === 'const' ? last.value + 1 : NaN;
      widths.set(array, Math.max(widths.get(array) ?? 1, width));
    }
  }
  for (const [array, width] of widths) if (!(width > 1)) widths.delete(array);
  return widths;
}
