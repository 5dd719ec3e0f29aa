// Rejects CUDA features that the CPU device does not have. It finds them by name, before compilation, because the C++ compiler would only
// report an undeclared name.
import type { BuildSpec } from '../../core/channel/build-spec.js';
import type { CompileError } from '../../core/base/errors.js';
import { macrosIn } from '../read/directives.js';
import { compileError, titleOf } from '../../toolchain/base/diagnostics.js';
import { cpuHeaderNames } from '../../toolchain/base/kernel-headers.js';
import { closing, isLaunch, type Token, type Tokens } from '../read/tokens.js';

/** Unsupported names, and how messages describe them. */
const ABSENT: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/^(?:asm|__asm|__asm__)$/, 'inline PTX'],
  [/^(?:tex[123]D(?:Layered|Lod|Grad|gather)\w*|texCubemap\w*)$/, 'texture functions other than tex1Dfetch, tex1D, tex2D and tex3D'],
  [/^surf(?:[12]DLayered|Cubemap)\w*$/, 'surface functions other than those of one, two and three dimensions'],
  [/^(?:nvcuda|wmma)$/, 'tensor-core intrinsics'],
  [/^__nv_(?:fp[468]\w+|cvt_\w*fp[468]\w*)$/, 'numbers of 8, 6 and 4 bits'],
  [/^(?:this_multi_grid|multi_grid_group|this_cluster|cluster_group|__cluster_\w+)$/, 'barriers of clusters and of several devices'],
  [
    /^cuda(?:Event(?!_t$)\w+|Mem\w+|Malloc\w*|Free\w*|Graph\w*|Occupancy\w+|Func\w+|StreamWaitEvent|GetParameterBuffer\w*|LaunchDevice\w*|LaunchKernel\w*)$/,
    'device runtime calls other than launches and streams',
  ],
  [
    /^curand(?:State(?:Scrambled)?Sobol\w*|StateMtgp32\w*|_discrete4?|_mtgp32\w*)$/,
    'generators of cuRAND other than XORWOW, Philox and MRG32k3a',
  ],
  [/^(?:__barrier_sync\w*|__named_barrier\w*)$/, 'named barriers'],
];
/** Matches any of them. */
const IS_ABSENT = new RegExp(ABSENT.map(([pattern]) => `(?:${pattern.source})`).join('|'));
/** Warp primitives without a mask, which GPUs since Volta do not have. */
const WITHOUT_MASK = /^(?:__shfl(?:_up|_down|_xor)?|__ballot|__any|__all)$/;
/** CUDA headers for device code, all of which but those of native/headers.txt the CPU device lacks. */
const DEVICE_HEADER =
  /^#\s*include\s*[<"]((?:cuda|thrust|nv|cute|cutlass|cub\/(?:agent|grid|iterator))\/[^>"]*|(?:mma|cuda_fp[468]|cuda_awbarrier\w*)\.h)[>"]/;

/** Namespaces, only before `::`, since a variable may have the same name. */
const LIBRARIES = /^thrust$/;
/** The CUB classes that the shim has. The CPU device refuses the other classes of `cub` for agents, blocks, devices, grids and warps. */
const OF_CUB =
  /^(?:Block(?:AdjacentDifference|Discontinuity|Exchange|Histogram|Load|MergeSort|RadixSort|Reduce|Scan|Shuffle|Store)|Warp(?:Id|Load|Reduce|Scan|Store)|(?:Block|Warp)(?:Histogram|Load|Reduce|Scan|Store)Algorithm)$/;

