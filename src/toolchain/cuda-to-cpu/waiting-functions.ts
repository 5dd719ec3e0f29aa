// Finds the functions of CUDA C++ source that can wait for other threads: those that call a barrier or a warp primitive, and their callers.
// It matches by name, so overloads and templates need no types: a function that only shares its name with a waiting one counts as waiting
// too, which costs time but does not change the result.
import type { BuildSpec } from '../../core/channel/build-spec.js';
import type { CompileError } from '../../core/base/errors.js';
import { compileError, titleOf } from '../base/diagnostics.js';
import { callOpen, functionsOf, owners, type FunctionTokens } from '../cuda-parser/functions.js';
import { closing, opening, type Token } from '../cuda-parser/tokenizer.js';
import { FunctionPointers } from './function-pointers.js';
import { hasCub, hasGates, hasGroups } from './library-headers.js';
import { Callables } from './waiting-callables.js';

const PRIMITIVES =
  /^(?:__syncthreads(?:_count|_and|_or)?|__syncwarp|__shfl(?:_up|_down|_xor)?_sync|__(?:ballot|any|all)_sync|__activemask|__match_(?:any|all)_sync|__reduce_(?:add|min|max|and|or|xor)_sync)$/;
/** Member functions and functions of the namespace, for source that names cooperative groups. */
const GROUP_CALLS =
  /^(?:sync|barrier_wait|shfl|shfl_up|shfl_down|shfl_xor|any|all|ballot|match_any|match_all|reduce|coalesced_threads|(?:labeled|binary)_partition|(?:in|ex)clusive_scan|wait|wait_prior)$/;
/** Members of CUB's classes, and functions of its that ask for the thread's index, for source that names CUB. */
const CUB_CALLS =
  /^(?:Sum|Reduce|Max|Min|(?:Head|Tail)Segmented(?:Sum|Reduce)|(?:In|Ex)clusive(?:Sum|Scan)|Scan|Broadcast|Load|Store|(?:Warp)?StripedToBlocked|BlockedTo(?:Warp)?Striped|ScatterTo(?:Blocked|Striped(?:Guarded|Flagged)?)|Sort(?:Descending)?(?:BlockedToStriped)?|StableSort|(?:Init)?Histogram|Composite|Flag(?:Heads|Tails)|Subtract(?:Left|Right)|Offset|Rotate|Up|Down)$/;
/** Of barriers and pipelines. */
const GATE_CALLS = /^(?:wait|arrive_and_wait|try_wait|wait_parity|try_wait_parity|producer_acquire|consumer_wait)$/;
const CUB_INDICES = /^(?:LaneId|WarpId|RowMajorTid)$/;

export interface Waiting {
  readonly functions: readonly FunctionTokens[];
  /** For each token, the function whose body contains it. */
  readonly owner: Int32Array;
  /** Names whose calls may wait. */
  readonly names: ReadonlySet<string>;
  /** Indices into `functions` of those that become coroutines. */
  readonly waits: ReadonlySet<number>;
  /** Tokens of the names in calls that may wait. */
  readonly calls: readonly number[];
  /** Classes whose operator() waits. */
  readonly classes: ReadonlySet<string>;
  readonly callables: Callables;
  /** If some of them may point to a function that waits. */
  readonly pointers: FunctionPointers | undefined;
}

/** The `(` of the arguments of a call that may wait. */
export function waitingCallOpen(
  tokens: readonly Token[],
  at: number,
  { classes, callables, pointers }: Pick<Waiting, 'classes' | 'callables' | 'pointers'>,
): number {
  const pointed = pointers?.callOpen(at) ?? -1;
  if (pointed >= 0) return pointed;
  const made = classes.size === 0 ? -1 : callables.madeCallOpen(at, classes);
  return made >= 0 ? made : callOpen(tokens, at);
}

/** Whether source contains anything that waits. The tokens are those after macro expansion. */
export function hasWaits(tokens: readonly Token[]): boolean {
  return (
    hasGroups(tokens) || hasCub(tokens) || hasGates(tokens) || tokens.some(({ kind, text }) => kind === 'name' && PRIMITIVES.test(text))
  );
}

