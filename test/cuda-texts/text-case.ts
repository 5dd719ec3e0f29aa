// One published idiom of CUDA C++: a file of this folder, a launch of one of its kernels, and what plain JavaScript computes.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { CudaParams } from 'millrace';

export type Values =
  | Int8Array
  | Float32Array
  | Float64Array
  | Int16Array
  | Int32Array
  | Uint32Array
  | Uint8Array
  | Uint16Array
  | BigInt64Array
  | BigUint64Array;

/** A value for a parameter or a field: a scalar, the contents of an array, a list, or the fields of a struct. */
export type Given = number | bigint | boolean | null | Values | readonly Given[] | { readonly [field: string]: Given };

type Extent = number | readonly [x: number, y: number, z?: number];

export interface TextCase {
  /** The name of its file, without `.cu`. */
  readonly file: string;
  readonly kernel: string;
  readonly params: CudaParams;
  readonly launch: { readonly grid: Extent; readonly block: Extent; readonly sharedBytes?: number; readonly cooperative?: boolean };
  /** Scalars, structs, and what the arrays contain before the launch. */
  readonly given: Readonly<Record<string, Given>>;
  /** Some arrays after the launch, those in structs by their path (`p.out`). Floats may differ in their last digits. */
  readonly results: Readonly<Record<string, Values>>;
  readonly options?: readonly string[];
  /** The largest difference of floats, relative above 1; by default a few bits of f32. */
  readonly tolerance?: number;
}

export function textOf(file: string): string {
  return readFileSync(path.join(import.meta.dirname, `${file}.cu`), 'utf8');
}

/** Makes an array by index. */
export function floats(length: number, at: (i: number) => number): Float32Array {
  return Float32Array.from({ length }, (_unused, i) => at(i));
}
export function doubles(length: number, at: (i: number) => number): Float64Array {
  return Float64Array.from({ length }, (_unused, i) => at(i));
}
export function ints(length: number, at: (i: number) => number): Int32Array {
  return Int32Array.from({ length }, (_unused, i) => at(i));
}
