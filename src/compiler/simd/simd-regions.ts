// Emits a region on SIMD vectors: the block's threads in groups. Full groups of a block run code without masks and checks if ranges prove
// (or `unchecked` assumes) that no index leaves an array; all other groups run code with both.
import type { Plan } from '../analysis/region-plan.js';
import { analyse } from '../analysis/uniformity.js';
import type { StatementEmitter } from '../emission/statement.js';
import { arrayDeclarator, elementsOf, fastDeclaration, indexDeclarations, leaves, type RegionParts } from '../emission/region-emitter.js';
import { generated, indented, type Line, nested } from '../emission/cpp-text.js';
import type { KernelIr, ScalarType, Stmt, Variable } from '../ir/ir.js';
import { assertionsIn, assignedIn, statementsIn } from '../ir/walk.js';
import { readsAlikeInRows } from './column-order.js';
import { SimdExpressions } from './expressions.js';
import { narrow, type Narrowed } from './partial-rows.js';
import { simdArray, simdType } from './operators.js';
import { Scopes } from './mask-scopes.js';
import { SimdStatements } from './statements.js';
import type { SimdForm } from './block-fusion.js';

export class SimdRegions {
  readonly #ir: KernelIr;
  readonly #isChecked: boolean;
  readonly #statements: StatementEmitter;
  readonly #assigned: ReadonlySet<Variable>;
  readonly #crossing: ReadonlySet<Variable>;
  /** Variables of which the block holds one copy. */
  readonly #shared: ReadonlySet<Variable>;
  readonly #uniformity: ReturnType<typeof analyse>;
  readonly #scopes = new Scopes();
  readonly #form: SimdForm;

  /** `crossing`: variables that threads keep from one region to the next. */
  constructor(ir: KernelIr, plan: Plan, isChecked: boolean, statements: StatementEmitter, crossing: ReadonlySet<Variable>, form: SimdForm) {
    this.#form = form;
    this.#shared = plan.shared;
    this.#ir = ir;
    this.#isChecked = isChecked;
    this.#statements = statements;
    this.#crossing = crossing;
    this.#assigned = assignedIn(ir.body);
    this.#uniformity = analyse(ir, { indexRank: ir.indexRank, differing: crossing });
  }

  write(parts: RegionParts): Line[] {
    const { number } = parts.region;
    const isProven = parts.test !== undefined || !this.#isChecked;
    const narrowed = narrow(parts, this.#ir.indexRank, this.#shared);
    const bound = narrowed && this.#bound(narrowed);
    const width = narrowed === undefined ? 'mr_box_of_block.width' : `mr_width_${number}`;
    const inside = narrowed === undefined ? parts : { ...parts, body: narrowed.body };
    const isFast = isProven ? `mr_is_fast_${number}` : 'false';
    const way = readsAlikeInRows(inside.body, this.#ir.indexRank, this.#shared) ? 'MR_FULL_GROUPS_BY_COLUMN' : 'MR_FULL_GROUPS';
    const full = isProven ? this.#groups(inside, `${way}(${isFast}`, width, true) : [];
    const some = this.#groups(inside, `MR_GROUPS(${isFast}`, width, false);
    const fast = isProven ? fastDeclaration(number, parts.test ?? { makes: [], holds: [] }) : [];
    if (this.#form.isFused) fast.push(`MR_ONE_BY_ONE_UNLESS(${isFast})`);
    // If no thread can leave, the test for threads that left is omitted.
    const isAsked = !isProven || leaves(parts.region, false);
    const left = parts.isLosing ? [`${isAsked ? '' : `if (!mr_is_fast_${number}) `}MR_SOME_LEFT`] : [];
    return [
      ...generated(['{', ...indented([...fast, ...(bound === undefined ? [] : [`const int ${width} = ${bound};`])])]),
      ...nested([...full, ...some]),
      ...generated([...indented(left), '}']),
    ];
  }

  /** The number of threads of a row below the bound. */
  #bound({ index, bound, beyond }: Narrowed): string {
    const text = this.#statements.expressions.emit(bound);
    const first = index === 'thread' ? '' : ' - (long long)blockIdx.x.value * blockDim.x.value';
    return `mr_below_bound(mr_box_of_block.width, (long long)(${text})${first}${beyond === 0 ? '' : ` + ${beyond}`})`;
  }

  #groups({ region, storage, body, isLosing, test }: RegionParts, begin: string, width: string, isFull: boolean): Line[] {
    const scalar = this.#statements.expressions;
    const { at } = region.body[0]!;
    const expressions = new SimdExpressions(scalar, this.#scopes, (expr) => this.#uniformity.causeOf(expr), this.#form.narrow);
    expressions.isProven = isFull && this.#isChecked && test !== undefined;
    const statements = new SimdStatements(expressions, {
      declared: this.#crossing,
      assertions: assertionsIn(this.#ir),
      partedLoops: this.#uniformity.partedLoops,
      assigned: this.#assigned,
    });
    const root = this.#scopes.make(isFull);
    scalar.isChecked = this.#isChecked && !isFull;
    const lines = statements.scoped(root, () => statements.block([...storage.anew, ...body]), at);
    scalar.isChecked = this.#isChecked;
    const all = `${root.mask}_at_first`;
    const isLeft = isLosing && (root.isLosing || root.isTarget);
    const head = [
      ...(isLeft ? [`const mr_lane_mask ${all} = ${root.mask};`] : []),
      ...indexDeclarations(this.#ir.indexRank, storage.indices),
      ...storage.crossing.map((variable) => this.#loaded(variable, isFull ? '' : `, ${root.mask}`)),
      ...storage.crossingArrays.map((array) => `MR_OWN_ARRAY(${arrayDeclarator(array, scalar)})`),
      ...storage.ownArrays.map((array) => simdArray(array, scalar.names.array(array), elementsOf(array))),
    ];
    const written = storage.crossing.filter((variable) => isWritten(body, variable));
    const tail = [
      ...written.map((variable) => this.#stored(variable, isFull ? '' : `, ${root.mask}`)),
      ...(isLeft ? [`mr_store_mask(mr_gone + mr_thread, mr_lane_mask_of(true), ${all} & ~${root.mask});`] : []),
    ];
    return [
      { text: `${begin}, ${root.mask}, ${width})`, at },
      ...generated(indented(head)),
      ...nested(lines),
      ...generated(indented(tail)),
      { text: 'MR_END_GROUPS', at },
    ];
  }

  #loaded(variable: Variable, mask: string): string {
    const type = variable.type as ScalarType;
    const name = this.#statements.expressions.names.variable(variable);
    const lanes = mask === '' ? ', mr_lane_mask_of(true)' : mask;
    const load = type === 'bool' ? `mr_load_mask(mr_of_${name} + mr_thread${lanes})` : `mr_load(mr_of_${name} + mr_thread${mask})`;
    return `${simdType(type)} ${name} = ${load};`;
  }

  /** No code reads lanes that left, so no mask is needed. g++ makes a masked store a call, which may change any memory. */
  #stored(variable: Variable, mask: string): string {
    const name = this.#statements.expressions.names.variable(variable);
    const isBool = variable.type === 'bool';
    return `${isBool ? 'mr_store_mask' : 'mr_store'}(mr_of_${name} + mr_thread, ${name}${mask === '' && isBool ? ', mr_lane_mask_of(true)' : mask});`;
  }
}

function isWritten(body: readonly Stmt[], variable: Variable): boolean {
  for (const stmt of statementsIn(body)) {
    if ((stmt.kind === 'declare' || stmt.kind === 'assign') && stmt.variable === variable) return true;
  }
  return false;
}
