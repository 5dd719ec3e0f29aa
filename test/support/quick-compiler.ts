// For tests whose subject is the text that Millrace writes, not what the optimiser makes of it: kernels are compiled with -O1
// in place of -O3, in two thirds of the time. The long form keeps -O3.
import { fileURLToPath } from 'node:url';
import { IS_LONG } from './long.js';

const insteadOf = (script: string): Readonly<Record<string, string>> =>
  IS_LONG || process.env['MILLRACE_CXX'] !== undefined ? {} : { MILLRACE_CXX: fileURLToPath(new URL(script, import.meta.url)) };
/** The variables that make the CPU device use the compiler that is quick; none where the user names a compiler. */
export const QUICK: Readonly<Record<string, string>> = insteadOf('./quick-cxx');
/** The same without any optimisation: half of the time for large kernels, whose runs take long then. */
export const QUICKEST: Readonly<Record<string, string>> = insteadOf('./quickest-cxx');