/** Throws for unsupported tokens and directives, before or after the preprocessor. */
export function refuseOnCpu(spec: BuildSpec, { tokens, directives }: Tokens): void {
  for (const { text, line, column } of directives) {
    const header = DEVICE_HEADER.exec(text)?.[1];
    if (header !== undefined && !cpuHeaderNames().has(header)) throw lacks(spec, { line, column }, `the header <${header}>`);
  }
  // Macros of the source may have any name.
  const own = new Set(directives.flatMap(({ text }) => macrosIn(text)).map(({ name }) => name));
  for (const [i, token] of tokens.entries()) {
    if (token.kind === 'name' && !own.has(token.text) && !isEmptyAsm(tokens, i)) {
      if (WITHOUT_MASK.test(token.text))
        throw unavailable(spec, token, `calls ${token.text}, which GPUs since Volta do not have: call ${token.text}_sync`);
      if (IS_ABSENT.test(token.text)) {
        const [, absent] = ABSENT.find(([pattern]) => pattern.test(token.text))!;
        throw lacks(spec, token, `${absent} ('${token.text}')`);
      }
      const ofCub = token.text === 'cub' && tokens[i + 1]?.text === ':' ? tokens[i + 3] : undefined;
      if (ofCub !== undefined && /^(?:Agent|Block|Device|Grid|Warp)[A-Z]/.test(ofCub.text) && !OF_CUB.test(ofCub.text))
        throw lacks(spec, token, `the CUB class 'cub::${ofCub.text}'`);
      if (tokens[i + 1]?.text === ':' && LIBRARIES.test(token.text)) throw lacks(spec, token, `the library Thrust ('${token.text}')`);
    } else if (!spec.isLaunching && token.text === '<' && isLaunch(tokens, i)) {
      throw unavailable(spec, token, "launches kernels ('<<<'), which needs the device runtime: remove { deviceRuntime: false }");
    }
  }
}

/** Throws on every device for features that CUDA has removed. */
export function refuseRemoved(spec: BuildSpec, { tokens }: Tokens): void {
  const reference = tokens.find((_, i) => isTextureReference(tokens, i));
  if (reference !== undefined) {
    const { text } = reference;
    const object = text === 'texture' ? 'cudaTextureObject_t' : 'cudaSurfaceObject_t';
    throw unavailable(
      spec,
      reference,
      `declares a ${text} reference ('${text}<...>'), which CUDA 12 removed: pass a ${object} as a parameter, and declare it with ${text}`,
    );
  }
  const call = tokens.find(({ text }) => text === 'cudaDeviceSynchronize');
  if (call === undefined) return;
  const instead = "CUDA 12 removed it from device code: launch the next kernel on cudaStreamTailLaunch, or in the child's stream";
  throw unavailable(spec, call, `calls cudaDeviceSynchronize(). ${instead}`);
}

/** Whether `texture<float, 2> t;` or `surface<void, 2> s;` begins here, and the template is not one of the source. */
function isTextureReference(tokens: readonly Token[], i: number): boolean {
  const { kind, text } = tokens[i]!;
  if (kind !== 'name' || (text !== 'texture' && text !== 'surface') || tokens[i + 1]?.text !== '<') return false;
  if (/^(?:[.:>]|struct|class|template)$/.test(tokens[i - 1]?.text ?? '')) return false;
  const of = tokens[i + 2]?.text ?? '';
  const isOwn = tokens.some((token, at) => token.text === text && /^(?:struct|class|using)$/.test(tokens[at - 1]?.text ?? ''));
  return !isOwn && /^(?:void|unsigned|signed|char|short|int|long|float|u?(?:char|short|int)[124]|float[124])$/.test(of);
}

/** `asm volatile("" ::: "memory")`, a barrier for the compiler. */
function isEmptyAsm(tokens: readonly Token[], at: number): boolean {
  if (!/^(?:asm|__asm|__asm__)$/.test(tokens[at]!.text)) return false;
  const open = /^(?:__)?volatile(?:__)?$/.test(tokens[at + 1]?.text ?? '') ? at + 2 : at + 1;
  const operands = tokens.slice(open + 1, closing(tokens, open));
  return tokens[open]?.text === '(' && operands[0]?.text === '""' && operands.every(({ text }) => text === ':' || text.endsWith('"'));
}

/** Builds K706. */
function unavailable(spec: BuildSpec, { line, column }: Pick<Token, 'line' | 'column'>, what: string): CompileError {
  const message = `${titleOf(spec)} ${what}.`;
  return compileError(spec, message, [{ code: 'K706', line, column, message }]);
}

function lacks(spec: BuildSpec, { line, column }: Pick<Token, 'line' | 'column'>, what: string): CompileError {
  const message = `${titleOf(spec)} uses ${what}, which the CPU device does not support. Run the kernel on a CUDA device.`;
  return compileError(spec, message, [{ code: 'K703', line, column, message }]);
}
