// Prints kernel IR as text that tests compare: one line per statement, with types where they are not obvious.
import type { ArrayRef, Expr, KernelIr, Stmt } from '../../../src/compiler/ir/ir.js';
import { lowerKernel } from '../../../src/compiler/lowering/lower.js';
import type { Constants, KernelBody } from '../../../src/compiler/language/language.js';
import { parseFunction } from '../../../src/compiler/source/parse.js';
import type { Params } from '../../../src/core/kernels/kernel.js';

/** The IR of a body, before emission. */
export function irOf<const P extends Params, C extends Constants = Record<never, never>>(
  params: P,
  body: KernelBody<P, C, Record<never, never>>,
  constants?: C,
): KernelIr {
  return lowerKernel('k', parseFunction(body), params, constants ?? {}, new Map());
}

export function irText(ir: KernelIr): string {
  return [...ir.arrays.map(arrayText), ...blockText(ir.body)].join('\n');
}

function arrayText(array: ArrayRef): string {
  return `${array.space} ${array.name} #${array.number}: ${array.dtype}[${array.extents.join(', ')}]`;
}

function blockText(body: readonly Stmt[]): string[] {
  return body.flatMap(stmtText);
}

function inner(body: readonly Stmt[]): string[] {
  return blockText(body).map((line) => `  ${line}`);
}

function stmtText(stmt: Stmt): string[] {
  switch (stmt.kind) {
    case 'declare': {
      const { name, type, isConst } = stmt.variable;
      return [`${isConst ? 'const' : 'let'} ${name}: ${type}${stmt.value === undefined ? '' : ` = ${exprText(stmt.value)}`}`];
    }
    case 'assign':
      return [`${stmt.variable.name} = ${exprText(stmt.value)}`];
    case 'store':
      return [`${elementText(stmt.array, stmt.indices)} = ${exprText(stmt.value)}`];
    case 'effect':
      return [exprText(stmt.expr)];
    case 'seed':
      return [`${stmt.array.name}.seed(${exprText(stmt.seed)}, ${exprText(stmt.sequence)})`];
    case 'barrier':
      return [`barrier ${stmt.scope}`];
    case 'print':
      return [`print ${stmt.parts.map((part) => (typeof part === 'string' ? JSON.stringify(part) : exprText(part))).join(' ')}`];
    case 'assert':
      return [`assert ${exprText(stmt.test)} as ${JSON.stringify(stmt.text)}`];
    case 'if': {
      const otherwise = stmt.otherwise.length === 0 ? [] : ['else', ...inner(stmt.otherwise)];
      return [`if ${exprText(stmt.test)}`, ...inner(stmt.then), ...otherwise];
    }
    case 'loop':
      return [
        `loop ${stmt.tested} ${stmt.test ? exprText(stmt.test) : 'ever'}`,
        ...inner(stmt.init).map((line) => line.replace('  ', '  init ')),
        ...inner(stmt.body),
        ...inner(stmt.update).map((line) => line.replace('  ', '  then ')),
      ];
    case 'block':
      return ['block', ...inner(stmt.body)];
    case 'return':
      return [stmt.value === undefined ? 'return' : `return ${exprText(stmt.value)}`];
    default:
      return [stmt.kind];
  }
}

function elementText(array: ArrayRef, indices: readonly Expr[]): string {
  return `${array.name}[${indices.map(exprText).join(', ')}]`;
}

function call(name: string, args: readonly Expr[]): string {
  return `${name}(${args.map(exprText).join(', ')})`;
}

export function exprText(expr: Expr): string {
  switch (expr.kind) {
    case 'const':
      return expr.type === 'i32' || expr.type === 'bool' ? String(expr.value) : `${expr.value}:${expr.type}`;
    case 'wide':
      return `${expr.value}n:${expr.type}`;
    case 'variable':
      return expr.variable.name;
    case 'scalar':
      return expr.name;
    case 'extent':
      return `${expr.array.name}.shape[${expr.dimension}]`;
    case 'index':
      return ['i', 'j', 'k'][expr.axis]!;
    case 'thread':
      return `${expr.vector}.${'xyz'[expr.axis]!}`;
    case 'load':
      return elementText(expr.array, expr.indices);
    case 'negate':
    case 'invert':
    case 'not':
      return `${{ negate: '-', invert: '~', not: '!' }[expr.kind]}${exprText(expr.operand)}`;
    case 'arithmetic':
    case 'compare':
    case 'logical':
      return `(${exprText(expr.left)} ${expr.op} ${exprText(expr.right)})`;
    case 'select':
      return `(${exprText(expr.test)} ? ${exprText(expr.then)} : ${exprText(expr.otherwise)})`;
    case 'cast':
      return `${expr.type}(${exprText(expr.operand)})`;
    case 'builtin':
      return call(expr.name, expr.args);
    case 'call':
      return call(expr.func.name, expr.args);
    case 'bind':
      return `{${expr.variable.name} = ${exprText(expr.value)}; ${exprText(expr.body)}}`;
    case 'draw':
      return `${expr.array.name}.${expr.draw}()`;
    case 'atomic':
      return call(`atomic ${expr.op} ${elementText(expr.array, expr.indices)}`, expr.args);
  }
}
