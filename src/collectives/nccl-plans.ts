// Calls of NCCL as kernels, whose launches the runtime orders, tracks and fails as any other's (decision 0069).
import { DTYPES, type DType, scalarOf, u64 } from '../core/elements/dtype.js';
import { inout, input, type Kernel, MADE, output, type Param } from '../core/kernels/kernel.js';
import type { Reduction } from './types.js';

/** In the order of hal::CollectiveKind. */
const KINDS = ['allReduce', 'reduce', 'broadcast', 'allGather', 'reduceScatter', 'allToAll', 'send'] as const;
export type Kind = (typeof KINDS)[number];

/** By ncclDataType_t. */
const TYPES: readonly DType[] = ['i8', 'u8', 'i32', 'u32', 'i64', 'u64', 'f16', 'f32', 'f64', 'bf16'];
/** A type of the same size, for elements that only move. */
const MOVED: Readonly<Record<number, DType>> = { 1: 'u8', 2: 'f16', 4: 'u32', 8: 'u64' };
/** By ncclRedOp_t. */
const OPS: readonly Reduction[] = ['sum', 'prod', 'max', 'min', 'mean'];

/** Types that NCCL does not reduce. */
export const UNREDUCED: readonly DType[] = (Object.keys(DTYPES) as DType[]).filter((dtype) => !TYPES.includes(dtype));

/** Which arrays a rank has: what it gives, what it gets, both, or one that is both. */
export type Part = 'none' | 'from' | 'to' | 'both' | 'same';

/** One call, without its arrays. */
export interface Facts {
  readonly kind: Kind;
  readonly dtype: DType;
  readonly op: Reduction;
  readonly root: number;
  readonly peer: number;
  readonly count: number;
  /** Of each rank of this process. */
  readonly parts: readonly Part[];
}

/** The names of the arguments of a call, of those that one launch makes. */
export const fromOf = (call: number, rank: number): string => `from${rank}${call === 0 ? '' : `of${call}`}`;
export const toOf = (call: number, rank: number): string => `to${rank}${call === 0 ? '' : `of${call}`}`;
export const countOf = (at: number): string => `count${at === 0 ? '' : at}`;

/** The different counts of the calls, each of which is one argument. */
export function countsOf(calls: readonly Facts[]): readonly number[] {
  return [...new Set(calls.map(({ count }) => count))];
}

/** What of the calls is in the kernel: all but the counts themselves. */
export function keyOf(calls: readonly Facts[]): string {
  const counts = countsOf(calls);
  return calls
    .map(
      ({ kind, dtype, op, root, peer, count, parts }) => `${kind} ${dtype} ${op} ${root} ${peer} ${counts.indexOf(count)} ${parts.join()}`,
    )
    .join(';');
}

/** The kernel in whose place the library is called: no kernel is built where it is not there. `communicator`: its number. */
export function ncclKernel(communicator: number, calls: readonly Facts[]): Kernel {
  const params: Record<string, Param> = {};
  let next = 0;
  const give = (name: string, param: Param): number => {
    params[name] = param;
    return next++;
  };
  const counts = countsOf(calls);
  counts.forEach((_, at) => give(countOf(at), u64));
  const words = [2, communicator, calls[0]!.parts.length];
  calls.forEach(({ kind, dtype, op, root, peer, count, parts }, call) => {
    const type = TYPES.includes(dtype) ? dtype : MOVED[DTYPES[dtype].byteSize]!;
    words.push(KINDS.indexOf(kind), TYPES.indexOf(type), OPS.indexOf(op), root, peer, counts.indexOf(count));
    const scalar = scalarOf(dtype);
    // One more than the number; 0 is none.
    parts.forEach((part, rank) => {
      const from =
        part === 'from' || part === 'both'
          ? give(fromOf(call, rank), input(scalar)) + 1
          : part === 'same'
            ? give(fromOf(call, rank), inout(scalar)) + 1
            : 0;
      const to = part === 'to' || part === 'both' ? give(toOf(call, rank), output(scalar)) + 1 : part === 'same' ? from : 0;
      words.push(from, to);
    });
  });
  const name = calls.length === 1 ? calls[0]!.kind : 'group';
  const build = {
    source: '',
    mapping: { file: name, lines: [] },
    entry: name,
    name,
    options: [],
    fmad: true,
    isBounded: false,
    isChecked: true,
    plan: Float64Array.from(words),
    isOfLibrary: true,
  };
  return Object.freeze({ [MADE]: true, name, params, source: '', build, abi: 'plain', indexRank: 0 } as const);
}
