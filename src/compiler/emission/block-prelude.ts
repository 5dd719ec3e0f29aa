// CUDA definitions of the macros that a kernel with barriers uses. The CPU device's definitions are in the shim's barrier_regions.h.
import type { BarrierScope, KernelIr } from '../ir/ir.js';

export const BARRIER_MACROS: Readonly<Record<BarrierScope, string>> = {
  warp: 'MR_SYNCWARP()',
  block: 'MR_SYNCTHREADS()',
  grid: 'MR_SYNC_GRID()',
};

/** `indexRank`: a launch has as many dimensions as the kernel has indices; a kernel without indices accepts any number. */
export function blockPrelude(indexRank: KernelIr['indexRank']): string[] {
  const axes = indexRank === 0 ? 3 : indexRank;
  const outside = ['x', 'y', 'z'].slice(0, axes).map((axis, n) => `int(blockIdx.${axis} * blockDim.${axis} + threadIdx.${axis}) >= n${n}`);
  return `#ifdef MILLRACE_CPU_DEVICE
#include <barrier_regions.h>
#else
#define MR_BLOCK_FORM
#define MR_BEGIN_BLOCK(n0, n1, n2) \\
  if (${outside.join(' || ')}) return;
#define MR_BEGIN_BLOCK_OF_LEAVING MR_BEGIN_BLOCK
#define MR_CROSSING(type, name) type name;
#define MR_CROSSING_ARRAY(type, name, elements) type name[elements];
#define MR_OWN(type, name)
#define MR_OWN_ARRAY(type, name, elements)
#define MR_THREADS(region) {
#define MR_END(region) }
#define MR_LEAVE(region) return;
#define MR_FINISH(region) return;
#define MR_SOME_LEFT
#define MR_FAULT_ALL MR_FAULT
#define MR_SYNCTHREADS() __syncthreads()
#define MR_SYNCWARP() __syncwarp()
#endif`.split('\n');
}
