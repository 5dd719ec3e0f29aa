// What a CUDA text may not use on the CPU device.
//
// A kernel runs as a plain loop over its threads, so nothing in it can wait for a neighbour: barriers and warp
// primitives are refused by name before the compiler is asked, which would only say "not declared". So is what has no
// counterpart outside a GPU.
import type { BuildSpec } from '../core/channel/build.js';
import type { CompileError } from '../core/base/errors.js';
import { compileError } from './diagnostics.js';
import type { Token } from './text.js';

const WAITS =
  /^(?:__syncthreads(?:_count|_and|_or)?|__syncwarp|__shfl(?:_up|_down|_xor)?(?:_sync)?|__(?:ballot|any|all)(?:_sync)?|__match_(?:any|all)_sync|__reduce_\w+_sync|__activemask|cooperative_groups|__cluster_\w+|__barrier_sync\w*)$/;

/** Names without a counterpart, and what to call them. */
const ABSENT: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/^(?:asm|__asm|__asm__)$/, 'inline PTX'],
  [/^(?:tex[123]D\w*|texCubemap\w*|cudaTextureObject_t)$/, 'textures'],
  [/^(?:surf[123]D\w*|cudaSurfaceObject_t)$/, 'surfaces'],
  [/^(?:nvcuda|wmma|__pipeline_\w+|__nv_fp8_\w+)$/, 'tensor-core and asynchronous-copy intrinsics'],
  [/^(?:__half2?|__nv_bfloat162?)$/, 'half-precision types'],
];

/** Namespaces, when `::` follows: alone they are fair names for a variable. */
const LIBRARIES = /^(?:thrust|cub)$/;

/** Refuses what the tokens show. `tokens` are those of the text, or of the text after the preprocessor. */
export function refuseOnCpu(spec: BuildSpec, tokens: readonly Token[]): void {
  for (const [i, token] of tokens.entries()) {
    if (token.kind === 'name') {
      if (WAITS.test(token.text)) throw waits(spec, token);
      const absent = ABSENT.find(([pattern]) => pattern.test(token.text))?.[1];
      if (absent) throw lacks(spec, token, `${absent} ('${token.text}')`);
      if (LIBRARIES.test(token.text) && tokens[i + 1]?.text === ':') throw lacks(spec, token, `the CUDA C++ libraries ('${token.text}')`);
    } else if (token.text === '<' && isLaunch(tokens, i)) {
      throw lacks(spec, token, "launches from kernels ('<<<')");
    }
  }
}

function isLaunch(tokens: readonly Token[], at: number): boolean {
  return [1, 2].every((step) => tokens[at + step]?.text === '<' && tokens[at + step]!.start === tokens[at]!.start + step);
}

function waits(spec: BuildSpec, { text, line, column }: Token): CompileError {
  const message =
    `Kernel '${spec.name}' uses ${text}, and the CPU device has no barriers and no warp primitives. ` +
    `It runs on a CUDA device; on the CPU device, split it into one kernel for each part between barriers.`;
  return compileError(spec, message, [{ code: 'K402', line, column, message }]);
}

function lacks(spec: BuildSpec, { line, column }: Token, what: string): CompileError {
  const message = `Kernel '${spec.name}' uses ${what}, which the CPU device does not have. It runs on a CUDA device.`;
  return compileError(spec, message, [{ code: 'K703', line, column, message }]);
}
