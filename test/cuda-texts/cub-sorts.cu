// Sorts of a tile by CUB, histograms, and exchanges.
#include <cub/block/block_shuffle.cuh>
#include <cub/cub.cuh>

template <int BLOCK_THREADS, int ITEMS_PER_THREAD>
__global__ void sort_tiles(const float *keys_in, const int *values_in, float *keys_out, int *values_out) {
  enum { TILE = BLOCK_THREADS * ITEMS_PER_THREAD };
  using BlockLoadKeys = cub::BlockLoad<float, BLOCK_THREADS, ITEMS_PER_THREAD, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using BlockLoadValues = cub::BlockLoad<int, BLOCK_THREADS, ITEMS_PER_THREAD, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using BlockSort = cub::BlockRadixSort<float, BLOCK_THREADS, ITEMS_PER_THREAD, int>;
  __shared__ union TempStorage {
    typename BlockLoadKeys::TempStorage keys;
    typename BlockLoadValues::TempStorage values;
    typename BlockSort::TempStorage sort;
  } temp_storage;
  float keys[ITEMS_PER_THREAD];
  int values[ITEMS_PER_THREAD];
  const int offset = blockIdx.x * TILE;
  BlockLoadKeys(temp_storage.keys).Load(keys_in + offset, keys);
  __syncthreads();
  BlockLoadValues(temp_storage.values).Load(values_in + offset, values);
  __syncthreads();
  if (blockIdx.x % 2 == 0)
    BlockSort(temp_storage.sort).SortBlockedToStriped(keys, values);
  else
    BlockSort(temp_storage.sort).SortDescendingBlockedToStriped(keys, values);
  cub::StoreDirectStriped<BLOCK_THREADS>(threadIdx.x, keys_out + offset, keys);
  cub::StoreDirectStriped<BLOCK_THREADS>(threadIdx.x, values_out + offset, values);
}

// Differences to the left in place, and how values move by a thread.
__global__ void differences(const int *in, int *left, int *moved) {
  using Difference = cub::BlockAdjacentDifference<int, 64>;
  using Shuffle = cub::BlockShuffle<int, 64>;
  __shared__ Difference::TempStorage difference;
  __shared__ Shuffle::TempStorage shuffle;
  int items[2], before[2], next = -1, wrapped;
  cub::LoadDirectBlocked(threadIdx.x, in, items);
  Shuffle(shuffle).Offset(items[0], next, 1);
  __syncthreads();
  Shuffle(shuffle).Rotate(items[1], wrapped, 3);
  __syncthreads();
  before[0] = 7;
  Shuffle(shuffle).Up(items, before);
  moved[4 * threadIdx.x] = next;
  moved[4 * threadIdx.x + 1] = wrapped;
  moved[4 * threadIdx.x + 2] = before[0];
  moved[4 * threadIdx.x + 3] = before[1];
  Difference(difference).SubtractLeft(items, items, [](int a, int b) { return a - b; });
  cub::StoreDirectBlocked(threadIdx.x, left, items);
}

// By the low byte only, then by a comparison.
__global__ void sort_parts(const unsigned *in, unsigned *by_byte, unsigned *by_less) {
  using RadixSort = cub::BlockRadixSort<unsigned, 64, 2>;
  using MergeSort = cub::BlockMergeSort<unsigned, 64, 2>;
  __shared__ RadixSort::TempStorage radix;
  __shared__ MergeSort::TempStorage merge;
  unsigned items[2];
  cub::LoadDirectBlocked(threadIdx.x, in, items);
  RadixSort(radix).Sort(items, 0, 8);
  cub::StoreDirectBlocked(threadIdx.x, by_byte, items);
  MergeSort(merge).Sort(items, [](const unsigned &a, const unsigned &b) { return b < a; });
  cub::StoreDirectBlocked(threadIdx.x, by_less, items);
}

__global__ void histogram(const unsigned char *samples, unsigned int *bins, int *flags) {
  using BlockHistogram = cub::BlockHistogram<unsigned char, 128, 4, 256>;
  using BlockExchange = cub::BlockExchange<unsigned char, 128, 4>;
  using BlockDiscontinuity = cub::BlockDiscontinuity<unsigned char, 128>;
  __shared__ union {
    BlockHistogram::TempStorage histogram;
    BlockExchange::TempStorage exchange;
    BlockDiscontinuity::TempStorage heads;
  } temp;
  __shared__ unsigned int counts[256];
  unsigned char items[4];
  cub::LoadDirectStriped<128>(threadIdx.x, samples + blockIdx.x * 512, items);
  // The default algorithm sorts what it counts.
  unsigned char counted[4] = {items[0], items[1], items[2], items[3]};
  BlockHistogram(temp.histogram).Histogram(counted, counts);
  __syncthreads();
  for (int bin = threadIdx.x; bin < 256; bin += 128) atomicAdd(&bins[bin], counts[bin]);
  BlockExchange(temp.exchange).StripedToBlocked(items, items);
  __syncthreads();
  int is_head[4];
  BlockDiscontinuity(temp.heads).FlagHeads(is_head, items, cuda::std::not_equal_to<>{});
  cub::StoreDirectBlocked(threadIdx.x, flags + blockIdx.x * 512, is_head);
}
