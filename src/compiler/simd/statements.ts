// Emits IR statements as C++ on SIMD vectors. Uniform branches and loops become C++ branches and loops; in divergent ones masks hold the
// active lanes, and a loop runs until no lane is active.
import { ASSERTION_PARAMETER } from '../../core/channel/build-spec.js';
import { counterOf } from '../analysis/conditions.js';
import { loopText } from '../emission/loop.js';
import { CPP_TYPE, type Line, nested, stripped } from '../emission/cpp-text.js';
import type { Expr, Stmt, Variable } from '../ir/ir.js';
import { type Assertion, expressionsOf } from '../ir/walk.js';
import { decided, type SimdExpressions } from './expressions.js';
import { hasPartial, isBrief, mayLose, sizeOf, touchesMemory } from './flow.js';
import { simdType } from './operators.js';
import type { Scope, Scopes } from './mask-scopes.js';

type Loop = Extract<Stmt, { kind: 'loop' }>;

/** The scopes that `break` and `continue` of a loop leave. */
interface LoopScopes {
  /** The lanes still in the loop; undefined when all lanes leave it together. */
  readonly live: Scope | undefined;
  /** The lanes still in this iteration; undefined when all lanes end it together. */
  readonly turn: Scope | undefined;
}

/** Number of expressions that may be emitted twice, for full groups and for the others. */
const MOST_TWICE = 400;

export class SimdStatements {
  readonly expressions: SimdExpressions;
  /** Variables that are declared before their declaration statement. */
  readonly declared: ReadonlySet<Variable>;
  readonly #assertions: readonly Assertion[];
  readonly #partedLoops: ReadonlySet<Stmt>;
  readonly #assigned: ReadonlySet<Variable>;
  /** The scope in which a variable was declared: all its active lanes have the variable. */
  readonly #homes = new Map<Variable, Scope>();
  #loop: LoopScopes | undefined;
  #twice = 0;
  /** The variable that receives a helper's result. */
  readonly #result: string | undefined;

  constructor(
    expressions: SimdExpressions,
    facts: {
      readonly declared: ReadonlySet<Variable>;
      readonly assertions: readonly Assertion[];
      readonly partedLoops: ReadonlySet<Stmt>;
      readonly assigned: ReadonlySet<Variable>;
      readonly result?: string;
    },
  ) {
    this.expressions = expressions;
    this.declared = facts.declared;
    this.#assertions = facts.assertions;
    this.#partedLoops = facts.partedLoops;
    this.#assigned = facts.assigned;
    this.#result = facts.result;
  }

