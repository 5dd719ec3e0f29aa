// Lowers expressions to typed IR: names, literals, operators, array accesses.
import type {
  AnyNode,
  BinaryExpression,
  ConditionalExpression,
  Expression,
  MemberExpression,
  PrivateIdentifier,
  SpreadElement,
  Super,
  UnaryExpression,
} from 'acorn';
import { lowerCall } from './calls.js';
import { type Context, fail, textOf, type Value } from './context.js';
import type { ArrayRef, Axis, Expr, ScalarType, ThreadVector } from '../ir/ir.js';
import { combine, divideIntegers, integer, wrapTo } from './operators.js';
import { generatorMember } from './random.js';
import { environmentValue, importedName, isUnknown, nameValue, refuseMath } from './names.js';
import {
  boolean,
  commonType,
  condition,
  convert,
  defaultType,
  isFloat,
  isInteger,
  isOpen,
  isUntyped,
  isWide,
  literal,
  meet,
  REGISTER_TYPE,
  settle,
  variableExpr,
  wideConst,
} from './types.js';
import { isMathFunction, MATH_NUMBERS } from '../ir/builtins.js';
import { asVector, component, select, vectorName } from './vectors.js';

type AnyExpression = Expression | PrivateIdentifier | SpreadElement | Super;

/** The remedy of K208. JavaScript calculates with undefined there. */
export const NO_VALUE = 'Initialize it where it is declared: let v = 0. A value that only some branches or loops assign may be missing.';

/** A run-time value. */
export function lowerExpr(ctx: Context, node: AnyExpression): Expr {
  return asExpr(ctx, evaluate(ctx, node), node);
}

/**
 * Lowers a value whose type its context knows; `fit` converts it. Each arm of a `?:` is converted separately, as in an `if` statement,
 * because minifiers turn such an `if` into `?:`.
 */
export function lowerFitted(ctx: Context, node: AnyExpression, fit: (value: Expr, node: AnyNode) => Expr): Expr {
  if (node.type !== 'ConditionalExpression') return fit(lowerExpr(ctx, node), node);
  const test = condition(ctx, lowerExpr(ctx, node.test), node.test);
  const then = lowerFitted(ctx, node.consequent, fit);
  const otherwise = lowerFitted(ctx, node.alternate, fit);
  return chosen(ctx, test, then, otherwise, node);
}

/** Builds `test ? then : otherwise`. */
function chosen(ctx: Context, test: Expr, then: Expr, otherwise: Expr, node: AnyNode): Expr {
  const type = then.type === 'bool' && otherwise.type === 'bool' ? 'bool' : commonType(ctx, then, otherwise, node);
  if (test.kind === 'const') return meet(ctx, test.value === 0 ? otherwise : then, type, node);
  return { kind: 'select', type, test, then: meet(ctx, then, type, node), otherwise: meet(ctx, otherwise, type, node) };
}

/** A run-time value with a decided type. */
export function lowerSettled(ctx: Context, node: AnyExpression): Expr {
  return settle(ctx, lowerExpr(ctx, node), node);
}

export function asExpr(ctx: Context, value: Value, node: AnyNode): Expr {
  if (value.kind === 'expr') return value.expr;
  if (value.kind === 'local') {
    if (!value.hasValue) fail('K208', node, `'${textOf(ctx, node)}' is read before a value was assigned to it.`, NO_VALUE);
    return variableExpr(value.variable);
  }
  if (value.kind === 'array') {
    const { array, indices } = value;
    if (indices.length === array.rank) return { kind: 'load', type: elementType(array), array, indices };
    const missing = array.rank - indices.length;
    return fail(
      'K210',
      node,
      `'${textOf(ctx, node)}' is an array of ${missing} dimension${missing === 1 ? '' : 's'}, not a number.`,
      'Index every dimension.',
    );
  }
  if (value.kind === 'vector') {
    const what = `'${textOf(ctx, node)}' is a ${vectorName(value)} where a number is needed.`;
    fail('K213', node, what, 'Take a member of it, or calculate with add, sub, mul, scale and dot.');
  }
  return fail('K201', node, `'${textOf(ctx, node)}' is not a value.`);
}

