// Headers of the shim for CUDA's device libraries. The builder puts them in front of sources that name the library: the headers that sources
// include are empty, so their text is neither rewritten nor compiled without need.
import type { Token } from '../read/tokens.js';

/** What groups_partitions.h has of cooperative groups. */
const PARTITIONS = /^(?:thread_group|tiled_partition|(?:labeled|binary)_partition|(?:in|ex)clusive_scan|memcpy_async|wait|wait_prior)$/;
const GATES = /^(?:barrier|pipeline|make_pipeline|pipeline_shared_state)$/;
const ATOMICS = /^(?:atomic|atomic_ref|atomic_thread_fence|memory_order\w*)$/;
const TEXTURES = /^(?:tex[123]D(?:fetch)?|cudaTextureObject_t|cudaReadMode\w+|cudaTextureReadMode)$/;
const SURFACES = /^(?:surf[123]D(?:read|write)|cudaSurfaceObject_t|cudaBoundaryMode\w+|cudaSurfaceBoundaryMode)$/;

const SPACES = /^__(?:is(?:Shared|Global|Constant|Local)|cvta_(?:generic_to_\w+|\w+_to_generic))$/;

/** Needs a definition behind the source: see the header. */
export const SPACES_HEADER = 'address_spaces.h';

const LIBRARIES: readonly (readonly [header: string, isNamed: (tokens: readonly Token[]) => boolean])[] = [
  [
    'runtime_types.h',
    (tokens) => names(tokens, /^cuda(?:Error(?:_t|$|[A-Z])|Success$|(?:Stream|Event)_t$|DeviceProp$|PitchedPtr$|Extent$|Pos$)/),
  ],
  ['groups_tiles.h', hasWideTiles],
  ['groups_partitions.h', (tokens) => hasGroups(tokens) && names(tokens, PARTITIONS)],
  ['curand_numbers.h', (tokens) => names(tokens, /^curand(?:$|_|State)/)],
  ['cuda_functional.h', (tokens) => hasNamespace(tokens, 'cuda')],
  ['cuda_atomic.h', (tokens) => hasNamespace(tokens, 'cuda') && names(tokens, ATOMICS)],
  ['cuda_barrier.h', hasGates],
  ['nv_atomics.h', (tokens) => names(tokens, /^__(?:nv_atomic|NV_ATOMIC)_/)],
  // CUB's headers include these.
  ['cuda_fp16.h', (tokens) => hasCub(tokens) && names(tokens, /^(?:half2?|__half2?)$/)],
  ['cuda_bf16.h', (tokens) => hasCub(tokens) && names(tokens, /^(?:__)?nv_bfloat162?$/)],
  ['cub.h', hasCub],
  [SPACES_HEADER, asksForSpaces],
  ['textures.h', (tokens) => names(tokens, TEXTURES)],
  ['surfaces.h', (tokens) => names(tokens, SURFACES)],
];

/** The headers that the tokens need. */
export function libraryHeaders(tokens: readonly Token[]): string[] {
  return LIBRARIES.flatMap(([header, isNamed]) => (isNamed(tokens) ? [header] : []));
}

/** Whether source names CUDA's cooperative groups. */
export function hasGroups(tokens: readonly Token[]): boolean {
  return tokens.some(({ text }) => text === 'cooperative_groups');
}

/** Whether source names CUB, whose members wait. */
export function hasCub(tokens: readonly Token[]): boolean {
  return hasNamespace(tokens, 'cub');
}

/** Whether source names barriers or pipelines of CUDA's C++ library, at which threads wait. */
export function hasGates(tokens: readonly Token[]): boolean {
  return hasNamespace(tokens, 'cuda') && names(tokens, GATES);
}

/** Whether source asks which memory an address is in. */
export function asksForSpaces(tokens: readonly Token[]): boolean {
  return names(tokens, SPACES);
}

/** Whether source may have tiles of more than a warp: a size that is no number may be one. */
function hasWideTiles(tokens: readonly Token[]): boolean {
  if (!hasGroups(tokens)) return false;
  return tokens.some(({ text }, at) => {
    if (text !== 'tiled_partition' && text !== 'thread_block_tile') return false;
    if (tokens[at + 1]?.text !== '<') return false;
    const size = tokens[at + 2]?.text ?? '';
    return !(/^\d+u?$/.test(size) && /^[,>]$/.test(tokens[at + 3]?.text ?? '') && Number.parseInt(size, 10) <= 32);
  });
}

/** Whether threads may wait at gates (condition_waits.h). */
export function needsGates(tokens: readonly Token[]): boolean {
  return hasGates(tokens) || hasWideTiles(tokens);
}

function hasNamespace(tokens: readonly Token[], name: string): boolean {
  return tokens.some(({ text }, at) => text === name && (tokens[at + 1]?.text === ':' || tokens[at - 1]?.text === 'namespace'));
}

function names(tokens: readonly Token[], pattern: RegExp): boolean {
  return tokens.some(({ kind, text }) => kind === 'name' && pattern.test(text));
}