/** Throws a CompileError for code that waits and cannot become a coroutine. */
export function findWaiting(spec: BuildSpec, tokens: readonly Token[]): Waiting {
  const functions = functionsOf(tokens);
  const owner = owners(tokens, functions);
  const isGrouped = hasGroups(tokens);
  const isCub = hasCub(tokens);
  const isGated = hasGates(tokens);
  const names = new Set<string>();
  const isFunction = (text: string): boolean =>
    PRIMITIVES.test(text) ||
    (isGrouped && GROUP_CALLS.test(text)) ||
    (isCub && CUB_INDICES.test(text)) ||
    (isGated && text === 'make_pipeline');
  for (const { kind, text } of tokens) if (kind === 'name' && isFunction(text)) names.add(text);
  // These names are common, so only calls of members count, unless the source has a function with the name.
  const isMember = (i: number): boolean => {
    const { text } = tokens[i]!;
    if (!(isCub && CUB_CALLS.test(text)) && !(isGated && GATE_CALLS.test(text))) return false;
    return tokens[i - 1]?.text === '.' || (tokens[i - 1]?.text === '>' && tokens[i - 2]?.text === '-');
  };
  const called = new Set(tokens.filter((_unused, i) => isMember(i)).map(({ text }) => text));
  for (const { name } of functions) if (called.has(name)) names.add(name);
  const aliases = localAliases(tokens, owner);
  const callables = new Callables(tokens, functions);
  /** Variables and parameters, which are called or declared. */
  const variables = new Set<string>();
  const classes = new Set<string>();
  const declared = new FunctionPointers(tokens, functions, owner);
  let pointers: FunctionPointers | undefined;
  const mayWait = (i: number): boolean => {
    const { kind, text } = tokens[i]!;
    if (kind !== 'name') return false;
    if (classes.size > 0 && callables.madeCallOpen(i, classes) >= 0) return true;
    if (pointers !== undefined && pointers.callOpen(i) >= 0) return true;
    if (!names.has(text)) return isMember(i) && !aliases.has(`${owner[i]} ${text}`);
    return !aliases.has(`${owner[i]} ${text}`) && !(variables.has(text) && tokens[i + 1]?.text === '(' && !callables.isCall(i));
  };
  // `reduce<warpSum>`: the library instantiates the template, so no token tells what its parameter may be.
  const given = [spec.path ?? '', ...(spec.instances ?? [])].flatMap((path) => /<.*/s.exec(path)?.[0].match(/\w+/g) ?? []);
  const waits = new Set<number>();
  for (let isGrowing = true; isGrowing; ) {
    const before = names.size + waits.size + classes.size;
    if (given.some((word) => names.has(word))) for (const name of callables.templatePointerNames()) names.add(name);
    for (const i of tokens.keys()) {
      if (pointers !== undefined && declared.isAddress(i)) names.add(tokens[i]!.text);
      if (!mayWait(i)) continue;
      const isCall = waitingCallOpen(tokens, i, { classes, callables, pointers }) >= 0;
      if (isCall && owner[i]! >= 0) waits.add(owner[i]!);
      if (isCall) continue;
      const passed = owner[i]! < 0 ? [] : [...passedOn(tokens, functions, i, i), ...callables.fromTemplateArgument(i)];
      for (const name of passed) names.add(name);
      // A parameter that gets nothing else becomes `auto`.
      const isArgument = passed.length > 0 && '(,<'.includes(tokens[tokens[i - 1]?.text === '&' ? i - 2 : i - 1]?.text ?? ' ');
      const isStored = !isArgument || passed.some((name) => declared.functionParameters.has(name));
      if (pointers !== undefined || !isStored || !declared.isAddress(i)) continue;
      pointers = declared;
    }
    for (const [i, fn] of functions.entries()) {
      if (names.has(fn.name) && !PRIMITIVES.test(fn.name)) waits.add(i);
      if (!waits.has(i)) continue;
      if (fn.name === 'operator()') {
        if (!classes.has(fn.className)) for (const name of callables.variablesOf(classes.add(fn.className))) variables.add(name);
        for (const name of variables) names.add(name);
      } else if (fn.name !== '') names.add(fn.name);
      if (fn.kind === 'lambda') {
        if (declared.names.has(fn.name)) pointers = declared;
        for (const name of passedOn(tokens, functions, fn.at, fn.bodyEnd)) names.add(name);
        if (tokens[fn.bodyEnd + 1]?.text === '(' && owner[fn.at]! >= 0) waits.add(owner[fn.at]!);
      }
    }
    for (const name of pointers?.names ?? []) names.add(name);
    isGrowing = names.size + waits.size + classes.size > before;
  }
  const calls: number[] = [];
  for (const [i, token] of tokens.entries()) {
    if (!mayWait(i) || waitingCallOpen(tokens, i, { classes, callables, pointers }) < 0) continue;
    if (owner[i]! >= 0) calls.push(i);
    else if (PRIMITIVES.test(token.text)) throw unable(spec, token, `calls ${token.text} outside the body of a function`);
  }
  for (const i of waits) {
    const reason = whyNot(functions[i]!);
    if (reason !== undefined) throw unable(spec, tokens[functions[i]!.at]!, reason);
  }
  return { functions, owner, names, waits, calls, classes, callables, pointers };
}

