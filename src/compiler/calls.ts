// Calls that give a value: builtins, helpers, local arrows, and the methods of arrays.
import type { ArrowFunctionExpression, CallExpression, Expression } from 'acorn';
import { isAtomic, lowerAtomic } from './atomics.js';
import { BUILTINS, type Builtin, CASTS, EFFECT_FUNCTIONS, MEMORY_FUNCTIONS, SPECIAL_MATH, TYPE_NAMES } from './builtins.js';
import { type Context, fail, identifierOf, Scope, textOf, type Value } from './context.js';
import { asExpr, elementType, evaluate, integerQuotient, lowerExpr, lowerIndex, lowerSettled } from './expressions.js';
import type { ArrayRef, Expr, FuncIr, ScalarType, ValueType, Variable } from './ir.js';
import { misplaced } from './memory.js';
import { castTo, combine, divideIntegers } from './operators.js';
import { commonType, convert, isFloat, isInteger, isOpen, isUntyped, literal, meet, settle, typeName, variableExpr } from './types.js';

/** A call in the place of a value. */
export function lowerCall(ctx: Context, node: CallExpression): Value {
  if (node.optional) fail('K301', node, "'?.' is not part of the kernel language: nothing is undefined here.");
  const callee = evaluate(ctx, node.callee);
  switch (callee.kind) {
    case 'method':
      return arrayMethod(ctx, callee.array, callee.indices, callee.name, node);
    case 'builtin':
      return { kind: 'expr', expr: lowerBuiltin(ctx, callee.name, node) };
    case 'func':
      return { kind: 'expr', expr: lowerHelper(ctx, callee.func, node) };
    case 'arrow':
      return { kind: 'expr', expr: expandArrow(ctx, callee.node, callee.scope, node) };
    default:
      return fail('K101', node.callee, `'${textOf(ctx, node.callee)}' is not a function that kernels can call.`);
  }
}

