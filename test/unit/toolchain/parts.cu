// Kernels that can be cut at their barriers, for fission.test.ts: each of one shape that the cutting has to get right.
// All take the same parameters; blocks have up to three dimensions.
#define RANK ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)
#define BLOCK ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x)
#define COUNT (blockDim.x * blockDim.y * blockDim.z)
constexpr int ROUNDS = 3;
const int unsigned HALF = 512;

// A tree: a loop around the barrier, a divergent branch in it.
extern "C" __global__ void tree(const float* x, float* y, int n) {
  __shared__ float s[1024];
  const int t = RANK, i = BLOCK * COUNT + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int reach = HALF; reach > 0; reach >>= 1) {
    if (t < reach && t + reach < COUNT) s[t] += s[t + reach];
    __syncthreads();
  }
  if (i < n) y[i] = s[0] + s[t];
}

// What outlives a barrier: scalars, pointers, arrays, structs; with and without a first value; const and not.
struct Two { float a; int b; };
extern "C" __global__ void crossing(const float* x, float* y, int n) {
  __shared__ float s[1024];
  const int t = RANK;
  int i = BLOCK * COUNT + t;
  float sum = 0, other;
  const float first = i < n ? x[i] : -1.0f;
  const float* from = x + (i < n ? i : 0);
  float own[4];
  Two two;
  float4 four = make_float4(1, 2, 3, 4);
  unsigned long long large = 1ull << 40;
  for (int j = 0; j < 4; j++) own[j] = first * j;
  two.b = t;
  s[t] = first;
  other = s[t] + 1;
  __syncthreads();
  two.a = s[COUNT - 1 - t];
  four.w += two.a;
  large += i;
  i += 1;
  for (int j = 0; j < 4; ++j) sum += own[j];
  __syncthreads();
  if (i - 1 < n) y[i - 1] = sum + other + two.a * two.b + *from + four.w + four.x + first + (float)(large >> 40);
}

// Loops in loops, blocks, branches and else, all decided by what threads share.
extern "C" __global__ void nested(const float* x, float* y, int n) {
  __shared__ int s[1024];
  const int t = RANK, count = COUNT;
  const int half = count / 2, twice = half * 2;
  int total = 0;
  s[t] = t;
  for (int round = 0, last = ROUNDS; round < last; round++) {
    __syncthreads();
    const int shift = round + 1;
    int next = s[(t + shift) % count];
    for (unsigned k = 1; k < 4u; k *= 2) {
      __syncthreads();
      s[t] = next + k;
      {
        __syncthreads();
        next = s[count - 1 - t];
        total += next * shift;
      }
    }
    __syncthreads();
    if (n > 2 && round % 2 == 0) {
      const int left = half + round;
      s[t] += left;
      __syncthreads();
      total += s[(t + left) % count];
    } else if (n > 0) {
      __syncthreads();
      total -= s[t] + twice;
    } else
      __syncthreads();
  }
  const int i = BLOCK * count + t;
  if (i < n) y[i] = total;
}

// Names declared again in inner scopes, in loops of a part, and in parts side by side.
extern "C" __global__ void shadows(const float* x, float* y, int n) {
  __shared__ float s[1024];
  const int t = RANK;
  float v = t;
  s[t] = v;
  for (int j = 0; j < 2; j++) {
    float v = j;
    s[t] += v;
  }
  __syncthreads();
  {
    int v = 7;
    s[t] += v;
  }
  for (int v = 0; v < 3; v++) s[t] += v;
  __syncthreads();
  v += s[(t + 1) % COUNT];
  const int i = BLOCK * COUNT + t;
  if (i < n) y[i] = v;
}

// Break, continue, while and do inside a part; an address taken; a variable given by reference.
__device__ void raise(int& value, int by) { value += by; }
extern "C" __global__ void inside(const float* x, float* y, int n) {
  __shared__ int s[1024];
  const int t = RANK;
  int a = t, b = 3;
  int* pointer = &b;
  raise(a, 2);
  for (int j = 0;; j++) {
    if (j == 2) continue;
    if (j > 5) break;
    a += j;
  }
  s[t] = a;
  __syncthreads();
  int seen = 0;
  while (seen < 3) {
    seen++;
    if (s[t] < 0) break;
  }
  do *pointer += seen;
  while (b < 10);
  __syncthreads();
  const int i = BLOCK * COUNT + t;
  if (i < n) y[i] = a * 1000 + b + s[(t + seen) % COUNT];
}

