// Lowers declarations: what a name is bound to, and how an untyped `let` gets a type.
import type { ArrayPattern, Expression, ObjectPattern, Pattern, VariableDeclaration, VariableDeclarator } from 'acorn';
import { type Context, fail, type LocalName, pinned, textOf, type Value, type VectorValue } from './context.js';
import { axisOf, evaluate, extentExpr, lowerExpr, placeOf } from './expressions.js';
import { type Expr, isStable, type ThreadVector, type Variable } from '../ir/ir.js';
import { declaredMemory } from './memory.js';
import { environmentValue } from './names.js';
import { declaredGenerator } from './random.js';
import { leading } from './effects.js';
import { converted, isOpen, isUntyped, settle, variableExpr } from './types.js';
import { COMPONENTS, settled } from './vectors.js';
import { SHORT_NAME } from '../source/bindings.js';

export function lowerDeclaration(ctx: Context, node: VariableDeclaration): void {
  if (node.kind !== 'const' && node.kind !== 'let')
    fail('K301', node, `'${node.kind}' is not part of the kernel language.`, 'Write const or let.');
  for (const declarator of node.declarations) {
    if (declarator.id.type === 'ObjectPattern' || declarator.id.type === 'ArrayPattern') takeApart(ctx, declarator);
    else if (declarator.id.type !== 'Identifier')
      fail('K301', declarator.id, `'${textOf(ctx, declarator.id)}': only plain names can be declared.`);
    else if (declarator.init) declare(ctx, declarator, declarator.id.name, declarator.init, node.kind === 'const');
    else declareEmpty(ctx, declarator, declarator.id.name);
  }
}

function takeApart(ctx: Context, declarator: VariableDeclarator): void {
  const { id: pattern, init } = declarator;
  const from = init ? evaluate(ctx, init) : undefined;
  if (pattern.type === 'ObjectPattern' && (from?.kind === 'args' || from?.kind === 'env')) {
    bindPattern(ctx, pattern, from.kind);
    return;
  }
  const parts =
    pattern.type === 'ObjectPattern' && from?.kind === 'thread'
      ? axesOf(ctx, pattern, from.vector)
      : pattern.type === 'ArrayPattern' && from?.kind === 'shape'
        ? extentsOf(ctx, pattern, from)
        : undefined;
  if (init && parts) for (const [name, expr] of parts) declareConst(ctx, declarator, name, expr, init);
  else
    fail(
      'K301',
      declarator,
      `'${textOf(ctx, declarator)}': only the parameters of the body, shapes and thread indices can be destructured.`,
    );
}

/** `const { x, y } = threadIdx`. */
function axesOf(ctx: Context, pattern: ObjectPattern, vector: ThreadVector | 'globalIdx'): readonly Part[] {
  return pattern.properties.map((property): Part => {
    if (property.type !== 'Property' || property.computed || property.key.type !== 'Identifier')
      return fail('K301', property, `'${textOf(ctx, property)}': a thread index is destructured into x, y and z.`);
    return [plainName(ctx, property.value), placeOf(vector, axisOf(ctx, property.key.name, property))];
  });
}

/** `const [height, width] = image.shape`; the pattern may omit trailing dimensions. */
function extentsOf(ctx: Context, pattern: ArrayPattern, { array, from }: ShapeValue): readonly Part[] {
  const left = array.rank - from;
  if (pattern.elements.length > left)
    fail('K210', pattern, `'${textOf(ctx, pattern)}': the shape has ${left} number${left === 1 ? '' : 's'}.`);
  return pattern.elements.flatMap((element, at): Part[] => (element ? [[plainName(ctx, element), extentExpr(array, from + at)]] : []));
}

type Part = readonly [name: string, expr: Expr];
type ShapeValue = Extract<Value, { kind: 'shape' }>;

function plainName(ctx: Context, node: Pattern): string {
  return node.type === 'Identifier' ? node.name : fail('K301', node, `'${textOf(ctx, node)}': only plain names can be declared.`);
}

/** Binds the keys of a flat pattern to the parameters or the thread's members. */
export function bindPattern(ctx: Context, pattern: Pattern, from: 'args' | 'env'): void {
  if (pattern.type !== 'ObjectPattern') fail('K004', pattern, 'A parameter of a body must be a name or a flat destructuring pattern.');
  for (const property of pattern.properties) {
    if (property.type !== 'Property' || property.computed)
      fail('K004', property, 'A parameter of a body must be a flat destructuring pattern, without rest and computed keys.');
    const key = property.key.type === 'Identifier' ? property.key.name : property.key.type === 'Literal' ? String(property.key.value) : '';
    if (property.value.type !== 'Identifier') {
      const what = property.value.type === 'AssignmentPattern' ? 'has a default value' : 'is destructured further';
      fail('K004', property, `The parameter '${key}' ${what}.`, 'Write the name alone: the values come from the launch.');
    }
    const local = property.value.name;
    if (local !== key && local.length <= SHORT_NAME) ctx.isMinified = true;
    const value: Value =
      from === 'env'
        ? environmentValue(ctx, key, property)
        : (ctx.around.args.get(key) ??
          fail('K102', property, `The kernel has no parameter '${key}'.`, `It has ${[...ctx.around.args.keys()].join(', ') || 'none'}.`));
    ctx.scope.define(local, value);
  }
}

function declareEmpty(ctx: Context, node: VariableDeclarator, name: string): void {
  const type = ctx.resolved.get(node)?.type ?? 'int literal';
  const variable: Variable = { name, type, isConst: false };
  if (isUntyped(type)) ctx.untyped.set(variable, node);
  const local: LocalName = { kind: 'local', variable, node, hasValue: false };
  ctx.empty.add(local);
  ctx.scope.define(name, local);
  ctx.out.push({ kind: 'declare', at: node.start, variable, value: undefined });
}