/** The arguments, each an expression, as many as wanted. */
export function argumentsOf(ctx: Context, node: CallExpression, name: string, least: number, most: number = least): readonly Expression[] {
  const count = node.arguments.length;
  if (count < least || count > most) {
    const wanted = least === most ? String(least) : most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`;
    fail('K212', node, `'${name}' takes ${wanted} argument${wanted === '1' ? '' : 's'}, not ${count}.`);
  }
  return node.arguments.map((argument) => {
    if (argument.type === 'SpreadElement')
      return fail('K301', argument, `'${textOf(ctx, argument)}': spread is not part of the kernel language.`);
    return argument;
  });
}

function arrayMethod(ctx: Context, array: ArrayRef, given: readonly Expr[], name: 'at' | 'set', node: CallExpression): Value {
  if (name === 'set') return fail('K301', node, "'set' is used as a value.", 'Write it as a statement of its own.');
  const left = array.rank - given.length;
  const indices = argumentsOf(ctx, node, `${array.name}.at`, left).map((argument) => lowerIndex(ctx, argument));
  return { kind: 'expr', expr: { kind: 'load', type: elementType(array), array, indices: [...given, ...indices] } };
}

/** `array.set(i, j, v)`: the only call that is a statement of its own kind. */
export function lowerSet(
  ctx: Context,
  array: ArrayRef,
  given: readonly Expr[],
  node: CallExpression,
): { readonly indices: readonly Expr[]; readonly value: Expression } {
  const args = argumentsOf(ctx, node, `${array.name}.set`, array.rank - given.length + 1);
  return { indices: [...given, ...args.slice(0, -1).map((argument) => lowerIndex(ctx, argument))], value: args.at(-1)! };
}

function lowerBuiltin(ctx: Context, name: string, node: CallExpression): Expr {
  if (isAtomic(name)) return lowerAtomic(ctx, name, node);
  if (CASTS.includes(name)) {
    const [argument] = argumentsOf(ctx, node, name, 1);
    return castTo(ctx, lowerExpr(ctx, argument!), name as ScalarType, argument!);
  }
  if (TYPE_NAMES.includes(name))
    return fail(
      'K302',
      node,
      `'${name}' is an element type, not a cast: in a register there is no ${name}.`,
      'Cast to i32, u32, f32 or f64.',
    );
  if (EFFECT_FUNCTIONS.includes(name)) return fail('K301', node, `'${name}' is used as a value.`, 'Write it as a statement of its own.');
  if (MEMORY_FUNCTIONS.includes(name)) return misplaced(node, name);
  if (name === 'idiv') return lowerIdiv(ctx, node);
  const isMath = name.startsWith('Math.');
  const short = isMath ? name.slice('Math.'.length) : name;
  if (name === 'Math.pow') {
    const [base, exponent] = argumentsOf(ctx, node, name, 2);
    return combine(ctx, '**', lowerExpr(ctx, base!), lowerExpr(ctx, exponent!), node, base!, exponent!);
  }
  if (isMath && SPECIAL_MATH.includes(short)) return lowerSpecial(ctx, short, name, node);
  const row = Object.hasOwn(BUILTINS, short) ? BUILTINS[short] : undefined;
  const isReachable = isMath ? short !== 'clamp' && short !== 'mix' : true;
  if (!row || !isReachable) return fail('K101', node.callee, `'${name}' is not part of the kernel language.`);
  return lowerRow(ctx, short, name, row, node);
}

function lowerIdiv(ctx: Context, node: CallExpression): Expr {
  const args = argumentsOf(ctx, node, 'idiv', 2);
  const [left, right] = args.map((argument) => {
    const value = lowerExpr(ctx, argument);
    return isInteger(value.type)
      ? value
      : fail('K206', argument, `'idiv' divides integers, and '${textOf(ctx, argument)}' is ${typeName(value.type)}.`);
  });
  return divideIntegers(ctx, left!, right!, 'idiv', node);
}

function lowerSpecial(ctx: Context, short: string, name: string, node: CallExpression): Expr {
  if (short === 'fround') {
    const [argument] = argumentsOf(ctx, node, name, 1);
    return castTo(ctx, lowerExpr(ctx, argument!), 'f32', argument!);
  }
  const args = argumentsOf(ctx, node, name, short === 'imul' ? 2 : 1).map((argument) => {
    const value = lowerSettled(ctx, argument);
    if (!isInteger(value.type)) fail('K206', argument, `'${name}' takes integers, and '${textOf(ctx, argument)}' is ${value.type}.`);
    return castTo(ctx, value, short === 'imul' ? 'i32' : 'u32', argument);
  });
  return { kind: 'builtin', type: 'i32', name: short, args };
}

function fold(short: string, row: Builtin, args: readonly Expr[]): Expr | undefined {
  const numbers = args.map((arg) => (arg.kind === 'const' && isUntyped(arg.type) ? arg.value : undefined));
  if (numbers.includes(undefined)) return undefined;
  const compute = row.fold ?? (Math as unknown as Record<string, (...values: number[]) => number>)[short];
  return compute && literal(compute(...(numbers as number[])));
}

function lowerRow(ctx: Context, short: string, name: string, row: Builtin, node: CallExpression): Expr {
  if (row.rule === 'round') {
    const [only] = argumentsOf(ctx, node, name, 1);
    const rounding = short === 'trunc' ? 'idiv' : short === 'floor' ? 'floordiv' : undefined;
    const quotient = rounding && integerQuotient(ctx, only!, rounding);
    if (quotient) return quotient;
  }
  const many = row.arity === 'many';
  const nodes = argumentsOf(ctx, node, name, many ? 2 : row.arity, many ? Number.POSITIVE_INFINITY : row.arity);
  const args = nodes.map((argument) => lowerExpr(ctx, argument));
  const folded = fold(short, row, args);
  if (folded) return folded;
  let type: ValueType = args[0]!.type;
  if (args.length === 1 && type === 'bool')
    fail('K201', nodes[0]!, `'${textOf(ctx, nodes[0]!)}' is bool where a number is needed.`, 'Write i32(condition).');
  for (const arg of args.slice(1)) type = commonType(ctx, { kind: 'const', type, value: 0 }, arg, node);
  if (row.rule === 'round' && isInteger(type)) return args[0]!;
  if (row.rule !== 'number' && isUntyped(type) && args.some((arg) => isOpen(ctx, arg)))
    return { kind: 'builtin', type: 'float literal', name: short, args };
  if (row.rule === 'float' && !isFloat(type)) type = 'f32';
  if (row.rule !== 'number' && isUntyped(type)) type = 'f32';
  const met = args.map((arg, at) => meet(ctx, arg, type, nodes[at]!));
  if (!many) return { kind: 'builtin', type, name: short, args: met };
  return met.reduce((left, right) => ({ kind: 'builtin', type, name: short, args: [left, right] }));
}

function lowerHelper(ctx: Context, func: FuncIr, node: CallExpression): Expr {
  const args = argumentsOf(ctx, node, func.name, func.params.length);
  ctx.calledFuncs.add(func);
  return {
    kind: 'call',
    type: func.result,
    func,
    args: args.map((argument, at) => convert(ctx, lowerExpr(ctx, argument), func.params[at]!.type as ScalarType, argument)),
  };
}

/** The one expression of a local arrow. */
function arrowResult(ctx: Context, arrow: ArrowFunctionExpression): Expression {
  if (arrow.body.type !== 'BlockStatement') return arrow.body;
  const [only] = arrow.body.body;
  if (arrow.body.body.length === 1 && only?.type === 'ReturnStatement' && only.argument) return only.argument;
  return fail(
    'K302',
    arrow,
    `'${textOf(ctx, arrow)}': a function inside a kernel must be one expression.`,
    'Make it a helper with func(...), or write it in place.',
  );
}

function expandArrow(ctx: Context, arrow: ArrowFunctionExpression, scope: Scope, node: CallExpression): Expr {
  const result = arrowResult(ctx, arrow);
  if (ctx.expanding.has(arrow))
    fail('K302', node, `'${textOf(ctx, node.callee)}' calls itself: kernels have no recursion.`, 'Write a loop.');
  const nodes = argumentsOf(ctx, node, textOf(ctx, node.callee), arrow.params.length);
  const inner = new Scope(scope);
  const bound: { readonly variable: Variable; readonly value: Expr }[] = [];
  nodes.forEach((argument, at) => {
    const name = identifierOf(arrow.params[at]!, 'A parameter of a local function');
    const given = evaluate(ctx, argument);
    if (given.kind !== 'expr' && given.kind !== 'local') {
      inner.define(name, given);
      return;
    }
    const value = asExpr(ctx, given, argument);
    if (value.kind === 'const') {
      inner.define(name, { kind: 'expr', expr: value });
      return;
    }
    const settled = settle(ctx, value, argument);
    const variable: Variable = { name, type: settled.type, isConst: true };
    bound.push({ variable, value: settled });
    inner.define(name, { kind: 'expr', expr: variableExpr(variable) });
  });
  const outer = ctx.scope;
  ctx.scope = inner;
  ctx.expanding.add(arrow);
  try {
    const body = lowerExpr(ctx, result);
    return bound.reduceRight<Expr>(
      (inside, { variable, value }) => ({ kind: 'bind', type: inside.type, variable, value, body: inside }),
      body,
    );
  } finally {
    ctx.scope = outer;
    ctx.expanding.delete(arrow);
  }
}
