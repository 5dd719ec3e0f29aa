// Statements of the text to typed IR.
import type { AnyNode, AssignmentExpression, CallExpression, Expression, ForStatement, Pattern, Statement, UpdateExpression } from 'acorn';
import { EFFECT_FUNCTIONS } from './builtins.js';
import { lowerCall, lowerSet } from './calls.js';
import { type Context, fail, type LocalName, nested, pinned, textOf } from './context.js';
import { converted, learn, lowerDeclaration } from './declarations.js';
import { lowerEffectCall } from './effects.js';
import { elementType, evaluate, lowerExpr, words } from './expressions.js';
import { type ArrayRef, type Expr, isStable, type ScalarType, type Stmt } from './ir.js';
import { combine } from './operators.js';
import { condition, convert, literal, settle, variableExpr } from './types.js';

/** Lowers the statements of a body. */
export function lowerBody(ctx: Context, statements: readonly Statement[], result: ScalarType | undefined): void {
  for (const statement of statements) lowerStatement(ctx, statement, result);
}

function lowerStatement(ctx: Context, node: Statement, result: ScalarType | undefined): void {
  const at = node.start;
  switch (node.type) {
    case 'EmptyStatement':
      return;
    case 'BlockStatement':
      ctx.out.push({ kind: 'block', at, body: nested(ctx, () => lowerBody(ctx, node.body, result)) });
      return;
    case 'VariableDeclaration':
      lowerDeclaration(ctx, node);
      return;
    case 'ExpressionStatement':
      if (node.directive === undefined) lowerEffect(ctx, node.expression);
      return;
    case 'IfStatement': {
      const test = lowerTest(ctx, node.test);
      const then = branch(ctx, node.consequent, result);
      const otherwise = node.alternate ? branch(ctx, node.alternate, result) : [];
      ctx.out.push({ kind: 'if', at, test, then, otherwise });
      return;
    }
    case 'ForStatement':
      lowerFor(ctx, node, result);
      return;
    case 'WhileStatement': {
      const test = lowerCondition(ctx, node.test);
      ctx.out.push({ kind: 'loop', at, tested: 'before', init: [], test, update: [], body: branch(ctx, node.body, result) });
      return;
    }
    case 'DoWhileStatement': {
      const body = branch(ctx, node.body, result);
      ctx.out.push({ kind: 'loop', at, tested: 'after', init: [], test: lowerCondition(ctx, node.test), update: [], body });
      return;
    }
    case 'BreakStatement':
    case 'ContinueStatement': {
      const kind = node.type === 'BreakStatement' ? 'break' : 'continue';
      if (node.label) fail('K301', node, `'${kind} ${node.label.name}': labels are not part of the kernel language.`);
      ctx.out.push({ kind, at });
      return;
    }
    case 'ReturnStatement':
      lowerReturn(ctx, node.argument ?? undefined, node, result);
      return;
    default:
      fail('K301', node, `A ${words(node.type)} is not part of the kernel language.`, HINTS[node.type]);
  }
}

const HINTS: Readonly<Record<string, string>> = {
  ForOfStatement: 'Write for (let k = 0; k < a.length; k++).',
  ForInStatement: 'Write for (let k = 0; k < a.length; k++).',
  SwitchStatement: 'Write if and else.',
  FunctionDeclaration: 'Make it a helper with func(...), or an arrow of one expression.',
  ThrowStatement: 'Return, and leave a mark in an output array.',
};

function branch(ctx: Context, node: Statement, result: ScalarType | undefined): Stmt[] {
  return nested(ctx, () => lowerBody(ctx, node.type === 'BlockStatement' ? node.body : [node], result));
}

function lowerReturn(ctx: Context, argument: Expression | undefined, node: AnyNode, result: ScalarType | undefined): void {
  if (result === undefined) {
    if (argument) lowerReturned(ctx, argument, node);
    ctx.out.push({ kind: 'return', at: node.start, value: undefined });
    return;
  }
  if (!argument) return fail('K303', node, `The helper must return a ${result}.`);
  const value = leading(ctx, argument, (last) => convert(ctx, lowerExpr(ctx, last), result, last));
  ctx.out.push({ kind: 'return', at: node.start, value });
}

