// Emits a kernel's sources. The device's worker does this only when a compiler needs them, since most kernels come from the cache.
import type { BuildSpec, UnwrittenBuild } from '../../core/channel/build-spec.js';
import { CompileError } from '../../core/base/errors.js';
import { emitKernel } from '../emission/cuda.js';
import { emitSimd } from '../simd/kernel.js';
import { isFaster } from '../simd/suitability.js';
import { isTooDeep } from '../diagnostics/depth.js';
import { lineAt, userLine } from '../diagnostics/diagnostics.js';
import type { KernelForm } from './codegen-input.js';

/** Which kernels get a SIMD form: none, those that are estimated to gain from it, or all that can have one. */
export type SimdMode = 'off' | 'auto' | 'always';

/** The kernel's CUDA C++ source, which both devices compile. It keeps the identifiers of the TypeScript function. */
export function cudaTextOf({ ir, params, isChecked, maxThreadsPerBlock }: KernelForm): string {
  return emitKernel(ir, params, { isChecked, maxThreadsPerBlock }).source;
}

/** Emits the sources of a build. Throws CompileError when the kernel's expressions are nested too deeply. */
export function written(build: UnwrittenBuild, wanted: SimdMode): BuildSpec {
  const { form: given, ...facts } = build;
  const form = given as KernelForm;
  const { ir, params, isChecked, maxThreadsPerBlock, site, lineStarts } = form;
  try {
    const { source, offsets } = emitKernel(ir, params, { isChecked, maxThreadsPerBlock });
    const lines = offsets.map((at) => (at < 0 ? 0 : userLine(site, lineAt(lineStarts, at))));
    const simdSource = simdTextOf(form, wanted);
    return { ...facts, source, mapping: { file: site.file ?? facts.name, lines }, ...(simdSource !== undefined && { simdSource }) };
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
    // The CUDA C++ source did not overflow the stack, so the kernel builds without a SIMD form.
    if (isTooDeep(error)) return undefined;
    throw error;
  }
}
