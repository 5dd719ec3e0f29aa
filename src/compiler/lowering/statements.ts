// Lowers statements to typed IR.
import type { AnyNode, Expression, ForStatement, Statement } from 'acorn';
import { alternatives, type Context, fail, nested, perhaps } from './context.js';
import { lowerDeclaration } from './declarations.js';
import { leading, lowerCondition, lowerEffect, lowerTest } from './effects.js';
import { lowerFitted, words } from './expressions.js';
import type { ScalarType, Stmt } from '../ir/ir.js';
import { convert } from './types.js';

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
      const { alternate } = node;
      const arms = [() => branch(ctx, node.consequent, result), () => (alternate ? branch(ctx, alternate, result) : [])];
      const [then, otherwise] = alternatives(ctx, arms);
      ctx.out.push({ kind: 'if', at, test, then: then!, otherwise: otherwise! });
      return;
    }
    case 'ForStatement':
      lowerFor(ctx, node, result);
      return;
    case 'WhileStatement': {
      const test = lowerCondition(ctx, node.test);
      ctx.out.push({
        kind: 'loop',
        at,
        tested: 'before',
        init: [],
        test,
        update: [],
        body: perhaps(ctx, () => branch(ctx, node.body, result)),
      });
      return;
    }
    case 'DoWhileStatement': {
      const body = perhaps(ctx, () => branch(ctx, node.body, result));
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
  ThrowStatement: 'Return, and write an error code into an output array.',
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
  const value = leading(ctx, argument, (last) => lowerFitted(ctx, last, (arm, at) => convert(ctx, arm, result, at)));
  ctx.out.push({ kind: 'return', at: node.start, value });
}

/** Minifiers join the last statement and the return: `return f(x), void 0`. */
function lowerReturned(ctx: Context, node: Expression, at: AnyNode): void {
  leading(ctx, node, (last) => {
    if (last.type === 'UnaryExpression' && last.operator === 'void') return;
    if (last.type !== 'CallExpression' && last.type !== 'AssignmentExpression')
      fail('K303', at, 'A kernel returns no value.', 'Write the result into an output array.');
    lowerEffect(ctx, last);
  });
}

function lowerFor(ctx: Context, node: ForStatement, result: ScalarType | undefined): void {
  let loop: Stmt | undefined;
  const isTop = ctx.scope === ctx.bodyScope;
  // The scope of the loop head's names encloses the body.
  const around = nested(ctx, () => {
    // A minifier may move declarations of the body into the head.
    const { bodyScope } = ctx;
    if (isTop) ctx.bodyScope = ctx.scope;
    const init = listed(ctx, () => {
      if (node.init?.type === 'VariableDeclaration') lowerDeclaration(ctx, node.init);
      else if (node.init) lowerEffect(ctx, node.init);
    });
    ctx.bodyScope = bodyScope;
    const test = node.test ? lowerCondition(ctx, node.test) : undefined;
    // The body is lowered before the update, so that `let` types are inferred in the order in which readers see them.
    const body = perhaps(ctx, () => branch(ctx, node.body, result));
    const update = perhaps(ctx, () =>
      listed(ctx, () => {
        if (node.update) lowerEffect(ctx, node.update);
      }),
    );
    loop = { kind: 'loop', at: node.start, tested: 'before', init, test, update, body };
  });
  ctx.out.push(...around, loop!);
}

/** Lowers statements into a new list, in the same scope. */
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