/** `return f(x), void 0` is how minifiers join what is done last and the return. */
function lowerReturned(ctx: Context, node: Expression, at: AnyNode): void {
  leading(ctx, node, (last) => {
    if (last.type === 'UnaryExpression' && last.operator === 'void') return;
    if (last.type !== 'CallExpression' && last.type !== 'AssignmentExpression')
      fail('K303', at, 'A kernel returns no value.', 'Write the result into an output array.');
    lowerEffect(ctx, last);
  });
}

/** `a, b, value`: what stands before the last comma is done first. */
export function leading<T>(ctx: Context, node: Expression, last: (node: Expression) => T): T {
  if (node.type !== 'SequenceExpression') return last(node);
  for (const part of node.expressions.slice(0, -1)) lowerEffect(ctx, part);
  return leading(ctx, node.expressions.at(-1)!, last);
}

function lowerCondition(ctx: Context, node: Expression): Expr {
  return condition(ctx, lowerExpr(ctx, node), node);
}
function lowerTest(ctx: Context, node: Expression): Expr {
  return leading(ctx, node, (last) => lowerCondition(ctx, last));
}

function lowerFor(ctx: Context, node: ForStatement, result: ScalarType | undefined): void {
  let loop: Stmt | undefined;
  // The names of the head live around the body.
  const around = nested(ctx, () => {
    const init = listed(ctx, () => {
      if (node.init?.type === 'VariableDeclaration') lowerDeclaration(ctx, node.init);
      else if (node.init) lowerEffect(ctx, node.init);
    });
    const test = node.test ? lowerCondition(ctx, node.test) : undefined;
    // The body comes before the update, so that `let` types are learnt in the order they are read.
    const body = branch(ctx, node.body, result);
    const update = listed(ctx, () => {
      if (node.update) lowerEffect(ctx, node.update);
    });
    loop = { kind: 'loop', at: node.start, tested: 'before', init, test, update, body };
  });
  ctx.out.push(...around, loop!);
}

/** Statements lowered into a list of their own, in the same scope. */
function listed(ctx: Context, run: () => void): Stmt[] {
  const { out } = ctx;
  const list: Stmt[] = [];
  ctx.out = list;
  try {
    run();
  } finally {
    ctx.out = out;
  }
  return list;
}

function lowerEffect(ctx: Context, node: Expression): void {
  switch (node.type) {
    case 'AssignmentExpression':
      return lowerAssignment(ctx, node);
    case 'UpdateExpression':
      return lowerUpdate(ctx, node);
    case 'SequenceExpression':
      for (const part of node.expressions) lowerEffect(ctx, part);
      return;
    case 'ParenthesizedExpression':
      return lowerEffect(ctx, node.expression);
    case 'LogicalExpression': {
      // `a && f()` is an if to a minifier.
      const test = lowerTest(ctx, node.left);
      const effect = nested(ctx, () => lowerEffect(ctx, node.right));
      const [then, otherwise] = node.operator === '&&' ? [effect, []] : [[], effect];
      ctx.out.push({ kind: 'if', at: node.start, test, then, otherwise });
      return;
    }
    case 'ConditionalExpression': {
      const test = lowerTest(ctx, node.test);
      const then = nested(ctx, () => lowerEffect(ctx, node.consequent));
      const otherwise = nested(ctx, () => lowerEffect(ctx, node.alternate));
      ctx.out.push({ kind: 'if', at: node.start, test, then, otherwise });
      return;
    }
    case 'CallExpression':
      return lowerCallEffect(ctx, node);
    case 'UnaryExpression':
      if (node.operator === 'void') return lowerEffect(ctx, node.argument);
      break;
    case 'Literal':
      return;
    default:
  }
  fail('K301', node, `'${textOf(ctx, node)}' does nothing.`, 'Assign it, or remove it.');
}

function lowerCallEffect(ctx: Context, node: CallExpression): void {
  const callee = evaluate(ctx, node.callee);
  if (callee.kind === 'method' && callee.name === 'set') {
    const { indices, value } = lowerSet(ctx, callee.array, callee.indices, node);
    store(ctx, callee.array, indices, lowerExpr(ctx, value), value, node);
    return;
  }
  if (callee.kind === 'builtin' && EFFECT_FUNCTIONS.includes(callee.name)) {
    lowerEffectCall(ctx, callee.name, node);
    return;
  }
  const value = lowerCall(ctx, node);
  if (value.kind !== 'expr') fail('K301', node, `'${textOf(ctx, node)}' does nothing.`);
  ctx.out.push({ kind: 'effect', at: node.start, expr: settle(ctx, value.expr, node) });
}

