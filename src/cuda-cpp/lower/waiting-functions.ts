// Finds the kernels of CUDA C++ source whose threads may wait for each other: those that mention a barrier or a warp primitive, or a function
// that does. Such a kernel runs with a stack for each thread (the shim's block_threads.h), which any kernel could, but no faster than thread
// after thread. So a name that only looks like one that waits costs time and does not change the result, while a kernel that waits must be
// found.
import { callOpen, functionsOf, owners, type FunctionTokens } from '../read/functions.js';
import type { Token } from '../read/tokens.js';
import { hasCub, hasGates, hasGroups } from './library-headers.js';

const PRIMITIVES =
  /^(?:__syncthreads(?:_count|_and|_or)?|__syncwarp|__shfl(?:_up|_down|_xor)?_sync|__(?:ballot|any|all)_sync|__activemask|__match_(?:any|all)_sync|__reduce_(?:add|min|max|and|or|xor)_sync)$/;
/** Member functions and functions of the namespace, for source that names cooperative groups. */
const GROUP_CALLS =
  /^(?:sync|barrier_wait|shfl|shfl_up|shfl_down|shfl_xor|any|all|ballot|match_any|match_all|reduce|coalesced_threads|(?:labeled|binary)_partition|(?:in|ex)clusive_scan|wait|wait_prior)$/;
/** Members of CUB's classes, for source that names CUB. */
const CUB_CALLS =
  /^(?:Sum|Reduce|Max|Min|(?:Head|Tail)Segmented(?:Sum|Reduce)|(?:In|Ex)clusive(?:Sum|Scan)|Scan|Broadcast|Load|Store|(?:Warp)?StripedToBlocked|BlockedTo(?:Warp)?Striped|ScatterTo(?:Blocked|Striped(?:Guarded|Flagged)?)|Sort(?:Descending)?(?:BlockedToStriped)?|StableSort|(?:Init)?Histogram|Composite|Flag(?:Heads|Tails)|Subtract(?:Left|Right)|Offset|Rotate|Up|Down)$/;
/** Of barriers and pipelines. */
const GATE_CALLS = /^(?:wait|arrive_and_wait|try_wait|wait_parity|try_wait_parity|producer_acquire|consumer_wait)$/;

export interface Waiting {
  readonly functions: readonly FunctionTokens[];
  /** Indices into `functions` of those that may wait. */
  readonly waits: ReadonlySet<number>;
  /** For each token that may wait, the index of the function that mentions it. */
  readonly mentions: ReadonlyMap<number, number>;
  /** Whether no token tells which functions may call one that waits, so that all may. */
  readonly isAnywhere: boolean;
  /** Whether a kernel may wait. `path`: its C++ name, with its template arguments. */
  isWaiting(path: string): boolean;
}

/** Whether source contains anything that waits. The tokens are those after macro expansion. */
export function hasWaits(tokens: readonly Token[]): boolean {
  return (
    hasGroups(tokens) || hasCub(tokens) || hasGates(tokens) || tokens.some(({ kind, text }) => kind === 'name' && PRIMITIVES.test(text))
  );
}

export function findWaiting(tokens: readonly Token[]): Waiting {
  const functions = functionsOf(tokens);
  const owner = ownersOfAll(tokens, functions);
  const declared = new Set(functions.map(({ at }) => at));
  const isKernel = functions.map(({ start, at }) => tokens.slice(start, at).some(({ text }) => text === '__global__'));
  const waitsItself = primitivesOf(tokens);
  const names = new Set<string>();
  const waits = new Set<number>();
  const mentions = new Map<number, number>();
  // Of operators, destructors and conversions no token tells a call, and of pointers in variables no token tells the function.
  let isAnywhere = false;
  const add = (index: number): void => {
    const { name, className, kind, at } = functions[index]!;
    if (waits.has(index)) return;
    waits.add(index);
    if (kind === 'lambda') {
      if (owner[at]! >= 0 && owner[at] !== index) add(owner[at]!);
      else if (name === '') isAnywhere = true;
    }
    if (isKernel[index]) return;
    if (name === 'operator()') names.add(className);
    else if (name.startsWith('operator') || name.startsWith('~')) isAnywhere = true;
    if (name !== '') names.add(name);
  };
  for (let before = -1; before < names.size + waits.size; ) {
    before = names.size + waits.size;
    for (const [i, { text, kind }] of tokens.entries()) {
      if (kind !== 'name' || mentions.has(i) || declared.has(i) || !(names.has(text) || waitsItself(i))) continue;
      mentions.set(i, owner[i]!);
      if (owner[i]! >= 0) add(owner[i]!);
      else if (!/^(?:class|struct|friend)$/.test(tokens[i - 1]?.text ?? '')) isAnywhere = true;
    }
  }
  const kernels = new Set([...waits].filter((i) => isKernel[i]).map((i) => functions[i]!.name));
  const isWaiting = (path: string): boolean => {
    const [, name = path, given = ''] = /^([^<]*)(<.*)?$/s.exec(path) ?? [];
    return isAnywhere || kernels.has(name.split('::').at(-1)!) || (given.match(/\w+/g) ?? []).some((word) => names.has(word));
  };
  return { functions, waits, mentions, isAnywhere, isWaiting };
}

/** Tells whether a token is a call of a barrier or a warp primitive, or of a library's function that waits. */
function primitivesOf(tokens: readonly Token[]): (i: number) => boolean {
  const [isGrouped, isCub, isGated] = [hasGroups(tokens), hasCub(tokens), hasGates(tokens)];
  return (i) => {
    const { text } = tokens[i]!;
    if (PRIMITIVES.test(text)) return true;
    if (isGrouped && GROUP_CALLS.test(text)) return callOpen(tokens, i) >= 0;
    if (isGated && text === 'make_pipeline') return true;
    if (!(isCub && CUB_CALLS.test(text)) && !(isGated && GATE_CALLS.test(text))) return false;
    return tokens[i - 1]?.text === '.' || (tokens[i - 1]?.text === '>' && tokens[i - 2]?.text === '-');
  };
}

/** Like `owners`, with the heads of functions: a type or a default argument there may wait. */
function ownersOfAll(tokens: readonly Token[], functions: readonly FunctionTokens[]): Int32Array {
  const owner = owners(tokens, functions);
  for (const [index, { kind, start, bodyOpen, close, trailing }] of functions.entries()) {
    if (kind === 'lambda') continue;
    const end = bodyOpen >= 0 ? bodyOpen : Math.max(close, trailing?.[1] ?? 0);
    for (let i = start; i < end; i++) if (owner[i]! < 0) owner[i] = index;
  }
  return owner;
}
