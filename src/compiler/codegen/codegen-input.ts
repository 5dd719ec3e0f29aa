// The input of code generation: plain data that can be posted, so that the device's worker can emit sources only when it needs them.
import type { Params } from '../../core/kernels/kernel.js';
import type { CallSite } from '../diagnostics/diagnostics.js';
import type { KernelIr } from '../ir/ir.js';

export interface KernelForm {
  readonly ir: KernelIr;
  readonly params: Params;
  readonly isChecked: boolean;
  readonly maxThreadsPerBlock: number | undefined;
  readonly site: CallSite;
  /** Offset of each line of the function's source. */
  readonly lineStarts: readonly number[];
}
