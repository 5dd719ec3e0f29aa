// Threads that wait where C++ lets a function be called: in constructors, destructors and operators, in virtual functions, through pointers,
// in conditions, and in initialisers.
#define FULL 0xffffffffu

__device__ int sum(int v) {
  for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(FULL, v, by);
  return v;
}
struct Pair {
  int a, b;
};
struct Summed {
  int v;
  int *left;
  __device__ Summed(int of, int *left) : v(sum(of)), left(left) {}
  __device__ ~Summed() {
    const int lanes = __popc(__ballot_sync(FULL, v != 0));
    if (left != nullptr && threadIdx.x % 32 == 0) atomicAdd(left, lanes);
  }
  __device__ int operator+(int by) const { return v + sum(by); }
  __device__ operator int() const { return __any_sync(FULL, v) ? v : -1; }
};
struct Shape {
  __device__ virtual int area(int v) const = 0;
};
struct Square : Shape {
  __device__ int area(int v) const override { return sum(v * v); }
};
struct Line : Shape {
  __device__ int area(int v) const override { return v; }
};
__device__ int with_barrier(int v) {
  __syncthreads();
  return v + 1;
}
struct Step {
  int (*of)(int);
};
__device__ auto both(int v) { return Pair{sum(v), v}; }
__device__ int added(const Pair &p) { return p.a + p.b; }
__device__ int depth(int n) { return n == 0 ? sum(1) : depth(n - 1) + (n % 2 ? sum(1) : 0); }

__global__ void anywhere(const int *x, int *y, int *left) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, n = blockDim.x * gridDim.x, v = x[t], c = x[0];
  {
    Summed s(v, left);
    y[t] = s + 1;
    y[n + t] = s;
  }
  Square square;
  Line line;
  const Shape *shapes[] = {&square, &line};
  y[2 * n + t] = shapes[c & 1]->area(v) + shapes[~c & 1]->area(v);
  const Step steps[] = {{sum}, {with_barrier}};
  for (const Step &step : steps) y[3 * n + t] = step.of(v);
  auto pair = [&](int w) { return Pair{__popc(__activemask()), w}; };
  y[4 * n + t] = added(both(v)) + added({sum(v), 2}) + pair(3).a + pair(3).b;
  y[5 * n + t] = (c ? sum(v) : 1) + (c > 1 && sum(v) ? sum(2) : sum(3)) + (__any_sync(FULL, v) || sum(v));
  y[6 * n + t] = depth(5);
}
