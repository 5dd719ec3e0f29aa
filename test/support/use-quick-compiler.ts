// Imported by test files whose kernels are all compiled for their results: they use the quick compiler (quick-compiler.ts).
import { QUICK } from './quick-compiler.js';

Object.assign(process.env, QUICK);
