// Sparse matrices with the first entries of each row in columns of equal length, and the others as a list that warps add up by segments.
#include <cuda_runtime.h>
#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

template <typename Index, typename Value>
struct EllView {
  Index rows, width, pitch;
  const Index *__restrict__ columns;
  const Value *__restrict__ values;
  static constexpr Index invalid = Index(-1);
};
template <typename Index, typename Value>
struct CooView {
  size_t entries;
  const Index *__restrict__ rows, *__restrict__ columns;
  const Value *__restrict__ values;
};

struct Replace {
  template <typename V>
  __device__ static V combine(V, V sum) {
    return sum;
  }
};
struct Axpby {
  template <typename V>
  __device__ static V combine(V old, V sum) {
    return old / V(2) + sum;
  }
};

template <typename Update, typename Index, typename Value>
__global__ __launch_bounds__(128, 4) void spmv_ell(const EllView<Index, Value> a, const Value *__restrict__ x, Value *__restrict__ y) {
  const Index row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= a.rows) return;
  Value sum{};
  const Index *column = a.columns + row;
  const Value *value = a.values + row;
  for (Index k = 0; k < a.width; ++k, column += a.pitch, value += a.pitch) {
    if (*column == EllView<Index, Value>::invalid) break;
    sum += *value * __ldg(x + *column);
  }
  y[row] = Update::combine(y[row], sum);
}

// Each lane learns whether its sum is the last one of its row.
template <typename Index, typename Value>
__device__ __forceinline__ bool segmented_sum(Index row, Value &value, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance <<= 1) {
    const Index other_row = __shfl_up_sync(~0, row, distance);
    const Value other = __shfl_up_sync(~0, value, distance);
    if (lane >= distance && other_row == row) value += other;
  }
  const Index next = __shfl_down_sync(~0, row, 1);
  return lane == 31 || next != row;
}

template <int PASSES, typename Index, typename Value, typename = std::enable_if_t<std::is_floating_point_v<Value>>>
__global__ void spmv_coo(CooView<Index, Value> a, const Value *__restrict__ x, Value *y) {
  const int lane = threadIdx.x % 32;
  const size_t warp = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32, first = warp * 32 * PASSES + lane;
#pragma unroll
  for (int pass = 0; pass < PASSES; ++pass) {
    const size_t at = first + pass * 32;
    const bool has = at < a.entries;
    const Index row = has ? a.rows[at] : Index(-1);
    Value value = has ? a.values[at] * x[a.columns[at]] : Value(0);
    if (segmented_sum(row, value, lane) && has) atomicAdd(y + row, value);
  }
}

template <class Index, class Value>
struct Hybrid {
  Index rows, width;
  std::vector<Index> ell_columns, coo_rows, coo_columns;
  std::vector<Value> ell_values, coo_values;

  Hybrid(Index rows_, Index width_) : rows(rows_), width(width_), ell_columns(rows_ * width_, Index(-1)), ell_values(rows_ * width_) {}
  void set_row(Index row, const std::vector<std::pair<Index, Value>> &entries) {
    for (size_t k = 0; k < entries.size(); k++) {
      if (k < size_t(width)) {
        ell_columns[k * rows + row] = entries[k].first;
        ell_values[k * rows + row] = entries[k].second;
      } else {
        coo_rows.push_back(row), coo_columns.push_back(entries[k].first), coo_values.push_back(entries[k].second);
      }
    }
  }
};

struct Deleter {
  void operator()(void *memory) const { cudaFree(memory); }
};
template <typename T>
std::unique_ptr<T[], Deleter> upload(const std::vector<T> &from) {
  T *memory = nullptr;
  cudaMalloc(&memory, std::max<size_t>(from.size(), 1) * sizeof(T));
  cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
  return std::unique_ptr<T[], Deleter>(memory);
}

int main() {
  Hybrid<int, float> a(1000, 3);
  for (int row = 0; row < a.rows; row++) {
    std::vector<std::pair<int, float>> entries;
    for (int k = 0; k < row % 7; k++) entries.emplace_back((row * k) % 1000, 1.0f + k);
    a.set_row(row, entries);
  }
  const auto columns = upload(a.ell_columns), rows = upload(a.coo_rows), coo_columns = upload(a.coo_columns);
  const auto values = upload(a.ell_values), coo_values = upload(a.coo_values), x = upload(std::vector<float>(1000, 1)), y = upload(std::vector<float>(1000));
  const EllView<int, float> ell{a.rows, a.width, a.rows, columns.get(), values.get()};
  const CooView<int, float> coo{a.coo_rows.size(), rows.get(), coo_columns.get(), coo_values.get()};
  spmv_ell<Replace><<<8, 128>>>(ell, x.get(), y.get());
  spmv_coo<4><<<(unsigned)(coo.entries + 511) / 512, 128>>>(coo, x.get(), y.get());
  return cudaDeviceSynchronize();
}
