// For test files whose kernels are all compiled for their results.
import { QUICK } from './quick-compiler.js';

/** Makes this file's process use the quick compiler (quick-compiler.ts). */
export function useQuickCompiler(): void {
  Object.assign(process.env, QUICK);
}
