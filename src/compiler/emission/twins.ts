// A second form of a loop for CUDA. A check in a loop costs more than its comparison: the loads behind it wait. So a
// thread asks once, before, whether it can leave the bounds of an array, and if not runs the same text without checks.
//
// The second form also takes rows for as wide as the constants that index them suggest, where they are: in
// `bodies[k][0]` to `bodies[k][3]` four. Then places within a row and the way to the next one are part of the
// instruction, and loads of several turns are under way at once.
import type { ArrayRef, Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { bodiesOf, expressionsOf, someExpr, statementsIn } from '../ir/walk.js';
import { rangeTest } from './ranges.js';
import { RANGE_PARTS, RANGE_TYPE } from './ranges.gen.js';
import type { StatementEmitter } from './statement.js';
import { generated, type Line, nested } from './text.js';

interface Twin {
  readonly makes: readonly string[];
  readonly holds: readonly string[];
  readonly widths: ReadonlyMap<ArrayRef, number>;
}

/** What one thread does with `body`, in one form or in two. `known`: variables that have their values before it and keep them. */
export function withTwin(
  body: readonly Stmt[],
  { indexRank }: KernelIr,
  known: ReadonlySet<Variable>,
  statements: StatementEmitter,
): Line[] {
  const { expressions } = statements;
  const { names, isChecked } = expressions;
  const twin = planTwin(body, statements, known, indexRank);
  if (twin === undefined) return statements.block(body);
  for (const text of [...twin.makes, ...twin.holds]) statements.rangeText.push(text);
  expressions.isChecked = false;
  const widths = [...twin.widths].map(([array, width]) => `const int ${names.extent(array, array.rank - 1)} = ${width};`);
  const twinLines = [...generated(widths), ...statements.block(body)];
  expressions.isChecked = isChecked;
  return [
    ...generated(['#ifndef MILLRACE_CPU_DEVICE', ...twin.makes, `if (${twin.holds.join(' && ')}) {`]),
    ...nested(twinLines),
    ...generated(['} else', '#endif', '{']),
    ...nested(statements.block(body)),
    ...generated(['}']),
  ];
}

/** The functions on ranges that pieces of text use, for CUDA: the CPU device has a header of them. */
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

function planTwin(
  body: readonly Stmt[],
  { expressions: { names, isChecked } }: StatementEmitter,
  known: ReadonlySet<Variable>,
  indexRank: number,
): Twin | undefined {
  const inLoops = arraysInLoops(body);
  const widths = guessedWidths(body, inLoops);
  const guesses = [...widths].map(([array, width]) => `${names.extent(array, array.rank - 1)} == ${width}`);
  if (!isChecked) return guesses.length === 0 ? undefined : { makes: [], holds: guesses, widths };
  // What the text fixes, compilers see by themselves.
  if (![...inLoops].some((array) => array.extents.length === 0)) return undefined;
  const test = rangeTest(body, names, known, indexRank, 'thread');
  if (test === undefined || test.holds.length === 0) return undefined;
  return { makes: test.makes, holds: [...guesses, ...test.holds], widths };
}

/** Which element of which array: of a load, a store, an atomic operation. */
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

/** Of those arrays of rows whose last index is a constant wherever it stands. */
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