export function elementType(array: ArrayRef): ScalarType {
  return REGISTER_TYPE[array.dtype];
}

/** Stops a small source from expanding without bound. */
function spend(ctx: Context, node: AnyNode): void {
  const { budget } = ctx;
  budget.ofPass--;
  budget.ofAll--;
  if (budget.ofPass < 0) {
    fail('K006', node, 'The kernel is too large after its local functions are inlined.', 'Make them helpers with func(...).');
  }
  if (budget.ofAll < 0) {
    fail('K006', node, 'The types of too many variables depend on each other.', 'Initialize them with their types: let v = f32(0).');
  }
}

/** Evaluates any expression, including those that name arrays, functions and namespaces. */
export function evaluate(ctx: Context, node: AnyExpression): Value {
  spend(ctx, node);
  switch (node.type) {
    case 'Identifier':
      return nameValue(ctx, node);
    case 'MemberExpression':
      return lowerMember(ctx, node);
    case 'CallExpression':
      return lowerCall(ctx, node);
    case 'ParenthesizedExpression':
      return evaluate(ctx, node.expression);
    case 'ConditionalExpression':
      return lowerConditional(ctx, node);
    default:
      return { kind: 'expr', expr: lowerPlain(ctx, node) };
  }
}

function lowerPlain(ctx: Context, node: AnyExpression): Expr {
  switch (node.type) {
    case 'Literal':
      if (typeof node.value === 'number') return literal(node.value);
      if (typeof node.value === 'boolean') return boolean(node.value);
      if (typeof node.value === 'bigint') return wideConst('bigint literal', node.value);
      return fail(
        'K301',
        node,
        `'${textOf(ctx, node)}' is not a number or a boolean.`,
        'Kernels have no strings, null or regular expressions.',
      );
    case 'UnaryExpression':
      return lowerUnary(ctx, node);
    case 'BinaryExpression':
      return lowerBinary(ctx, node);
    case 'LogicalExpression': {
      if (node.operator === '??') fail('K301', node, "'??' is not part of the kernel language: no value of a kernel is null.");
      const left = condition(ctx, lowerExpr(ctx, node.left), node.left);
      const right = condition(ctx, lowerExpr(ctx, node.right), node.right);
      return { kind: 'logical', type: 'bool', op: node.operator, left, right };
    }
    case 'AssignmentExpression':
    case 'UpdateExpression':
    case 'SequenceExpression':
      return fail('K301', node, `'${textOf(ctx, node)}' is used as a value.`, 'Write it as a statement of its own.');
    case 'ChainExpression':
      return fail('K301', node, "'?.' is not part of the kernel language: no value of a kernel is undefined.");
    default:
      return fail('K301', node, `'${textOf(ctx, node)}' (${words(node.type)}) is not part of the kernel language.`, HINTS[node.type]);
  }
}

const HINTS: Readonly<Record<string, string>> = {
  ArrayExpression: 'Declare local(type, size), and assign the elements.',
  ObjectExpression: 'Declare a variable for each value.',
  FunctionExpression: 'Make it a helper with func(...), or an arrow of one expression.',
  TemplateLiteral: 'Kernels have no strings, null or regular expressions.',
};

function lowerConditional(ctx: Context, node: ConditionalExpression): Value {
  const test = condition(ctx, lowerExpr(ctx, node.test), node.test);
  const before = ctx.effects;
  const [one, other] = [evaluate(ctx, node.consequent), evaluate(ctx, node.alternate)];
  if (one.kind === 'vector' || other.kind === 'vector') {
    if (ctx.effects > before) {
      const what = `'${textOf(ctx, node)}' chooses between vectors, and one of them contains an atomic or a random number.`;
      fail('K301', node, what, 'Write an if, or assign the number to a variable first.');
    }
    return select(ctx, test, asVector(ctx, one, node.consequent), asVector(ctx, other, node.alternate), node);
  }
  return { kind: 'expr', expr: chosen(ctx, test, asExpr(ctx, one, node.consequent), asExpr(ctx, other, node.alternate), node) };
}