function declare(ctx: Context, node: VariableDeclarator, name: string, init: Expression, isConst: boolean): void {
  if (init.type === 'ArrowFunctionExpression') {
    ctx.scope.define(name, { kind: 'arrow', node: init, scope: ctx.scope });
    return;
  }
  const value = leading(ctx, init, (last) => declaredMemory(ctx, name, last) ?? declaredGenerator(ctx, name, last) ?? evaluate(ctx, last));
  if (value.kind === 'array' && value.indices.length < value.array.rank) {
    // A row keeps the indices that were current at its declaration.
    const indices = value.indices.map((index, at) =>
      isStable(index) ? index : pinned(ctx, `${name}_at${at}`, settle(ctx, index, init), node.start),
    );
    ctx.scope.define(name, { ...value, indices });
    return;
  }
  if (value.kind === 'vector') {
    declareVector(ctx, node, name, value, isConst || ctx.constants.has(node));
    return;
  }
  // Only numbers can be reassigned, although a minifier may write `let` for other values.
  if (value.kind !== 'expr' && value.kind !== 'local' && value.kind !== 'array') {
    ctx.scope.define(name, value);
    return;
  }
  const last = init.type === 'SequenceExpression' ? init.expressions.at(-1)! : init;
  const expr = lowerValue(ctx, value, last);
  if (isConst || ctx.constants.has(node)) declareConst(ctx, node, name, expr, last);
  else declareLet(ctx, node, name, expr, last);
}

function lowerValue(ctx: Context, value: Value, node: Expression): Expr {
  return value.kind === 'expr' ? value.expr : lowerExpr(ctx, node);
}

function declareConst(ctx: Context, node: VariableDeclarator, name: string, expr: Expr, init: Expression): void {
  // A literal stays untyped under its name. An expression that never changes and costs nothing is inlined at each use.
  if (isStable(expr)) {
    ctx.scope.define(name, { kind: 'expr', expr });
    return;
  }
  // An untyped expression takes its type from each use, as if it were written there, because a minifier may inline it. Only its typed
  // operands are evaluated here.
  if (isUntyped(expr.type) && !isOpen(ctx, expr) && hasFewerParts(expr, MAX_REPEATED_PARTS)) {
    ctx.scope.define(name, { kind: 'expr', expr: withPinned(ctx, expr, name, node.start) });
    return;
  }
  const known = settle(ctx, expr, init);
  const variable: Variable = { name, type: known.type, isConst: true };
  ctx.scope.define(name, { kind: 'local', variable, node, hasValue: true });
  ctx.out.push({ kind: 'declare', at: node.start, variable, value: known });
}

/** Size limit of an expression that is copied to each use of its name: nested copies double in size. */
const MAX_REPEATED_PARTS = 16;

function hasFewerParts(expr: Expr, most: number): boolean {
  let left = most;
  const count = (part: Expr): boolean => {
    if (--left < 0) return false;
    if (!isUntyped(part.type)) return true;
    if (part.kind === 'select') return count(part.then) && count(part.otherwise);
    if (part.kind === 'negate' || part.kind === 'invert') return count(part.operand);
    if (part.kind === 'arithmetic') return count(part.left) && count(part.right);
    return part.kind !== 'builtin' || part.args.every(count);
  };
  return count(expr);
}

/** An untyped expression that can be copied to its uses: its typed operands are evaluated here. */
function withPinned(ctx: Context, expr: Expr, name: string, at: number): Expr {
  const part = (inner: Expr): Expr => withPinned(ctx, inner, name, at);
  if (!isUntyped(expr.type)) return isStable(expr) ? expr : pinned(ctx, name, expr, at);
  switch (expr.kind) {
    case 'select':
      return { ...expr, test: part(expr.test), then: part(expr.then), otherwise: part(expr.otherwise) };
    case 'negate':
    case 'invert':
      return { ...expr, operand: part(expr.operand) };
    case 'arithmetic':
      return { ...expr, left: part(expr.left), right: part(expr.right) };
    case 'builtin':
      return { ...expr, args: expr.args.map(part) };
    default:
      return expr;
  }
}

function declareLet(ctx: Context, node: VariableDeclarator, name: string, expr: Expr, init: Expression): void {
  const type = ctx.resolved.get(node)?.type ?? expr.type;
  const variable: Variable = { name, type, isConst: false };
  ctx.lets.add(node);
  if (isUntyped(type)) ctx.untyped.set(variable, node);
  const value = isUntyped(type) ? expr : converted(ctx, { kind: 'local', variable, node, hasValue: true }, expr, init);
  ctx.scope.define(name, { kind: 'local', variable, node, hasValue: true });
  ctx.out.push({ kind: 'declare', at: node.start, variable, value });
}

/** Inlines constant components of a `const` that cost nothing; every component of a `let` is a variable. */
function declareVector(ctx: Context, node: VariableDeclarator, name: string, value: VectorValue, isConst: boolean): void {
  const parts = settled(ctx, value, name, node.start, isConst ? isStable : () => true);
  if (isConst) {
    ctx.scope.define(name, { ...value, parts, binds: [], variables: undefined });
    return;
  }
  const variables = parts.map((part, at): Variable => {
    const variable: Variable = { name: `${name}_${COMPONENTS[at]}`, type: value.type, isConst: false };
    ctx.out.push({ kind: 'declare', at: node.start, variable, value: part });
    return variable;
  });
  ctx.lets.add(node);
  ctx.scope.define(name, { ...value, parts: variables.map(variableExpr), binds: [], variables: { list: variables, node } });
}
