// Parses a function's source, from `Function.prototype.toString`, with acorn, and removes what build tools inserted.
//
// The source is the output of the last tool: without types, and perhaps minified or instrumented. Offsets in the tree refer to it.
import { createRequire } from 'node:module';
import type * as Acorn from 'acorn';
import type { ArrowFunctionExpression, Expression, FunctionExpression } from 'acorn';
import { removeToolInsertions } from './remove-tool-insertions.js';
import { isTooDeep, refuseNested, tooDeep } from '../diagnostics/depth.js';
import { KernelTextError } from '../diagnostics/diagnostics.js';

export type FunctionNode = ArrowFunctionExpression | FunctionExpression;

export interface ParsedFunction {
  /** The user's function; errors find its position in the user's file by it. */
  readonly body: object;
  readonly text: string;
  readonly node: FunctionNode;
}

interface Attempt {
  readonly node: Expression | undefined;
  readonly error: unknown;
}

let acorn: typeof Acorn | undefined;

function attempt(source: string, shift: number): Attempt {
  // Loaded with the first kernel, because an import of this library should not take 15 ms longer.
  const { parseExpressionAt } = (acorn ??= createRequire(import.meta.url)('acorn') as typeof Acorn);
  try {
    return { node: shiftOffsets(parseExpressionAt(source, 0, { ecmaVersion: 'latest' }), -shift), error: undefined };
  } catch (error) {
    return { node: undefined, error };
  }
}

/** Ten times the longest kernels that people write; a longer source would take seconds to compile. */
const MAX_TEXT_CHARS = 128 << 10;

/** Builds K002. `error` is acorn's error, if it has one. */
function unreadable(error: unknown): KernelTextError {
  const whole = { start: 0, end: 1 };
  if (isTooDeep(error)) return tooDeep();
  if (error instanceof SyntaxError) {
    const at = Math.max(0, (error as SyntaxError & { readonly pos: number }).pos - 1);
    const reason = error.message.replace(/ \(\d+:\d+\)$/, '');
    return new KernelTextError('K002', { start: at, end: at + 1 }, `The source of the body cannot be parsed: ${reason}.`);
  }
  return new KernelTextError('K002', whole, 'The source of the body cannot be parsed: it is not a function expression.');
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
  // A method's source parses only as part of an object literal.
  const member = node?.type === 'ObjectExpression' ? node.properties[0] : undefined;
  if (member?.type === 'Property' && member.value.type === 'FunctionExpression' && member.kind === 'init') return member.value;
  return undefined;
}

const NATIVE = /\{\s*\[native code\]\s*\}\s*$/;

/** The source of a function, for errors; empty when there is none. */
export function textOfFunction(body: unknown): string {
  const text = typeof body === 'function' ? Function.prototype.toString.call(body) : '';
  return NATIVE.test(text) ? '' : text;
}

/** Parses a function. Throws KernelTextError K001 to K003 and K006. */
export function parseFunction(body: unknown): ParsedFunction {
  const whole = { start: 0, end: 1 };
  if (typeof body !== 'function') throw new KernelTextError('K001', whole, `The body must be a function (${typeof body} was given).`);
  const text = textOfFunction(body);
  if (text === '') {
    throw new KernelTextError(
      'K001',
      whole,
      'The body has no source: it is a bound or a native function.',
      'Pass the function itself, not the result of bind().',
    );
  }
  return parseText(text, body);
}

/** Parses the source of a function. `body`: what errors look for in the user's file. Throws KernelTextError K002, K003 and K006. */
export function parseText(text: string, body: object): ParsedFunction {
  const whole = { start: 0, end: 1 };
  if (text.length > MAX_TEXT_CHARS) {
    throw new KernelTextError(
      'K006',
      whole,
      `The source of the body has ${text.length} characters (at most ${MAX_TEXT_CHARS}).`,
      'Split the kernel into several kernels.',
    );
  }
  refuseNested(text);
  const plain = attempt(`(${text})`, 1);
  const node = functionOf(plain.node) ?? functionOf(attempt(`({${text}})`, 2).node);
  if (!node) throw unreadable(plain.error);
  if (node.async || node.generator) {
    throw new KernelTextError('K003', node, 'A body must be a plain function, not async and not a generator.');
  }
  removeToolInsertions(node);
  return { body, text, node };
}
