// TypeScript types of what a kernel's body can use: its arguments and the thread that runs it. The body never runs as JavaScript; the types
// let the user's TypeScript compiler check it.
import type { Scalar } from '../../core/elements/dtype.js';
import type { ArrayParam, Kernel, Params } from '../../core/kernels/kernel.js';
import type { ElementIn, ReadArray, WriteArray } from './elements.js';
import type { Thread } from './thread.js';

/** The first parameter of a body: the kernel's arguments by name. */
export type BodyArgs<P extends Params> = {
  readonly [K in keyof P]: P[K] extends Scalar<infer D>
    ? ElementIn<D>
    : P[K] extends ArrayParam<infer D, 'in', infer N>
      ? ReadArray<D, N>
      : P[K] extends ArrayParam<infer D, infer _A, infer N>
        ? WriteArray<D, N>
        : never;
};

/** Values that are compiled into the kernel: `wp.constant`. `specialize` makes another kernel with other values. */
export type Constants = Readonly<Record<string, number | boolean>>;
/** The type of a constant in the body: number or boolean, not its literal value. */
export type ConstantsEnv<C extends Constants> = { readonly [K in keyof C]: C[K] extends boolean ? boolean : number };

type FuncArgs<A extends readonly Scalar[]> = { -readonly [I in keyof A]: A[I] extends Scalar<infer D> ? ElementIn<D> : never };
type FuncResult<R extends Scalar> = R extends Scalar<infer D> ? ElementIn<D> : never;
export type FuncBody<A extends readonly Scalar[], R extends Scalar> = (...args: FuncArgs<A>) => FuncResult<R>;

/** A helper made by `func`, for `KernelOptions.functions`: a `__device__` function, `@wp.func`. */
export interface Func<A extends readonly Scalar[] = readonly Scalar[], R extends Scalar = Scalar> {
  /** Distinguishes a helper from other values. */
  readonly kind: 'func';
  /** The types of the arguments, in order. */
  readonly params: A;
  /** The type of the returned value. */
  readonly result: R;
}
export type Funcs = Readonly<Record<string, Func>>;
export type FuncsEnv<F extends Funcs> = {
  readonly [K in keyof F]: F[K] extends Func<infer A, infer R> ? (...args: FuncArgs<A>) => FuncResult<R> : never;
};

/** Options of `kernel()`. Bad values are an ArgumentError of the call. */
export interface KernelOptions<C extends Constants = Record<never, never>, F extends Funcs = Record<never, never>> {
  /** Numbers and booleans that the body reads as members of its second parameter, compiled in: `wp.constant`. */
  readonly constants?: C;
  /** Helpers made by `func`, which the body calls as members of its second parameter: `__device__` functions, `@wp.func`. */
  readonly functions?: F;
  /**
   * 'checked' (default): an index outside an array is reported as BoundsError and accesses no memory. 'unchecked': it is undefined
   * behaviour, as in CUDA C++.
   */
  readonly bounds?: 'checked' | 'unchecked';
  /** Default true: `a * b + c` may be fused, NVRTC's `--fmad`. False: `+ - * / sqrt` agree bit for bit between devices. */
  readonly fmad?: boolean;
  /** The most threads of a block that the kernel is launched with, 1 to 1024; default as many as the device allows. */
  readonly maxThreadsPerBlock?: number;
}

/** The thread's members, without those that a constant or function of the same name hides. */
type Under<Own> = string extends keyof Own ? Thread : keyof Thread & keyof Own extends never ? Thread : Omit<Thread, keyof Own>;

/** The body of a kernel: its source is compiled, and it is never called. */
export type KernelBody<P extends Params, C extends Constants, F extends Funcs> = (
  args: BodyArgs<P>,
  t: Under<ConstantsEnv<C> & FuncsEnv<F>> & ConstantsEnv<C> & FuncsEnv<F>,
) => void;

/** What `kernel()` returns: a kernel whose constants can be changed. */
export interface TypedKernel<P extends Params, C extends Constants> extends Kernel<P> {
  /** The same kernel with other values for some constants. Throws ArgumentError for a name that is not one of its constants. */
  specialize(constants: Partial<ConstantsEnv<C>>): TypedKernel<P, C>;
}
