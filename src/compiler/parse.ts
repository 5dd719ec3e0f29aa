// A function's own text to a syntax tree: `Function.prototype.toString`, acorn, and what transformers put in taken out.
//
// The text is whatever the last tool left: types gone, perhaps on one line, perhaps minified, perhaps with coverage
// counters. Offsets in the tree are offsets in that text.
import { type ArrowFunctionExpression, type Expression, type FunctionExpression, parseExpressionAt } from 'acorn';
import { clean } from './clean.js';
import { KernelTextError } from './diagnostics.js';

export type FunctionNode = ArrowFunctionExpression | FunctionExpression;

export interface ParsedFunction {
  readonly text: string;
  readonly node: FunctionNode;
}

interface Attempt {
  readonly node: Expression | undefined;
  readonly error: unknown;
}

function attempt(source: string, shift: number): Attempt {
  try {
    return { node: shiftOffsets(parseExpressionAt(source, 0, { ecmaVersion: 'latest' }), -shift), error: undefined };
  } catch (error) {
    return { node: undefined, error };
  }
}

function shiftOffsets(root: Expression, by: number): Expression {
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (value !== null && typeof value === 'object' && 'type' in value) {
      const node = value as unknown as { start: number; end: number };
      node.start += by;
      node.end += by;
      Object.values(value).forEach(visit);
    }
  };
  visit(root);
  return root;
}

function functionOf(node: Expression | undefined): FunctionNode | undefined {
  if (node?.type === 'ArrowFunctionExpression' || node?.type === 'FunctionExpression') return node;
  // A method's text is the inside of an object literal.
  const member = node?.type === 'ObjectExpression' ? node.properties[0] : undefined;
  if (member?.type === 'Property' && member.value.type === 'FunctionExpression' && member.kind === 'init') return member.value;
  return undefined;
}

/** Reads a function the user wrote. Throws KernelTextError K001 to K003. */
export function parseFunction(body: unknown): ParsedFunction {
  const whole = { start: 0, end: 1 };
  if (typeof body !== 'function') throw new KernelTextError('K001', whole, `The body must be a function (${typeof body} was given).`);
  const text = Function.prototype.toString.call(body);
  if (/\{\s*\[native code\]\s*\}\s*$/.test(text)) {
    throw new KernelTextError(
      'K001',
      whole,
      'The body has no text: it is a bound or a native function.',
      'Pass the function itself, not the result of bind().',
    );
  }
  const plain = attempt(`(${text})`, 1);
  const node = functionOf(plain.node) ?? functionOf(attempt(`({${text}})`, 2).node);
  if (!node) {
    const reason = plain.error instanceof SyntaxError ? plain.error.message : 'it is not a function expression';
    throw new KernelTextError('K002', whole, `The body's text cannot be read: ${reason}.`);
  }
  if (node.async || node.generator) {
    throw new KernelTextError('K003', node, 'A body must be a plain function, not async and not a generator.');
  }
  clean(node);
  return { text, node };
}
