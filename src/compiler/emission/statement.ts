// Emits IR statements as CUDA C++ for one thread.
import { is16BitFloat } from '../../core/elements/dtype.js';
import { ExpressionEmitter } from './expression.js';
import { loopText } from './loop.js';
import { Names } from './names.js';
import { printCall } from './print.js';
import { CPP_TYPE, type Line, nested, type Parameter, storageType } from './cpp-text.js';
import type { Expr, ScalarType, Stmt, Variable } from '../ir/ir.js';
import type { Assertion } from '../ir/walk.js';

/** Source emitted before a kernel on CUDA only (loop-versioning.ts). */
export interface CudaText {
  /** The kernel's parameters and shared memory, as parameters of another function. */
  readonly parameters: Parameter[];
  /** Source that calls range functions. */
  readonly rangeText: string[];
  /** Functions that the kernel calls, and their count. */
  readonly outlined: Line[];
  functions: number;
}

export class StatementEmitter {
  readonly expressions: ExpressionEmitter;
  /** Variables that are declared before their declaration statement. */
  readonly declared: Set<Variable> = new Set();
  /** A fault report identifies an assertion by its index here. */
  readonly #assertions: readonly Assertion[];
  readonly cuda: CudaText = { parameters: [], rangeText: [], outlined: [], functions: 0 };

  constructor(isChecked: boolean, names: Names = new Names(), assertions: readonly Assertion[] = []) {
    this.#assertions = assertions;
    this.expressions = new ExpressionEmitter(isChecked, names);
  }

  block(body: readonly Stmt[]): Line[] {
    this.expressions.enterBlock();
    const lines = body.flatMap((stmt) => this.statement(stmt));
    this.expressions.leaveBlock();
    return lines;
  }

  statement(stmt: Stmt): Line[] {
    const own = this.#lines(stmt);
    return [...this.taken(stmt.at), ...own];
  }

  /** The statements that the last expression needs before it. */
  taken(at: number): Line[] {
    const { before } = this.expressions;
    this.expressions.before = [];
    return before.map((text) => ({ text, at }));
  }

  #lines(stmt: Stmt): Line[] {
    const { at } = stmt;
    const line = (text: string): Line[] => [{ text, at }];
    const { expressions } = this;
    switch (stmt.kind) {
      case 'declare': {
        const type = stmt.variable.type as ScalarType;
        const value = stmt.value === undefined ? expressions.constant(type, 0) : expressions.emit(stmt.value);
        const name = expressions.names.variable(stmt.variable);
        if (this.declared.has(stmt.variable)) return line(`${name} = ${value};`);
        return line(`${stmt.variable.isConst ? 'const ' : ''}${CPP_TYPE[type]} ${name} = ${value};`);
      }
      case 'assign':
        return line(`${expressions.names.variable(stmt.variable)} = ${expressions.emit(stmt.value)};`);
      case 'store':
        return line(this.#store(stmt));
      case 'effect':
        return line(`${expressions.effect(stmt.expr)};`);
      case 'seed':
        return line(`${expressions.seedCall(stmt)};`);
      case 'fence':
        return line('__threadfence();');
      case 'barrier':
        throw new Error('A barrier stands between regions.');
      case 'print':
        return line(printCall(stmt.parts, this.expressions));
      case 'assert': {
        const test = expressions.emit(stmt.test);
        return line(`if (!(${test})) { MR_FAILED(${this.#assertions.indexOf(stmt)}u); ${expressions.exit.leave} }`);
      }
      case 'if': {
        const test = expressions.emit(stmt.test);
        // The test's checks come before the arms, and must not mix with the arms' own checks.
        const before = this.taken(at);
        const then = nested(this.block(stmt.then));
        const otherwise = stmt.otherwise.length === 0 ? [] : [...line('} else {'), ...nested(this.block(stmt.otherwise))];
        return [...before, ...line(`if (${test}) {`), ...then, ...otherwise, ...line('}')];
      }
      case 'loop':
        return this.#loop(stmt);
      case 'block':
        return [...line('{'), ...nested(this.block(stmt.body)), ...line('}')];
      case 'break':
      case 'continue':
        return line(`${stmt.kind};`);
      case 'return':
        return line(stmt.value === undefined ? expressions.exit.leave : `return ${expressions.emit(stmt.value)};`);
    }
  }

  #store(stmt: Extract<Stmt, { kind: 'store' }>): string {
    const { array, indices, value } = stmt;
    // The index is evaluated before the value, in source order.
    const element = this.expressions.elementBefore(array, indices, [value]);
    const text = this.expressions.emit(value);
    const type = storageType(array.dtype);
    if (is16BitFloat(array.dtype)) {
      this.expressions.helpers.add(`mr_to_${array.dtype}`);
      return `${element} = mr_to_${array.dtype}(${text});`;
    }
    const isNarrow = type !== CPP_TYPE[value.type as ScalarType];
    return `${element} = ${isNarrow ? `(${type})${value.kind === 'const' || value.kind === 'variable' ? text : `(${text})`}` : text};`;
  }

  #step({ at, variable, value }: Extract<Stmt, { kind: 'assign' }>): Line[] {
    const { names } = this.expressions;
    return [{ text: `${names.variable(variable)} = ${this.expressions.emitIndex(value)};`, at }];
  }

  #loop(stmt: Extract<Stmt, { kind: 'loop' }>): Line[] {
    const { expressions } = this;
    expressions.enterBlock();
    const init = stmt.init.flatMap((inner) => this.statement(inner));
    const test = expressions.capture(() => (stmt.test === undefined ? undefined : expressions.emit(stmt.test)));
    const update = stmt.update.flatMap((inner) => (counts(inner, stmt.test) ? this.#step(inner) : this.block([inner])));
    const body = this.block(stmt.body);
    expressions.leaveBlock();
    const isPlainInit = init.length === 1 && stmt.init[0]!.kind === 'declare';
    const isPlainUpdate = stmt.update.every((inner) => inner.kind === 'assign') && update.length === stmt.update.length;
    return loopText(stmt, { init, isPlainInit, test, update, isPlainUpdate, body }, () => expressions.names.temporary());
  }
}

/** Whether it adds a constant to a counter that the test bounds, so that it does not overflow. */
function counts(stmt: Stmt, test: Expr | undefined): stmt is Extract<Stmt, { kind: 'assign' }> {
  if (stmt.kind !== 'assign' || stmt.value.kind !== 'arithmetic' || !/^[-+]$/.test(stmt.value.op)) return false;
  const { left, right } = stmt.value;
  const isCounter = (expr: Expr): boolean => expr.kind === 'variable' && expr.variable === stmt.variable;
  const isBound = test?.kind === 'compare' && /^[<>]/.test(test.op) && (isCounter(test.left) || isCounter(test.right));
  return isBound && isCounter(left) && right.kind === 'const';
}
