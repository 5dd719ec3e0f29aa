// Removes from a syntax tree what build tools insert: coverage counters, name keepers, and `(0, f)()` calls. It rewrites the tree in place
// before lowering, so that a kernel has the same meaning under every tool.
import type { AnyNode, CallExpression, Expression, Identifier, Statement } from 'acorn';

type Tree = Record<string, unknown> & { readonly type: string };

function isTree(value: unknown): value is Tree {
  return value !== null && typeof value === 'object' && typeof (value as { type?: unknown }).type === 'string';
}

/** Whether the node is rooted at a call of istanbul's `cov_...()`. */
function isCounterObject(node: AnyNode): boolean {
  if (node.type === 'MemberExpression') return isCounterObject(node.object);
  return node.type === 'CallExpression' && node.callee.type === 'Identifier' && node.callee.name.startsWith('cov_');
}

function isCounter(node: AnyNode): boolean {
  return (node.type === 'UpdateExpression' && isCounterObject(node.argument)) || (node.type === 'CallExpression' && isCounterObject(node));
}

function isNothing(statement: Statement): boolean {
  if (statement.type === 'ExpressionStatement') return isCounter(statement.expression);
  if (statement.type === 'EmptyStatement') return true;
  return statement.type === 'BlockStatement' && statement.body.length > 0 && statement.body.every(isNothing);
}

/** Matches `__name(fn, "n")` and `e(a => a * 2, "helper")`: a function and its name as a string. */
function keptName(call: CallExpression): Expression | undefined {
  const [first, second] = call.arguments;
  const isFunction = first?.type === 'ArrowFunctionExpression' || first?.type === 'FunctionExpression';
  return isFunction && second?.type === 'Literal' && typeof second.value === 'string' ? first : undefined;
}

function simplify(node: AnyNode): AnyNode {
  if (node.type === 'SequenceExpression') {
    const kept = node.expressions.filter((part, at) => at === node.expressions.length - 1 || !isCounter(part));
    if (kept.length === 1) return kept[0]!;
    // Tools call an import without a `this` as `(0, module.name)`.
    if (kept.length === 2 && kept[0]!.type === 'Literal' && kept[1]!.type === 'MemberExpression') return kept[1];
    node.expressions = kept;
  }
  if (node.type === 'CallExpression') {
    const inner = keptName(node);
    if (inner) return inner;
    if (
      node.callee.type === 'Identifier' &&
      /^_*pow\d*$/.test(node.callee.name) &&
      node.callee.name !== 'pow' &&
      node.arguments.length === 2
    ) {
      const math: Identifier = { type: 'Identifier', name: 'Math', start: node.start, end: node.start };
      const name: Identifier = { type: 'Identifier', name: 'pow', start: node.start, end: node.start };
      node.callee = {
        type: 'MemberExpression',
        object: math,
        property: name,
        computed: false,
        optional: false,
        start: node.start,
        end: node.start,
      };
    }
  }
  if (node.type === 'BlockStatement') node.body = node.body.filter((statement) => !isNothing(statement));
  if (node.type === 'IfStatement' && node.alternate && isNothing(node.alternate)) node.alternate = null;
  return node;
}

/** Cleans a tree in place. */
export function removeToolInsertions(root: AnyNode): void {
  for (const [key, value] of Object.entries(root)) {
    const holder = root as unknown as Record<string, unknown>;
    if (Array.isArray(value)) {
      holder[key] = value.map((item: unknown) => (isTree(item) ? cleaned(item) : item));
    } else if (isTree(value)) {
      holder[key] = cleaned(value);
    }
  }
}

function cleaned(node: Tree): AnyNode {
  let known = node as unknown as AnyNode;
  for (let next = simplify(known); next !== known; next = simplify(known)) known = next;
  removeToolInsertions(known);
  return known;
}
