// Random kernels with all that a test needs of one: the kernel to launch, and its typed form for the interpreter.
import { CompileError, f16, f32, f64, func, i16, i32, i64, i8, inout, input, kernel, u32, u64, u8 } from 'millrace';
import type { DType, Kernel } from 'millrace';
import type { KernelIr } from '../../../src/compiler/ir/ir.js';
import { irOfText, textAsBody } from './typed-form.js';
import { HELPERS, OUTPUTS, TypedKernel } from './typed-kernel.js';

export const INPUTS = { a: 'f32', b: 'i32', c0: 'u32', d: 'f64', e: 'i64', h: 'f16' } as const satisfies Record<string, DType>;
const TYPES = { i8, u8, i16, i32, u32, i64, u64, f16, f32, f64 } as const;
const PARAMS = {
  ...Object.fromEntries(Object.entries(INPUTS).map(([name, dtype]) => [name, input(TYPES[dtype])])),
  p: inout(u32),
  n: i32,
  m0: i32,
  s0: f32,
  ...Object.fromEntries(OUTPUTS.map(([dtype], at) => [`o${at}`, inout(TYPES[dtype])])),
};
const functions = Object.fromEntries(
  Object.entries(HELPERS).map(([name, { params, result, body }]) => [
    name,
    func(
      params.map((type) => TYPES[type]),
      TYPES[result],
      textAsBody(body),
    ),
  ]),
);

export interface Case {
  readonly seed: number;
  readonly made: Kernel;
  readonly ir: KernelIr;
}

/** Those that the language takes: barriers at random stand where not all threads come. */
export function* cases(from: number): Generator<Case, never> {
  for (let seed = from; ; seed++) {
    const { text } = new TypedKernel(seed);
    try {
      const made = kernel(`random_${seed}`, PARAMS, textAsBody(text), { functions, fmad: false });
      yield { seed, made: made as Kernel, ir: irOfText(text, PARAMS, HELPERS) };
    } catch (error) {
      if (!(error instanceof CompileError) || error.diagnostics[0]!.code !== 'K401')
        throw new Error(`${String(error)}\n${text}`, { cause: error });
    }
  }
}
