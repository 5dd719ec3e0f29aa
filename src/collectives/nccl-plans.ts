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

export interface Facts {
  readonly kind: Kind;
  readonly dtype: DType;
  readonly op: Reduction;
  readonly root: number;
  readonly peer: number;
  /** Of each rank of this process. */
  readonly parts: readonly Part[];
}

/** The names of a rank's arguments. */
export const fromOf = (rank: number): string => `from${rank}`;
export const toOf = (rank: number): string => `to${rank}`;

/** The kernel in whose place the library is called: no kernel is built where it is not there. `communicator`: its number. */
export function ncclKernel(communicator: number, { kind, dtype, op, root, peer, parts }: Facts): Kernel {
  const type = TYPES.includes(dtype) ? dtype : MOVED[DTYPES[dtype].byteSize]!;
  const params: Record<string, Param> = { count: u64 };
  const places: number[] = [];
  const scalar = scalarOf(dtype);
  let next = 0;
  const give = (name: string, param: Param): number => {
    params[name] = param;
    return ++next + 1;
  };
  parts.forEach((part, rank) => {
    const from =
      part === 'from' || part === 'both' ? give(fromOf(rank), input(scalar)) : part === 'same' ? give(fromOf(rank), inout(scalar)) : 0;
    const to = part === 'to' || part === 'both' ? give(toOf(rank), output(scalar)) : part === 'same' ? from : 0;
    places.push(from, to);
  });
  const words = [2, communicator, KINDS.indexOf(kind), TYPES.indexOf(type), OPS.indexOf(op), root, peer, ...places];
  const build = {
    source: '',
    mapping: { file: kind, lines: [] },
    entry: kind,
    name: kind,
    options: [],
    fmad: true,
    isBounded: false,
    isChecked: true,
    plan: Float64Array.from(words),
    isOfLibrary: true,
  };
  return Object.freeze({ [MADE]: true, name: kind, params, source: '', build, abi: 'plain', indexRank: 0 } as const);
}
