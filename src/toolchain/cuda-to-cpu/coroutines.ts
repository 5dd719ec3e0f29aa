// Rewrites CUDA C++ source whose threads wait: every function that can wait becomes a coroutine, and every call that may wait is awaited.
// The shim's thread_coroutines.h defines the types.
import { FUNCTION_ATTRIBUTES } from '../../compiler/cuda-source/attributes.js';
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { temporaries } from './awaited-temporaries.js';
import { conditionalsOf, expressionStarts, type Conditional } from './waiting-conditionals.js';
import type { Edit } from '../cuda-parser/source-edits.js';
import { closingAngle, type FunctionTokens } from '../cuda-parser/functions.js';
import { closing, opening, type Token } from '../cuda-parser/tokenizer.js';
import { deducedType, isDeduced } from './deduced-types.js';
import { arrayEdits } from './local-arrays.js';
import { findWaiting, unable, waitingCallOpen, type Waiting } from './waiting-functions.js';

/** Words in a function's declaration that are not part of its return type. */
const SPECIFIERS: ReadonlySet<string> = new Set([
  '__device__',
  '__host__',
  '__global__',
  '__forceinline__',
  '__noinline__',
  '__inline__',
  'inline',
  'static',
  'extern',
  'constexpr',
  'consteval',
  'virtual',
  'friend',
  'explicit',
  // Of an instance that is written out: `template __global__ void f<int>(int*);`.
  'template',
]);
/** Words before a parenthesis that do not make it a call. */
const STATEMENTS: ReadonlySet<string> = new Set(['if', 'while', 'for', 'switch', 'return', 'co_return', 'co_await', 'else', 'do', 'case']);

/**
 * The edits. Throws a CompileError for code that waits and cannot become a coroutine. `besides`: functions that another form handles, as
 * indices into the functions of `findWaiting`.
 */
export function coroutineEdits(spec: BuildSpec, tokens: readonly Token[], besides: ReadonlySet<number> = new Set()): Edit[] {
  const found = findWaiting(spec, tokens);
  const waiting: Waiting = {
    ...found,
    waits: new Set([...found.waits].filter((i) => !besides.has(i))),
    calls: found.calls.filter((at) => !besides.has(found.owner[at]!)),
  };
  const edits: Edit[] = waiting.callables.typeEdits(waiting.functions, waiting.names, waiting.pointers !== undefined);
  edits.push(...(waiting.pointers?.edits() ?? []));
  const awaits = awaitsOf(tokens, waiting);
  for (const [i, fn] of waiting.functions.entries()) {
    if (waiting.waits.has(i)) edits.push(...functionEdits(spec, tokens, waiting, i, fn, awaits));
  }
  // One by one, because a call with spread arguments has a size limit.
  for (const edit of expressionEdits(spec, tokens, waiting, awaits)) edits.push(edit);
  for (const token of tokens) {
    // For functions with C linkage, g++ gives all parts of a coroutine the same name.
    if (token.text === '"C"') edits.push(replace(token, '"C++"'));
  }
  return edits;
}

/** Text to insert around the tokens [from, to]. */
interface Wrap {
  readonly from: number;
  readonly to: number;
  readonly open: string;
  readonly close: string;
}