/** `NewExpression` as words for a message. */
export function words(type: string): string {
  return type.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}

function lowerMember(ctx: Context, node: MemberExpression): Value {
  if (node.optional) fail('K301', node, "'?.' is not part of the kernel language: no value of a kernel is undefined.");
  if (node.object.type === 'Identifier' && isUnknown(ctx, node.object.name)) return importedName(ctx, node, node.object.name);
  const object = evaluate(ctx, node.object);
  if (object.kind === 'array' && node.computed) return indexed(ctx, object.array, object.indices, node);
  if (object.kind === 'shape') return extent(ctx, object, node);
  if (node.computed || node.property.type !== 'Identifier') {
    return fail('K210', node, `'${textOf(ctx, node.object)}' cannot be indexed.`, 'Only arrays have elements.');
  }
  const name = node.property.name;
  switch (object.kind) {
    case 'array':
      return arrayMember(object.array, object.indices, name, ctx, node);
    case 'vector':
      return { kind: 'expr', expr: component(ctx, object, name, node) };
    case 'generator':
      return generatorMember(ctx, object.array, name, node);
    case 'thread':
      return { kind: 'expr', expr: placeOf(object.vector, axisOf(ctx, name, node)) };
    case 'args': {
      const value = ctx.around.args.get(name);
      return (
        value ?? fail('K102', node, `The kernel has no parameter '${name}'.`, `It has ${[...ctx.around.args.keys()].join(', ') || 'none'}.`)
      );
    }
    case 'env':
      return environmentValue(ctx, name, node);
    case 'math': {
      const number = Object.hasOwn(MATH_NUMBERS, name) ? MATH_NUMBERS[name] : undefined;
      if (number !== undefined) return { kind: 'expr', expr: literal(number) };
      return isMathFunction(name) ? { kind: 'builtin', name: `Math.${name}` } : refuseMath(name, node);
    }
    default:
      return fail('K101', node, `'${textOf(ctx, node.object)}' has no member '${name}'.`);
  }
}

/** `globalIdx` expands to `blockIdx * blockDim + threadIdx`. */
export function placeOf(vector: ThreadVector | 'globalIdx', axis: Axis): Expr {
  if (vector !== 'globalIdx') return { kind: 'thread', type: 'i32', vector, axis };
  const [block, size, thread] = [placeOf('blockIdx', axis), placeOf('blockDim', axis), placeOf('threadIdx', axis)];
  const first: Expr = { kind: 'arithmetic', type: 'i32', op: '*', left: block, right: size };
  return { kind: 'arithmetic', type: 'i32', op: '+', left: first, right: thread };
}

export function axisOf(ctx: Context, name: string, node: AnyNode): Axis {
  const axis = ['x', 'y', 'z'].indexOf(name);
  if (axis < 0) fail('K101', node, `'${textOf(ctx, node)}' does not exist.`, 'The members are x, y and z.');
  return axis as Axis;
}

function indexed(ctx: Context, array: ArrayRef, indices: readonly Expr[], node: MemberExpression): Value {
  if (indices.length === array.rank)
    fail(
      'K210',
      node,
      `'${textOf(ctx, node.object)}' is a number, not an array.`,
      `'${array.name}' has ${array.rank} dimension${array.rank === 1 ? '' : 's'}.`,
    );
  return { kind: 'array', array, indices: [...indices, lowerIndex(ctx, node.property)] };
}

/** An index: i32 or u32. */
export function lowerIndex(ctx: Context, node: AnyExpression): Expr {
  const index = lowerExpr(ctx, node);
  // Both types are valid indices, so the use as an index does not decide an untyped local's type.
  if (index.type === 'u32' || (index.type === 'int literal' && isOpen(ctx, index))) return index;
  return convert(ctx, index, defaultType(index) === 'u32' ? 'u32' : 'i32', node);
}