// Dynamic shared memory in parts, a device function that reads its indices, atomics, and branches without braces.
__device__ int rank_of() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
extern "C" __global__ void __launch_bounds__(1024) memory(const float* __restrict__ x, float* __restrict__ y, int n) {
  extern __shared__ float raw[];
  __shared__ unsigned bins[8], most;
  float* behind = raw + COUNT;
  const int t = RANK;
  if (t < 8) bins[t] = 0;
  if (t == 0) most = 0;
  raw[t] = 2.0f * rank_of();
  behind[t] = t;
  __syncthreads();
  atomicAdd(&bins[t % 8], 1u);
  if (n > 0) __syncthreads();
  if (t < 8) atomicMax(&most, bins[t]);
  __syncthreads();
  const int i = BLOCK * COUNT + t;
  if (i < n) y[i] = raw[COUNT - 1 - t] + behind[(t + 1) % COUNT] * 10 + bins[t % 8] * 1000 + most;
}

// Loops without a barrier that all threads go through alike: around the loop over the threads, or unrolled in it.
extern "C" __global__ void turning(const float* x, float* y, int n) {
  __shared__ float s[8 * 1024];
  const int t = RANK, i = BLOCK * COUNT + t;
  for (int k = 0; k < 8; k++) s[k * COUNT + t] = k < n && t < n ? x[t] * k : 1.0f;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += s[k % 8 * COUNT + (t + k) % COUNT];
  __syncthreads();
  for (int round = 0, last = ROUNDS * 4; round < last; round++) {
    float more = round;
    for (int k = 0; k < ROUNDS; k++) {
      if (k == 2) continue;
      more += s[k * COUNT + t] * round;
    }
    s[(7 - round % 8) * COUNT + t] += more;
  }
  for (int k = 0; k < 12; k++) {
    if (s[k % 8 * COUNT + t] > 100) break;
    sum += s[k % 8 * COUNT + t];
  }
  __syncthreads();
  for (int k = 0; k < 4; k += 2)
    for (int m = 0; m < 4; m++) sum += s[(2 * k + m) * COUNT + COUNT - 1 - t] * m;
  if (i < n) y[i] = sum;
}

// Atomic functions on shared memory in every spelling, and on memory that only looks like it.
extern "C" __global__ void counting(const float* x, float* y, int n) {
  extern __shared__ int dynamic[];
  __shared__ int bins[4][8], flat[8];
  __shared__ int total;
  __shared__ unsigned most;
  __shared__ float sum;
  __shared__ int* elsewhere;
  const unsigned int t = RANK;
  const int i = BLOCK * COUNT + t;
  if (t == 0) {
    for (int k = 0; k < 8; k++) flat[k] = 0;
    for (int k = 0; k < 8; k++)
      for (int m = 0; m < 4; m++) bins[m][k] = 0;
    total = 0, most = 0, sum = 0, elsewhere = flat;
  }
  dynamic[t] = 0;
  __syncthreads();
  const int kind = t < n ? (int)x[t] & 7 : 7;
  atomicAdd(&bins[kind & 3][kind], 1);
  atomicAdd(&flat[kind], 2);
  atomicAdd(flat + (kind + 1) % 8, 3);
  atomicAdd(flat, 1);
  atomicMax(&most, t * 3 % 17);
  atomicAdd(&sum, 1.0f);
  atomicSub(&dynamic[COUNT - 1 - t], kind);
  atomicOr(dynamic + t, 64);
  __syncthreads();
  atomicAdd(&elsewhere[kind], 5);
  atomicAdd(elsewhere, 1);
  if (atomicCAS(&total, 0, 7) == 7) atomicInc((unsigned*)&total, 100u);
  __syncthreads();
  if (i < n) y[i] = bins[kind & 3][kind] + flat[kind] * 10 + most + sum + total + (dynamic[t] & 63);
}

// A tile with padded rows, in blocks of its shape and in others; subscripts of every type that an index may have.
extern "C" __global__ void tiles(const float* x, float* y, int n) {
  __shared__ float tile[32][32 + 1];
  unsigned column = threadIdx.x;
  size_t row = threadIdx.y;
  auto i = BLOCK * COUNT + RANK;
  const unsigned at = threadIdx.y * blockDim.x + threadIdx.x;
  const int wide = blockDim.x, high = blockDim.y;
  if (row < 32 && column < 32 && threadIdx.z == 0) tile[row][column] = at < n ? x[at] : -1.0f;
  __syncthreads();
  if (i < n) y[i] = row < 32 && column < 32 ? tile[(row + 1) % min(high, 32)][(threadIdx.x + 1) % min(wide, 32)] + at + threadIdx.z : 0.5f;
}
