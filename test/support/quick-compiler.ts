// The compiler of tests: kernels are compiled with -O1 in place of -O3, in half of the time, because their subject is what a kernel
// computes and not what the optimiser makes of it. The long form keeps -O3.
import { fileURLToPath } from 'node:url';
import { IS_LONG } from './long.js';

const [quick, quickest] = ['quick-cxx', 'quickest-cxx'].map((script) => fileURLToPath(new URL(script, import.meta.url)));

/** Files with the compiler that users have: whole processes, what is measured, and the optimiser's own subjects. */
const USUAL = /\/test\/(?:process\/(?!(?:driver-calls|every-failure|hung-gpu|lost-control)\.)|package\/)|\/alone\//;
/** Large kernels, without any optimisation: half of the time again, and slower runs. */
const QUICKEST =
  /\/(?:arithmetic\/(?:shaped-)?operation[^/]*|texts\/half-numbers|kernels\/(?:fourier|sorts-and-scans|sorts|operations|products)|openblas|readme|compile-examples)\.test\.ts$/;

/** Sets MILLRACE_CXX for a test file, unless the user names a compiler. */
export function useCompilerOf(file: string): void {
  const { MILLRACE_CXX } = process.env;
  // Files of a project may share a process.
  if (IS_LONG || ![undefined, quick, quickest].includes(MILLRACE_CXX)) return;
  if (USUAL.test(file)) delete process.env['MILLRACE_CXX'];
  else process.env['MILLRACE_CXX'] = QUICKEST.test(file) ? quickest : quick;
}