function arrayMember(array: ArrayRef, indices: readonly Expr[], name: string, ctx: Context, node: MemberExpression): Value {
  const left = array.rank - indices.length;
  if (name === 'at' || name === 'set') return { kind: 'method', array, indices, name };
  if (name === 'shape' && left > 0) return { kind: 'shape', array, from: indices.length };
  if (name === 'length' && left === 1) {
    return { kind: 'expr', expr: extentExpr(array, indices.length) };
  }
  if (name === 'length' && left > 1) {
    fail(
      'K210',
      node,
      `'length' of an array of ${left} dimensions could mean its rows or all its elements.`,
      'Write shape[0], or the product of all dimensions.',
    );
  }
  return fail('K101', node, `'${textOf(ctx, node.object)}' has no member '${name}'.`, 'Arrays have at, set, length and shape.');
}

function extent(ctx: Context, shape: { readonly array: ArrayRef; readonly from: number }, node: MemberExpression): Value {
  const { array, from } = shape;
  if (!node.computed && node.property.type === 'Identifier' && node.property.name === 'length')
    return { kind: 'expr', expr: literal(array.rank - from) };
  const at = node.computed ? lowerExpr(ctx, node.property) : undefined;
  if (at?.kind !== 'const' || !Number.isInteger(at.value) || at.value < 0 || from + at.value >= array.rank) {
    return fail('K210', node, `'${textOf(ctx, node)}': a shape is indexed by a constant from 0 to ${array.rank - from - 1}.`);
  }
  return { kind: 'expr', expr: extentExpr(array, from + at.value) };
}

/** The extent; a literal when the body declares the size. */
export function extentExpr(array: ArrayRef, dimension: number): Expr {
  const size = array.extents[dimension];
  return size === undefined ? { kind: 'extent', type: 'i32', array, dimension } : literal(size);
}

function lowerUnary(ctx: Context, node: UnaryExpression): Expr {
  const operand = lowerExpr(ctx, node.argument);
  switch (node.operator) {
    case '!': {
      const test = condition(ctx, operand, node.argument, '===');
      return test.kind === 'const' ? boolean(test.value === 0) : { kind: 'not', type: 'bool', operand: test };
    }
    case '+':
    case '-': {
      if (operand.type === 'bool')
        fail('K201', node, `'${textOf(ctx, node)}' calculates with bool.`, 'Write i32(condition), or choose with ?: .');
      if (node.operator === '+') return operand;
      if (operand.kind === 'const' && isUntyped(operand.type)) return literal(-operand.value);
      if (operand.kind === 'wide' && isUntyped(operand.type)) return wideConst('bigint literal', -operand.value);
      return { kind: 'negate', type: operand.type, operand };
    }
    case '~': {
      if (operand.kind === 'const' && isUntyped(operand.type)) return literal(~operand.value);
      if (isWide(operand.type)) return { kind: 'invert', type: operand.type, operand };
      const whole = isFloat(operand.type) ? wrapTo(ctx, operand, 'i32', node.argument) : operand;
      return { kind: 'invert', type: integer(ctx, whole, node.argument, '~').type, operand: whole };
    }
    default:
      return fail('K301', node, `'${node.operator}' is not part of the kernel language.`);
  }
}

function lowerBinary(ctx: Context, node: BinaryExpression): Expr {
  // In `(a / b) | 0`, the `| 0` asks for integer division.
  if (node.operator === '|' && isZero(node.right)) {
    const quotient = integerQuotient(ctx, node.left, 'idiv');
    if (quotient) return quotient;
  }
  return combine(ctx, node.operator, lowerExpr(ctx, node.left), lowerExpr(ctx, node.right), node, node.left, node.right);
}

function isZero(node: AnyExpression): boolean {
  return node.type === 'Literal' && node.value === 0;
}

/** `a / b` of two integers with a rounding mode; undefined for any other expression. */
export function integerQuotient(ctx: Context, node: AnyExpression, rounding: 'idiv' | 'floordiv'): Expr | undefined {
  if (node.type !== 'BinaryExpression' || node.operator !== '/') return undefined;
  const left = lowerExpr(ctx, node.left);
  const right = lowerExpr(ctx, node.right);
  if (!isInteger(left.type) || !isInteger(right.type)) return undefined;
  return divideIntegers(ctx, left, right, rounding, node);
}