/** Types that functions give a name of their own, which a waiting function may have too: the function, and the name. */
function localAliases(tokens: readonly Token[], owner: Int32Array): Set<string> {
  const found = new Set<string>();
  for (const [i, { text }] of tokens.entries()) {
    if (owner[i]! < 0) continue;
    if (text === 'using' && tokens[i + 2]?.text === '=') found.add(`${owner[i]} ${tokens[i + 1]!.text}`);
    if (text !== 'typedef') continue;
    const end = tokens.findIndex((token, at) => at > i && token.text === ';');
    if (end > 0) found.add(`${owner[i]} ${tokens[end - 1]!.text}`);
  }
  return found;
}

/**
 * The other names of the callable in [from, to]: the parameter of the function that it is passed to, or the variable that it initialises.
 */
function passedOn(tokens: readonly Token[], functions: readonly FunctionTokens[], from: number, to: number): string[] {
  let first = tokens[from - 1]?.text === '&' && '(,=?:'.includes(tokens[from - 2]?.text ?? ' ') ? from - 1 : from;
  let last = to;
  while (tokens[last + 1]?.text === '[') last = closing(tokens, last + 1);
  if (tokens[first - 1]?.text === '?' || (tokens[first - 1]?.text === ':' && tokens[first - 2]?.text !== ':')) {
    // `c ? f : g`
    const isEnd = (i: number): boolean =>
      tokens[i]!.text === '='
        ? tokens[i + 1]?.text !== '=' && !'=!<>'.includes(tokens[i - 1]?.text || ' ')
        : ',;{}(['.includes(tokens[i]!.text);
    while (first > 0 && !isEnd(first - 1)) first = ')]'.includes(tokens[first - 1]!.text) ? opening(tokens, first - 1) : first - 1;
    while (last + 1 < tokens.length && !',;)}'.includes(tokens[last + 1]!.text))
      last = '([{'.includes(tokens[last + 1]!.text) ? closing(tokens, last + 1) : last + 1;
  }
  const before = tokens[first - 1]?.text;
  const after = tokens[last + 1]?.text;
  if (before === '=' && after === ';' && tokens[first - 2]?.kind === 'name') return [tokens[first - 2]!.text];
  if ((before !== '(' && before !== ',') || (after !== ')' && after !== ',')) return [];
  let position = 0;
  let at = first - 1;
  for (; at >= 0 && tokens[at]!.text !== '('; at--) {
    const { text } = tokens[at]!;
    if (text === ',') position++;
    else if (text === ')' || text === ']' || text === '}') at = opening(tokens, at);
    else if (text === '[' || text === '{' || text === ';') return [];
  }
  return functions
    .filter(({ name, open }) => name !== '' && open >= 0 && calleeOf(tokens, at) === name)
    .map((fn) => parameterName(tokens, fn, position))
    .filter((name) => name !== '');
}

function calleeOf(tokens: readonly Token[], open: number): string {
  let at = open - 1;
  if (tokens[at]?.text === '>') while (at > 0 && tokens[at]!.text !== '<') at--;
  if (tokens[at]?.text === '<') at--;
  return tokens[at]?.kind === 'name' ? tokens[at]!.text : '';
}

function parameterName(tokens: readonly Token[], { open, close }: FunctionTokens, position: number): string {
  let depth = 0;
  let count = 0;
  let name = '';
  for (let i = open + 1; i < close; i++) {
    const { text, kind } = tokens[i]!;
    if (text === '<') depth++;
    else if (text === '>') depth--;
    else if (text === '(' && tokens[i + 1]?.text === '*' && tokens[i + 3]?.text === ')' && depth === 0) {
      // `float (*name)(float)`
      name = tokens[i + 2]!.text;
      i = closing(tokens, i + 4);
    } else if (text === '(' || text === '[' || text === '{') i = closing(tokens, i);
    else if (text === ',' && depth === 0) {
      if (count++ === position) return name;
      name = '';
    } else if (text === '=') {
      while (i + 1 < close && tokens[i + 1]!.text !== ',') i = '([{'.includes(tokens[i + 1]!.text) ? closing(tokens, i + 1) : i + 1;
    } else if (kind === 'name' && depth === 0) name = text;
  }
  return count === position ? name : '';
}

function whyNot(fn: FunctionTokens): string | undefined {
  if (fn.name.startsWith('operator') && fn.name !== 'operator()') return `waits in ${fn.name}: make it a named function`;
  if (fn.name.startsWith('~') || (fn.name !== '' && fn.name === fn.className)) return `waits in a constructor or destructor (${fn.name})`;
  return undefined;
}

/** Builds K402. */
export function unable(spec: BuildSpec, { line, column }: Token, what: string): CompileError {
  const message = `${titleOf(spec)} ${what}. Only CUDA devices support that.`;
  return compileError(spec, message, [{ code: 'K402', line, column, message }]);
}
