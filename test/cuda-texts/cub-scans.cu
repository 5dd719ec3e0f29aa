// Scans by CUB: running totals over tiles with a callback for the prefix, and scans of warps.
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/functional>

// Keeps the total of the tiles before.
struct BlockPrefixCallbackOp {
  int running_total;
  __device__ BlockPrefixCallbackOp(int running_total) : running_total(running_total) {}
  __device__ int operator()(int block_aggregate) {
    int old_prefix = running_total;
    running_total += block_aggregate;
    return old_prefix;
  }
};

__global__ void running_sums(const int *data, int *sums, int num_items) {
  typedef cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_TRANSPOSE> BlockLoad;
  typedef cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_TRANSPOSE> BlockStore;
  typedef cub::BlockScan<int, 64> BlockScan;
  __shared__ union {
    typename BlockLoad::TempStorage load;
    typename BlockScan::TempStorage scan;
    typename BlockStore::TempStorage store;
  } temp_storage;
  BlockPrefixCallbackOp prefix_op(0);
  for (int block_offset = 0; block_offset < num_items; block_offset += 64 * 4) {
    int thread_data[4];
    int left = num_items - block_offset;
    BlockLoad(temp_storage.load).Load(data + block_offset, thread_data, left < 256 ? left : 256, 0);
    __syncthreads();
    BlockScan(temp_storage.scan).InclusiveSum(thread_data, thread_data, prefix_op);
    __syncthreads();
    BlockStore(temp_storage.store).Store(sums + block_offset, thread_data, left < 256 ? left : 256);
    __syncthreads();
  }
}

template <int THREADS>
__device__ int compact_index(bool keep, int &total) {
  using Scan = cub::BlockScan<int, THREADS, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage storage;
  int index = 0;
  Scan(storage).ExclusiveSum(static_cast<int>(keep), index, total);
  return index;
}

// The positive numbers of each block, in order, and their count.
__global__ void compact(const int *in, int *out, int *counts) {
  int i = blockIdx.x * 128 + threadIdx.x;
  int value = in[i];
  int total;
  int index = compact_index<128>(value > 0, total);
  if (value > 0) out[blockIdx.x * 128 + index] = value;
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// Of each group of 16: largest so far, largest before, and the total; of the block: the smallest so far.
__global__ void warp_scans(const int *in, int *out) {
  using WarpScan = cub::WarpScan<int, 16>;
  using BlockScan = cub::BlockScan<int, 64>;
  __shared__ typename WarpScan::TempStorage temp[4];
  __shared__ BlockScan::TempStorage of_block;
  int tid = threadIdx.x, group = tid / 16;
  int value = in[tid], up_to, before, sum, total, least, minimum;
  WarpScan(temp[group]).InclusiveScan(value, up_to, cuda::maximum<>{});
  __syncwarp();
  WarpScan(temp[group]).ExclusiveScan(value, before, -1000, cuda::maximum<int>{});
  __syncwarp();
  WarpScan(temp[group]).InclusiveSum(value, sum, total);
  __syncwarp();
  total = WarpScan(temp[group]).Broadcast(sum, 15);
  BlockScan(of_block).InclusiveScan(value, least, [](int a, int b) { return a < b ? a : b; }, minimum);
  int row = tid * 6;
  out[row] = up_to;
  out[row + 1] = before;
  out[row + 2] = sum;
  out[row + 3] = total;
  out[row + 4] = least;
  out[row + 5] = minimum;
}