function expressionEdits(spec: BuildSpec, tokens: readonly Token[], waiting: Waiting, calls: readonly Await[]): Edit[] {
  // Each await is in parentheses, so that a member access or index after the call applies to its result.
  const edits: Edit[] = [];
  const awaits: Await[] = [...calls];
  const lambdas = waiting.functions.filter(({ kind }) => kind === 'lambda');
  const coroutines = lambdas.filter((fn) => waiting.waits.has(waiting.functions.indexOf(fn)));
  for (const { at, bodyEnd } of coroutines) {
    if (tokens[bodyEnd + 1]?.text !== '(') continue;
    // A lambda that is called where it is defined: the calling frame keeps it alive (mr_run).
    awaits.push({ from: at, to: closing(tokens, bodyEnd + 1), open: '(co_await mr_run(' });
    edits.push(replace(tokens[bodyEnd + 1]!, tokens[bodyEnd + 2]!.text === ')' ? '' : ', '));
  }
  const bodies = new Set(lambdas.map(({ bodyOpen }) => bodyOpen));
  const conditionals = conditionalsOf(tokens, [...new Set(awaits.map(({ from }) => from))], bodies);
  refuseSiblings(spec, tokens, [...conditionals, ...awaits], conditionals, coroutines, bodies);
  const wraps: Wrap[] = [];
  for (const one of conditionals) {
    const hasLambda = lambdas.some(({ at }) => at > one.from && at < one.to);
    wraps.push({ from: one.from, to: one.to, ...statements(tokens, one, awaits, hasLambda) });
    edits.push(...separators(tokens, one));
  }
  for (const { from, to, open = '(co_await ' } of awaits) wraps.push({ from, to, open, close: ')' });
  for (const one of temporaries(spec, tokens, waiting, awaits, bodies, qualifierStart))
    wraps.push({ ...one, open: '[&] { return ', close: '; }()' });
  // At one position, the outer one opens first and closes last. The sort is stable, and conditionals precede calls.
  for (const { from, open } of wraps.toSorted((a, b) => a.from - b.from || b.to - a.to)) edits.push(insertBefore(tokens[from]!, open));
  for (const { to, close } of wraps.toReversed().toSorted((a, b) => a.to - b.to || b.from - a.from)) {
    edits.push(insertAfter(tokens[to]!, close));
  }
  return edits;
}

/**
 * Rejects an expression with two waits side by side of which one contains a coroutine (a conditional, or a lambda that waits): g++ 12
 * generates wrong code for it. Nested waits are fine, and so are lambdas that do not wait.
 */
function refuseSiblings(
  spec: BuildSpec,
  tokens: readonly Token[],
  all: readonly Await[],
  conditionals: readonly Conditional[],
  lambdas: readonly FunctionTokens[],
  bodies: ReadonlySet<number>,
): void {
  const starts = expressionStarts(
    tokens,
    all.map(({ from }) => from),
    bodies,
  );
  // Each operand of a conditional is a separate expression.
  const regions = all.map((one, i) => `${starts[i]} ${conditionals.map((outer) => operandOf(outer, one)).join()}`);
  const holds = all.map(
    (one) => conditionals.some((inner) => isInside(inner, one)) || lambdas.some((fn) => isInside({ from: fn.at, to: fn.bodyEnd }, one)),
  );
  for (const [i, one] of all.entries()) {
    if (!holds[i]) continue;
    const sibling = all.find((other, j) => regions[i] === regions[j] && (other.to < one.from || other.from > one.to));
    if (sibling === undefined) continue;
    throw unable(
      spec,
      tokens[one.from]!,
      'has two waits in one expression, of which one is conditional or in a lambda: write two statements',
    );
  }
}

function isInside(inner: Await, outer: Await): boolean {
  return inner.from >= outer.from && inner.to <= outer.to;
}

/** The operand of `outer` that contains the await; -1 for none. */
function operandOf(outer: Conditional, { from, to }: Await): number {
  if (from < outer.from || to > outer.to || (from === outer.from && to === outer.to)) return -1;
  return outer.at.filter((at) => at < from).length;
}

/** The text around a conditional that makes it the statements of an awaited coroutine. */
function statements(
  tokens: readonly Token[],
  one: Conditional,
  awaits: readonly Await[],
  hasLambda: boolean,
): Pick<Wrap, 'open' | 'close'> {
  if (one.operator !== '?') {
    return { open: `(co_await mr_run([&]() -> mr_dco<bool> { ${one.operator === '&&' ? 'if (!(' : 'if (('}`, close: '); }))' };
  }
  const type = `decltype((true ${awaitedText(tokens, one.at[0]!, one.to, awaits)}))`;
  // A lambda in the type of a lambda can capture nothing, so an argument has the type.
  if (hasLambda) {
    return {
      open: '(co_await mr_run([&](auto mr_type) -> mr_dco<typename decltype(mr_type)::type> { if ((',
      close: `; }, mr_result_of<${type}>{}))`,
    };
  }
  return { open: `(co_await mr_run([&]() -> mr_dco<mr_result<${type}>> { if ((`, close: '; }))' };
}

