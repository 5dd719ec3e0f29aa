// What a CUDA text may not use on the CPU device, because it has no counterpart outside a GPU: refused by name before
// the compiler is asked, which would only say "not declared".
import type { BuildSpec } from '../../core/channel/build.js';
import type { CompileError } from '../../core/base/errors.js';
import { compileError, titleOf } from '../base/diagnostics.js';
import { isLaunch, type Token, type Tokens } from './tokenizer.js';

/** Names without a counterpart, and what to call them. */
const ABSENT: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/^(?:asm|__asm|__asm__)$/, 'inline PTX'],
  [/^(?:tex[123]D\w*|texCubemap\w*|cudaTextureObject_t)$/, 'textures'],
  [/^(?:surf[123]D\w*|cudaSurfaceObject_t)$/, 'surfaces'],
  [/^(?:nvcuda|wmma|__pipeline_\w+|__nv_fp8_\w+|memcpy_async)$/, 'tensor-core and asynchronous-copy intrinsics'],
  [/^(?:__half2?|__nv_bfloat162?)$/, 'half-precision types'],
  [/^(?:__shfl(?:_up|_down|_xor)?|__ballot|__any|__all)$/, 'warp primitives without a mask, which CUDA no longer has'],
  [/^(?:this_multi_grid|multi_grid_group|this_cluster|cluster_group|__cluster_\w+)$/, 'barriers of clusters and of several devices'],
  [/^(?:labeled_partition|binary_partition)$/, 'groups made by value'],
  [
    /^cuda(?:Event\w+|Mem\w+|Malloc\w*|Free\w*|Graph\w*|Occupancy\w+|Func\w+|StreamWaitEvent|GetParameterBuffer\w*|LaunchDevice\w*|LaunchKernel\w*)$/,
    'calls of the device runtime beside launches and streams',
  ],
  [/^(?:__barrier_sync\w*|__named_barrier\w*)$/, 'named barriers'],
];
/** Any of them. */
const IS_ABSENT = new RegExp(ABSENT.map(([pattern]) => `(?:${pattern.source})`).join('|'));
/** Headers of CUDA's own that device code may include and the shim does not have. */
const ABSENT_HEADER =
  /^#\s*include\s*[<"]((?:cuda|cub|thrust|nv|cute|cutlass)\/[^>"]*|(?:mma|cuda_fp16|cuda_bf16|cuda_fp8|cuda_pipeline|cuda_awbarrier|curand_kernel|cooperative_groups\/(?:memcpy_async|scan))\.h)[>"]/;

/** Namespaces, when `::` follows: alone they are fair names for a variable. */
const LIBRARIES = /^(?:thrust|cub)$/;

/** Refuses what the tokens and directives show: those of the text, or of the text after the preprocessor. */
export function refuseOnCpu(spec: BuildSpec, { tokens, directives }: Tokens): void {
  for (const { text, line, column } of directives) {
    const header = ABSENT_HEADER.exec(text)?.[1];
    if (header !== undefined) throw lacks(spec, { line, column }, `the header <${header}>`);
  }
  for (const [i, token] of tokens.entries()) {
    if (token.kind === 'name') {
      if (IS_ABSENT.test(token.text)) {
        const [, absent] = ABSENT.find(([pattern]) => pattern.test(token.text))!;
        throw lacks(spec, token, `${absent} ('${token.text}')`);
      }
      if (tokens[i + 1]?.text === ':' && LIBRARIES.test(token.text)) throw lacks(spec, token, `the CUDA C++ libraries ('${token.text}')`);
    } else if (!spec.isLaunching && token.text === '<' && isLaunch(tokens, i)) {
      throw gone(spec, token, "launches kernels ('<<<'), which takes the device runtime: leave { deviceRuntime: false } out");
    }
  }
}

/** Refuses on every device what CUDA had once. */
export function refuseGone(spec: BuildSpec, { tokens }: Tokens): void {
  const call = tokens.find(({ text }) => text === 'cudaDeviceSynchronize');
  if (call === undefined) return;
  const instead = "CUDA 12 took it out of kernels: launch what comes after on cudaStreamTailLaunch, or in the child's stream";
  throw gone(spec, call, `calls cudaDeviceSynchronize(). ${instead}`);
}

/** K706. */
function gone(spec: BuildSpec, { line, column }: Pick<Token, 'line' | 'column'>, what: string): CompileError {
  const message = `${titleOf(spec)} ${what}.`;
  return compileError(spec, message, [{ code: 'K706', line, column, message }]);
}

function lacks(spec: BuildSpec, { line, column }: Pick<Token, 'line' | 'column'>, what: string): CompileError {
  const message = `${titleOf(spec)} uses ${what}, which the CPU device does not have. It runs on a CUDA device.`;
  return compileError(spec, message, [{ code: 'K703', line, column, message }]);
}