  get #scopes(): Scopes {
    return this.expressions.scopes;
  }

  /** The statements of a scope, followed by its label if some jump targets it. */
  scoped(scope: Scope, body: () => Line[], at: number): Line[] {
    const lines = this.#scopes.within(scope, body);
    return scope.isTarget ? [{ text: '{', at }, ...nested(lines), { text: `} ${scope.label}:;`, at }] : lines;
  }

  block(body: readonly Stmt[]): Line[] {
    return this.#inBlock(() => this.#list(body));
  }

  #inBlock<T>(run: () => T): T {
    const { scalar, memory } = this.expressions;
    scalar.enterBlock();
    const result = memory.inBlock(run);
    scalar.leaveBlock();
    return result;
  }

  #list(body: readonly Stmt[]): Line[] {
    const lines: Line[] = [];
    for (const [n, stmt] of body.entries()) {
      const scope = this.#scopes.current;
      const wasFull = scope.isFull;
      const { result, hasLost } = this.#scopes.watch(() => this.#statement(stmt));
      lines.push(...result);
      if (!hasLost) continue;
      const rest = body.slice(n + 1);
      if (rest.length === 0) break;
      lines.push({ text: this.#scopes.goOn(), at: stmt.at });
      if (wasFull && touchesMemory(rest) && this.#mayTwice(rest)) return [...lines, ...this.#twiceText(rest, stmt.at)];
    }
    return lines;
  }

  #mayTwice(body: readonly Stmt[]): boolean {
    const size = sizeOf(body);
    if (this.#twice + size > MOST_TWICE) return false;
    this.#twice += size;
    return true;
  }

  /** Emits the statements twice: without masks for full groups, and with masks. */
  #twiceText(body: readonly Stmt[], at: number): Line[] {
    const scope = this.#scopes.current;
    const outer = this.#scopes.all.map((one) => [one, one.isFull] as const);
    scope.isFull = true;
    const full = this.block(body);
    for (const [one, isFull] of outer) one.isFull = isFull && one !== scope;
    const some = this.block(body);
    const line = (text: string): Line => ({ text, at });
    return [line(`if (mr_all(${scope.mask})) {`), ...nested(full), line('} else {'), ...nested(some), line('}')];
  }

  #statement(stmt: Stmt): Line[] {
    return this.expressions.whole(expressionsOf(stmt), () => {
      const own = this.#lines(stmt);
      const { before } = this.expressions.scalar;
      this.expressions.scalar.before = [];
      return [...before.map((text) => ({ text, at: stmt.at })), ...own];
    });
  }

  #lines(stmt: Stmt): Line[] {
    const { at } = stmt;
    const line = (...texts: string[]): Line[] => texts.map((text) => ({ text, at }));
    const { expressions } = this;
    switch (stmt.kind) {
      case 'declare':
        return line(this.#declare(stmt.variable, stmt.value));
      case 'assign':
        return line(this.#assign(stmt.variable, stmt.value));
      case 'store':
        return line(expressions.memory.store(stmt));
      case 'effect':
        if (stmt.expr.kind === 'atomic') expressions.memory.atomic(stmt.expr, false);
        else expressions.either(stmt.expr);
        return [];
      case 'fence':
        return line('__threadfence();');
      case 'assert':
        return this.#assert(stmt);
      case 'if':
        return this.#if(stmt);
      case 'loop':
        return this.#inBlock(() => this.#loopLines(stmt));
      case 'block':
        return [...line('{'), ...nested(this.block(stmt.body)), ...line('}')];
      case 'break':
      case 'continue':
        return line(...this.#jump(stmt.kind));
      case 'return':
        return line(...this.#return(stmt.value));
      default:
        throw new Error(`Lanes have no ${stmt.kind}.`);
    }
  }

  #declare(variable: Variable, value: Expr | undefined): string {
    const { expressions } = this;
    const { names } = expressions.scalar;
    const type = decided(variable.type);
    const name = names.variable(variable);
    const isDeclared = this.declared.has(variable);
    if (!isDeclared) this.#homes.set(variable, this.#scopes.current);
    const own: Expr = { kind: 'variable', type: variable.type, variable };
    if (!isDeclared && !expressions.isVarying(own)) {
      const text = value === undefined ? expressions.scalar.constant(type, 0) : stripped(expressions.single(value));
      return `${CPP_TYPE[type]} ${name} = ${text};`;
    }
    const step = value === undefined || isDeclared || this.#assigned.has(variable) ? undefined : expressions.strides.stepOf(value);
    if (step !== undefined && step !== '0') {
      const text = stripped(expressions.single(value!));
      expressions.strides.set(variable, expressions.kept(step));
      return `const int ${name} = ${text};`;
    }
    const text = value === undefined ? `${simdType(type)}{}` : stripped(expressions.vector(value));
    // Lanes that left never read the variable again, so no mask is needed.
    return isDeclared ? `${name} = ${text};` : `${simdType(type)} ${name} = ${text};`;
  }

  #assign(variable: Variable, value: Expr): string {
    const { expressions } = this;
    const name = expressions.scalar.names.variable(variable);
    const own: Expr = { kind: 'variable', type: variable.type, variable };
    if (expressions.strides.has(variable) || !expressions.isVarying(own)) return `${name} = ${stripped(expressions.single(value))};`;
    const text = expressions.vector(value);
    const scope = this.#scopes.current;
    const home = this.#homes.get(variable) ?? this.#scopes.all[0]!;
    return scope === home || scope.isFull
      ? `${name} = ${stripped(text)};`
      : `${name} = mr_choose(${scope.mask}, ${stripped(text)}, ${name});`;
  }

  #assert(stmt: Assertion): Line[] {
    const { expressions } = this;
    const { test, at } = stmt;
    const failed = expressions.named('bool', `(${this.#scopes.current.mask} & ~${expressions.vector(test)})`);
    const number = this.#assertions.indexOf(stmt);
    const leave = this.#scopes.leave(failed, this.#scopes.all[0]!);
    return [
      {
        text: `if (mr_any(${failed})) { MR_FAULT_OF(${failed})(${ASSERTION_PARAMETER}u, 0u, ${number}, 0); ${leave.join(' ')} ${this.#scopes.goOn()} }`,
        at,
      },
    ];
  }

  #return(value: Expr | undefined): string[] {
    const { expressions } = this;
    const result = this.#result;
    const leave = this.#scopes.leaveTogether.bind(this.#scopes, this.#scopes.all[0]!);
    if (value === undefined || result === undefined) return leave();
    const { mask } = this.#scopes.current;
    const text = `${result} = mr_choose(${mask}, ${stripped(expressions.vector(value))}, ${result});`;
    return [text, ...leave()];
  }

  #jump(kind: 'break' | 'continue'): string[] {
    // The loop encloses the region, so lanes that go to its next iteration leave the region.
    if (this.#loop === undefined) return this.#scopes.leaveTogether(this.#scopes.all[0]!);
    const { live, turn } = this.#loop;
    const scope = kind === 'break' ? live : turn;
    // Without a scope of the loop, all lanes jump together.
    if (scope === undefined) return [`${kind};`];
    return this.#scopes.leaveTogether(scope);
  }

  #if(stmt: Extract<Stmt, { kind: 'if' }>): Line[] {
    const { at } = stmt;
    const { expressions } = this;
    const line = (text: string): Line => ({ text, at });
    const before = (): Line[] => {
      const lines = expressions.scalar.before.map(line);
      expressions.scalar.before = [];
      return lines;
    };
    if (!expressions.isVarying(stmt.test)) {
      const test = stripped(expressions.single(stmt.test));
      const head = before();
      const then = nested(this.block(stmt.then));
      const otherwise = stmt.otherwise.length === 0 ? [] : [line('} else {'), ...nested(this.block(stmt.otherwise))];
      return [...head, line(`if (${test}) {`), ...then, ...otherwise, line('}')];
    }
    const test = this.#asked(stmt);
    const head = before();
    const outer = this.#scopes.current;
    const isSplit = outer.isFull && touchesMemory(stmt.then) && this.#mayTwice(stmt.then);
    const then = this.#under(test, stmt.then, at, isSplit);
    const otherwise = stmt.otherwise.length === 0 ? [] : this.#under(`~${test}`, stmt.otherwise, at, false);
    return [line('{'), ...nested([...head, ...then, ...otherwise]), line('}')];
  }

  /** Stores the mask in a constant, since the first branch may assign variables of the condition. */
  #asked({ test, otherwise }: Extract<Stmt, { kind: 'if' }>): string {
    const { expressions } = this;
    const text = expressions.vector(test);
    if (test.kind !== 'variable' || otherwise.length === 0) return expressions.named('bool', text);
    const name = expressions.temporary();
    expressions.push(`const mr_lane_mask ${name} = ${text};`);
    return name;
  }

  /** Emits statements for some of the lanes; they are skipped when there are none. */
  #under(lanes: string, body: readonly Stmt[], at: number, isSplit: boolean): Line[] {
    if (body.length === 0) return [];
    const line = (text: string): Line => ({ text, at });
    const outer = this.#scopes.current;
    const scope = this.#scopes.make(false);
    const mask = outer.isFull ? lanes : `${outer.mask} & ${lanes}`;
    const inner = this.scoped(scope, () => (isSplit ? this.#twiceText(body, at) : this.block(body)), at);
    if (isBrief(body) && !scope.isTarget)
      return [line('{'), line(`  const mr_lane_mask ${scope.mask} = ${mask};`), ...nested(inner), line('}')];
    return [line(`if (mr_lane_mask ${scope.mask} = ${mask}; mr_any(${scope.mask})) {`), ...nested(inner), line('}')];
  }

  #loopLines(stmt: Loop): Line[] {
    const outer = this.#loop;
    if (mayLose(stmt.body, this.expressions.scalar.isChecked) || mayLose(stmt.update, this.expressions.scalar.isChecked))
      this.#scopes.expectLoss();
    const lines = this.#partedLoops.has(stmt) ? this.#parted(stmt) : this.#uniformLoop(stmt);
    this.#loop = outer;
    return lines;
  }

  /** Keeps the counter's stride: all lanes still in the loop have counted as often as lane 0 has or would have. */
  #init(stmt: Loop): Line[] {
    const { strides, scalar } = this.expressions;
    const counter = counterOf(stmt);
    const own = counter === undefined ? undefined : ({ kind: 'variable', type: 'i32', variable: counter.variable } as const);
    return stmt.init.flatMap((inner): Line[] => {
      const isCounter = inner.kind === 'declare' && own !== undefined && inner.variable === counter!.variable;
      if (!isCounter || counter!.how === 'shrink' || this.declared.has(inner.variable) || !this.expressions.isVarying(own))
        return this.#statement(inner);
      const step = strides.stepOf(counter!.from);
      if (step === undefined || step === '0' || this.expressions.isVarying(counter!.step)) return this.#statement(inner);
      const text = stripped(this.expressions.single(counter!.from));
      strides.set(inner.variable, this.expressions.kept(step));
      const before = scalar.before.map((one) => ({ text: one, at: inner.at }));
      scalar.before = [];
      return [...before, { text: `int ${scalar.names.variable(inner.variable)} = ${text};`, at: inner.at }];
    });
  }

  /** A loop in which all active lanes run the same iterations. */
  #uniformLoop(stmt: Loop): Line[] {
    const { expressions } = this;
    const { scalar } = expressions;
    const init = this.#init(stmt);
    const test = scalar.capture(() => (stmt.test === undefined ? undefined : stripped(expressions.single(stmt.test))));
    const outer = this.#scopes.current;
    const isPartial = hasPartial(stmt, 'continue', (expr) => expressions.isVarying(expr));
    const turn = isPartial ? this.#scopes.make(outer.isFull) : undefined;
    this.#loop = { live: undefined, turn };
    const update = this.#watched(() => this.block(stmt.update), stmt.at);
    const body = turn === undefined ? this.#watched(() => this.block(stmt.body), stmt.at) : this.#turn(turn, outer, stmt);
    const isPlainInit = init.length === 1 && stmt.init[0]?.kind === 'declare' && !this.declared.has(stmt.init[0].variable);
    const isPlainUpdate = stmt.update.every((inner) => inner.kind === 'assign') && update.length === stmt.update.length;
    return loopText(stmt, { init, isPlainInit, test, update, isPlainUpdate, body }, () => expressions.temporary());
  }

  /** One iteration, which some lanes may leave for the next. */
  #turn(turn: Scope, outer: Scope, stmt: Loop): Line[] {
    const { at } = stmt;
    const body = this.#watched(() => this.scoped(turn, () => this.block(stmt.body), at), at);
    return [{ text: `mr_lane_mask ${turn.mask} = ${outer.mask};`, at }, ...body];
  }

  /** Code that a loop repeats: jumps out when no lane is left. */
  #watched(run: () => Line[], at: number): Line[] {
    const { result, hasLost } = this.#scopes.watch(run);
    return hasLost ? [...result, { text: this.#scopes.goOn(), at }] : result;
  }

  /** A loop that lanes leave at different iterations: it runs while any lane is active. */
  #parted(stmt: Loop): Line[] {
    const { at } = stmt;
    const line = (text: string): Line => ({ text, at });
    const init = this.#init(stmt);
    const outer = this.#scopes.current;
    const live = this.#scopes.make(false);
    const turn = this.#scopes.make(false);
    this.#loop = { live, turn };
    const inside = this.#scopes.within(live, (): Line[] => {
      const test = this.#liveTest(stmt.test, live, at);
      const body = this.#turn(turn, live, stmt);
      const update = nested(this.#watched(() => this.block(stmt.update), at));
      const isFor = stmt.tested === 'before';
      return [...(isFor ? test : []), ...body, ...update, ...(isFor ? [] : test)];
    });
    const loop = [line('for (;;) {'), ...nested(inside), line('}')];
    const labelled = live.isTarget ? [line('{'), ...nested(loop), line(`} ${live.label}:;`)] : loop;
    return [line('{'), ...nested([...init, line(`mr_lane_mask ${live.mask} = ${outer.mask};`), ...labelled]), line('}')];
  }

  #liveTest(test: Expr | undefined, live: Scope, at: number): Line[] {
    if (test === undefined) return [];
    const { expressions } = this;
    const isVarying = expressions.isVarying(test);
    const lines = expressions.captured(() => [
      isVarying ? `${live.mask} = ${live.mask} & ${expressions.vector(test)};` : `if (!${expressions.single(test)}) break;`,
    ]);
    return [...lines, ...(isVarying ? [`if (!mr_any(${live.mask})) break;`] : [])].map((text) => ({ text, at }));
  }
}