/** The text in place of the conditional's operators. */
function separators(tokens: readonly Token[], { operator, at }: Conditional): Edit[] {
  if (operator === '?') return [replace(tokens[at[0]!]!, ')) co_return'), replace(tokens[at[1]!]!, '; else co_return')];
  const early = operator === '&&' ? ')) co_return false;' : ')) co_return true;';
  return at.map((i, n) => ({
    start: tokens[i]!.start,
    end: tokens[i + 1]!.end,
    text: `${early} ${n < at.length - 1 ? (operator === '&&' ? 'if (!(' : 'if ((') : 'co_return bool('}`,
  }));
}

type Await = Pick<Wrap, 'from' | 'to'> & Partial<Pick<Wrap, 'open'>>;

/** The tokens [from, to] with each await replaced by its result, to determine the type only. */
function awaitedText(tokens: readonly Token[], from: number, to: number, awaits: readonly Await[]): string {
  let text = '';
  for (let i = from; i <= to; i++) {
    text += 'mr_awaited('.repeat(awaits.filter((one) => one.from === i && one.to <= to).length);
    const { text: word, start, end } = tokens[i]!;
    text += word + ')'.repeat(awaits.filter((one) => one.to === i && one.from >= from).length);
    if (tokens[i + 1]?.start !== end || start === end) text += ' ';
  }
  return text.trim();
}

function insertBefore({ start }: Token, text: string): Edit {
  return { start, end: start, text };
}
function insertAfter({ end }: Token, text: string): Edit {
  return { start: end, end, text };
}
function replace({ start, end }: Token, text: string): Edit {
  return { start, end, text };
}

function awaitsOf(tokens: readonly Token[], waiting: Waiting): Await[] {
  return waiting.calls.map((at) => {
    const bracket = waiting.pointers?.calleeOpen(at) ?? -1;
    return { from: bracket >= 0 ? bracket : postfixStart(tokens, at), to: closing(tokens, waitingCallOpen(tokens, at, waiting)) };
  });
}

function functionEdits(
  spec: BuildSpec,
  tokens: readonly Token[],
  { owner }: Waiting,
  index: number,
  fn: FunctionTokens,
  awaits: readonly Await[],
): Edit[] {
  const edits: Edit[] = [];
  let isVoid = true;
  if (fn.trailing !== undefined) {
    const [from, to] = fn.trailing;
    isVoid = to === from + 1 && tokens[from]!.text === 'void';
    edits.push(insertBefore(tokens[from]!, 'mr_dco<'), insertAfter(tokens[to - 1]!, '>'));
  } else if (isDeduced(tokens, fn) && fn.bodyOpen >= 0) {
    const type = deducedType(tokens, owner, index, fn, awaits);
    if (type === undefined) {
      const what =
        fn.kind === 'lambda'
          ? "waits in a lambda without a return type: write '-> T' before its body"
          : `waits in ${fn.name}, whose return type is auto: write the type`;
      throw unable(spec, tokens[fn.at]!, what);
    }
    isVoid = type === 'void';
    if (fn.kind !== 'lambda') typeEdits(tokens, fn, edits, false);
    edits.push(insertBefore(tokens[fn.bodyOpen]!, `${fn.kind === 'lambda' && fn.open < 0 ? '()' : ''} -> mr_dco<${type}> `));
  } else {
    isVoid = typeEdits(tokens, fn, edits);
  }
  if (fn.bodyOpen < 0) return edits;
  for (let i = fn.bodyOpen; i < fn.bodyEnd; i++) {
    if (tokens[i]!.text === 'return' && owner[i] === index) edits.push(replace(tokens[i]!, 'co_return'));
  }
  for (const edit of arrayEdits(tokens, owner, index, fn)) edits.push(edit);
  // Makes the function a coroutine even if it contains no await.
  if (isVoid) edits.push(insertBefore(tokens[fn.bodyEnd]!, 'co_return;'));
  return edits;
}

