// The texts of a kernel. They are written where a compiler wants them, in the device's worker, since most kernels are
// found built: what is asked of a kernel before that, its form knows.
import type { BuildSpec, UnwrittenBuild } from '../../core/channel/build.js';
import { CompileError } from '../../core/base/errors.js';
import { emitKernel } from '../emission/cuda.js';
import { emitSimd } from '../simd/kernel.js';
import { isFaster } from '../simd/suitability.js';
import { isTooDeep } from '../diagnostics/depth.js';
import { lineAt, userLine } from '../diagnostics/diagnostics.js';
import type { KernelForm } from './form.js';

/** Which kernels have lanes: none, those that are known to gain by them, or all that can. */
export type SimdMode = 'off' | 'auto' | 'always';

/** CUDA C++, which both devices take; it has the names of the function's text. */
export function cudaTextOf({ ir, params, isChecked, maxThreadsPerBlock }: KernelForm): string {
  return emitKernel(ir, params, { isChecked, maxThreadsPerBlock }).source;
}

/** Throws CompileError for a kernel that is nested too deeply to be written. */
export function written(build: UnwrittenBuild, wanted: SimdMode): BuildSpec {
  const { form: given, ...facts } = build;
  const form = given as KernelForm;
  const { ir, params, isChecked, maxThreadsPerBlock, site, lineStarts } = form;
  try {
    const { source, offsets } = emitKernel(ir, params, { isChecked, maxThreadsPerBlock });
    const lines = offsets.map((at) => (at < 0 ? 0 : userLine(site, lineAt(lineStarts, at))));
    const lanes = simdTextOf(form, wanted);
    return { ...facts, source, mapping: { file: site.file ?? facts.name, lines }, ...(lanes !== undefined && { lanes }) };
  } catch (error) {
    if (!isTooDeep(error)) throw error;
    const message = `K006: Kernel '${facts.name}' is nested too deeply. Split the expression into local variables.`;
    throw new CompileError('ERR_MILLRACE_COMPILE', message, message, []);
  }
}

function simdTextOf({ ir, params, isChecked }: KernelForm, wanted: SimdMode): string | undefined {
  if (wanted === 'off') return undefined;
  try {
    return wanted === 'always' || isFaster(ir, isChecked) ? emitSimd(ir, params, isChecked) : undefined;
  } catch (error) {
    // The other text was written all the same.
    if (isTooDeep(error)) return undefined;
    throw error;
  }
}
