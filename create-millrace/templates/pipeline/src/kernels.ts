// How often each byte occurs. A block counts in its own memory first.
import { i32, inout, input, kernel, u32, u8 } from 'millrace';

export const count = kernel(
  'count',
  { bytes: input(u8), length: i32, counts: inout(u32) },
  ({ bytes, length, counts }, { blockIdx, blockDim, gridDim, threadIdx, shared, syncthreads, atomicAdd, u32: toU32 }) => {
    const own = shared(u32, 256);
    for (let at = threadIdx.x; at < 256; at += blockDim.x) own[at] = toU32(0);
    syncthreads();
    for (let at = blockIdx.x * blockDim.x + threadIdx.x; at < length; at += gridDim.x * blockDim.x) atomicAdd(own, bytes[at]!, toU32(1));
    syncthreads();
    for (let at = threadIdx.x; at < 256; at += blockDim.x) atomicAdd(counts, at, own[at]!);
  },
);
