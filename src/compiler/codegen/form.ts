// What a kernel's texts are written from: plain data, so that whoever builds it may write them, and only if there is need.
import type { Params } from '../../core/kernels/kernel.js';
import type { CallSite } from '../diagnostics/diagnostics.js';
import type { KernelIr } from '../ir/ir.js';

export interface KernelForm {
  readonly ir: KernelIr;
  readonly params: Params;
  readonly isChecked: boolean;
  readonly maxThreadsPerBlock: number | undefined;
  readonly site: CallSite;
  /** Offsets of the lines of the function's text. */
  readonly lineStarts: readonly number[];
}