type Target =
  | { readonly kind: 'local'; readonly local: LocalName }
  | { readonly kind: 'element'; readonly array: ArrayRef; readonly indices: readonly Expr[] };

function targetOf(ctx: Context, node: Expression | Pattern): Target {
  if (node.type !== 'Identifier' && node.type !== 'MemberExpression') fail('K301', node, `'${textOf(ctx, node)}' cannot be assigned to.`);
  const value = evaluate(ctx, node);
  if (value.kind === 'array') {
    if (value.indices.length === value.array.rank) return { kind: 'element', array: value.array, indices: value.indices };
    fail('K210', node, `'${textOf(ctx, node)}' is an array, not an element of one.`, 'Index every dimension.');
  }
  if (value.kind === 'local' && !value.variable.isConst) return { kind: 'local', local: value };
  return fail('K104', node, `'${textOf(ctx, node)}' cannot be assigned to: it is a constant or a parameter.`, 'Copy it into a let first.');
}

function lowerAssignment(ctx: Context, node: AssignmentExpression): void {
  if (node.right.type === 'AssignmentExpression' && node.operator === '=') return lowerChain(ctx, node, node.right);
  const target = targetOf(ctx, node.left);
  if (node.operator === '=') {
    const value = leading(ctx, node.right, (last) => lowerExpr(ctx, last));
    assign(ctx, target, value, node.right, node);
    return;
  }
  const op = node.operator.slice(0, -1);
  if (op === '&&' || op === '||' || op === '??')
    fail('K301', node, `'${node.operator}' is not part of the kernel language.`, 'Write an if.');
  change(ctx, target, op, lowerExpr(ctx, node.right), node, node.left, node.right);
}

/** `a = b = value`. */
function lowerChain(ctx: Context, node: AssignmentExpression, right: AssignmentExpression): void {
  lowerAssignment(ctx, right);
  const value = evaluate(ctx, right.left as Expression);
  if (value.kind !== 'local') fail('K301', right, `'${textOf(ctx, right)}' is used as a value.`, 'Write it as a statement of its own.');
  assign(ctx, targetOf(ctx, node.left), variableExpr(value.variable), right, node);
}

function lowerUpdate(ctx: Context, node: UpdateExpression): void {
  const target = targetOf(ctx, node.argument);
  change(ctx, target, node.operator === '++' ? '+' : '-', literal(1), node, node.argument, node.argument);
}

/** `target op= value`; an element's indices are computed once. */
function change(ctx: Context, target: Target, op: string, value: Expr, node: AnyNode, leftNode: AnyNode, rightNode: AnyNode): void {
  if (target.kind === 'local') {
    if (!target.local.hasValue) fail('K208', leftNode, `'${textOf(ctx, leftNode)}' is read before a value was assigned to it.`);
    const result = combine(ctx, op, variableExpr(target.local.variable), value, node, leftNode, rightNode);
    assign(ctx, target, result, node, node);
    return;
  }
  const { array } = target;
  const indices = target.indices.map((index) => (isStable(index) ? index : pinned(ctx, 'at', index, node.start)));
  const load: Expr = { kind: 'load', type: elementType(array), array, indices };
  store(ctx, array, indices, combine(ctx, op, load, value, node, leftNode, rightNode), node, node);
}

function assign(ctx: Context, target: Target, value: Expr, valueNode: AnyNode, node: AnyNode): void {
  if (target.kind === 'element') {
    store(ctx, target.array, target.indices, value, valueNode, node);
    return;
  }
  const { local } = target;
  learn(ctx, local, value, node);
  local.hasValue = true;
  const known = converted(ctx, local, value, valueNode);
  ctx.out.push({ kind: 'assign', at: node.start, variable: local.variable, value: known });
}

function store(ctx: Context, array: ArrayRef, indices: readonly Expr[], value: Expr, valueNode: AnyNode, node: AnyNode): void {
  if (array.isReadOnly)
    fail('K211', node, `'${array.name}' is an input, which a kernel only reads.`, 'Declare it as output(...) or inout(...).');
  ctx.out.push({ kind: 'store', at: node.start, array, indices, value: convert(ctx, value, elementType(array), valueNode) });
}
