// Emits a loop of the IR as a C++ loop.
import { indented, type Line, nested } from './cpp-text.js';
import type { Stmt } from '../ir/ir.js';

/** The parts of a loop as emitted source. */
export interface LoopText {
  readonly init: readonly Line[];
  /** `init` is a single declaration, which fits in the head of a `for`. */
  readonly isPlainInit: boolean;
  /** `before` must run before each test. */
  readonly test: { readonly before: readonly string[]; readonly result: string | undefined };
  readonly update: readonly Line[];
  /** Each line is one assignment, which fits in the head of a `for`. */
  readonly isPlainUpdate: boolean;
  readonly body: readonly Line[];
}

/**
 * Emits a plain `for` or `while` when test and update are plain expressions. Otherwise the test and update become statements at the top of
 * the body, so that `continue` still runs them.
 */
export function loopText({ at, tested }: Extract<Stmt, { kind: 'loop' }>, text: LoopText, temporary: () => string): Line[] {
  const { test, update, body } = text;
  const line = (of: string): Line => ({ text: of, at });
  const init = [...text.init];
  const leave = test.result === undefined ? [] : [...test.before, `if (!(${test.result})) break;`];
  const isPlainTest = test.before.length === 0;
  let head: Line[];
  let tail = line('}');
  if (tested === 'after' && isPlainTest) {
    head = [line('do {')];
    tail = line(`} while (${test.result ?? 'true'});`);
  } else if (tested === 'after' || !text.isPlainUpdate) {
    const top = [...update, ...(tested === 'after' ? leave.map(line) : [])];
    const again = temporary();
    head = [line(`for (bool ${again} = false;; ${again} = true) {`), line(`  if (${again}) {`), ...nested(nested(top)), line('  }')];
    if (tested === 'before') head.push(...indented(leave).map(line));
  } else {
    const updates = update.map((inner) => inner.text.replace(/;$/, '')).join(', ');
    const inHead = text.isPlainInit ? init.pop()!.text : ';';
    const isWhile = inHead === ';' && updates === '';
    const condition = isPlainTest ? (test.result ?? '') : '';
    head = [line(isWhile ? `while (${condition || 'true'}) {` : `for (${inHead} ${condition}; ${updates}) {`)];
    if (!isPlainTest) head.push(...indented(leave).map(line));
  }
  const loop = [...head, ...nested(body), tail];
  return init.length === 0 ? loop : [line('{'), ...nested([...init, ...loop]), line('}')];
}