/** Rewrites the specifiers and the return type before the name. Returns true if it is void. */
function typeEdits(tokens: readonly Token[], fn: FunctionTokens, edits: Edit[], hasType = true): boolean {
  const words: number[] = [];
  let isKernel = false;
  const end = nameStart(tokens, fn);
  for (let i = fn.start; i < end; i++) {
    const { text } = tokens[i]!;
    if (text === '__global__') isKernel = true;
    // A coroutine cannot be any of these.
    if (text === '__global__' || text === 'constexpr' || text === 'consteval') edits.push(replace(tokens[i]!, ''));
    else if (text === '__forceinline__') edits.push(replace(tokens[i]!, 'inline'));
    if (FUNCTION_ATTRIBUTES.includes(text) && tokens[i + 1]?.text === '(') i = closing(tokens, i + 1);
    else if (text === '[') i = closing(tokens, i);
    else if (!SPECIFIERS.has(text) && tokens[i]!.kind !== 'string') words.push(i);
  }
  const isVoid = words.length === 1 && tokens[words[0]!]!.text === 'void';
  if (words.length === 0 || !hasType) return false;
  if (isKernel && isVoid) edits.push(replace(tokens[words[0]!]!, 'mr_task'));
  else edits.push(insertBefore(tokens[words[0]!]!, 'mr_dco<'), insertAfter(tokens[words.at(-1)!]!, '>'));
  return isVoid;
}

/** The first token of a function's name, including the classes that qualify it. */
function nameStart(tokens: readonly Token[], { at, start }: FunctionTokens): number {
  let i = at;
  while (i - 3 >= start && tokens[i - 1]!.text === ':' && tokens[i - 2]!.text === ':') i = qualifierStart(tokens, i - 3);
  return i;
}

/** The first token of a name, with or without template arguments, that ends at `end`. */
function qualifierStart(tokens: readonly Token[], end: number): number {
  if (tokens[end]?.text !== '>') return end;
  for (let i = end - 1; i > 0; i--) {
    if (tokens[i]!.text === '<' && closingAngle(tokens, i) === end) return i - 1;
  }
  return end;
}

/** The first token of the postfix expression that contains the call of the name at `at`: `a[i].b->name(`. */
function postfixStart(tokens: readonly Token[], at: number): number {
  let i = tokens[at - 1]?.text === 'template' ? at - 1 : at;
  for (;;) {
    const before = tokens[i - 1]?.text;
    if (before === ':' && tokens[i - 2]?.text === ':') {
      const qualifier = tokens[i - 3];
      if (qualifier?.kind !== 'name' && qualifier?.text !== '>') return i - 2;
      i = qualifierStart(tokens, i - 3);
    } else if (before === '.') {
      i = primaryStart(tokens, i - 2);
    } else if (before === '>' && tokens[i - 2]?.text === '-') {
      i = primaryStart(tokens, i - 3);
    } else {
      return i;
    }
  }
}

/** The first token of the name, call or subscript that ends at `end`. */
function primaryStart(tokens: readonly Token[], end: number): number {
  let i = end;
  // `Sum<int>{}`: an object that is made there.
  if (tokens[i]?.text === '}') return qualifierStart(tokens, opening(tokens, i) - 1);
  while (tokens[i]?.text === ')' || tokens[i]?.text === ']') {
    const open = opening(tokens, i);
    const callee = tokens[open - 1];
    const isCall =
      callee !== undefined && ((callee.kind === 'name' && !STATEMENTS.has(callee.text)) || callee.text === ')' || callee.text === ']');
    const isTemplateCall = callee?.text === '>' && qualifierStart(tokens, open - 1) !== open - 1;
    if (isTemplateCall) return qualifierStart(tokens, open - 1);
    if (!isCall) return open;
    i = open - 1;
  }
  return i;
}
