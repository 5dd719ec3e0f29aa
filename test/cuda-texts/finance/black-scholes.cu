// Prices of options by the formula of Black and Scholes, two options a thread, with the approximate functions of the device, and Greeks in double precision.
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#ifndef M_SQRT1_2
#define M_SQRT1_2 0.70710678118654752440
#endif
#define THREADS_PER_BLOCK 128
#define OFFSET_OF(block, thread) ((block)*THREADS_PER_BLOCK + (thread))
#define RSQRT_2PI 0.39894228040143267793994605993438f

// The polynomial of Abramowitz and Stegun, 26.2.17.
__device__ inline float cumulative_normal(float d) {
  constexpr float a[] = {0.31938153f, -0.356563782f, 1.781477937f, -1.821255978f, 1.330274429f};
  const float k = __fdividef(1.0f, __fmaf_rn(0.2316419f, fabsf(d), 1.0f));
  float sum = 0.0f;
#pragma unroll
  for (int i = 4; i >= 0; --i) sum = k * (a[i] + sum);
  sum *= RSQRT_2PI * __expf(-0.5f * d * d);
  return d > 0 ? 1.0f - sum : sum;
}

__device__ void price(float &call, float &put, float spot, float strike, float years, float riskless, float volatility) {
  const float root = years * rsqrtf(years);
  const float d1 = __fdividef(__logf(spot / strike) + (riskless + 0.5f * volatility * volatility) * years, volatility * root);
  const float d2 = d1 - volatility * root, cnd1 = cumulative_normal(d1), cnd2 = cumulative_normal(d2);
  const float discounted = strike * __expf(-riskless * years);
  call = spot * cnd1 - discounted * cnd2;
  put = discounted * (1.0f - cnd2) - spot * (1.0f - cnd1);
}

__launch_bounds__(THREADS_PER_BLOCK) __global__
    void black_scholes(float2 *__restrict call, float2 *__restrict put, const float2 *__restrict spot, const float2 *__restrict strike,
                       const float2 *__restrict years, float riskless, float volatility, int pairs) {
  const int at = OFFSET_OF(blockIdx.x, threadIdx.x);
  if (at >= pairs) return;
  const float2 s = spot[at], x = strike[at], t = years[at];
  float2 c, p;
  price(c.x, p.x, s.x, x.x, t.x, riskless, volatility);
  price(c.y, p.y, s.y, x.y, t.y, riskless, volatility);
  call[at] = c;
  put[at] = p;
}

typedef struct {
  double spot, strike, years, riskless, volatility;
} option_t;
typedef struct {
  double price, delta, gamma, vega;
} greeks_t;
enum option_type { CALL, PUT };

template <option_type type>
__device__ greeks_t greeks_of(const option_t &o) {
  const double root = sqrt(o.years), deviation = o.volatility * root;
  const double d1 = (log(o.spot / o.strike) + (o.riskless + o.volatility * o.volatility / 2) * o.years) / deviation, d2 = d1 - deviation;
  const auto cnd = [](double d) { return 0.5 * erfc(-d * M_SQRT1_2); };
  const double density = exp(-d1 * d1 / 2) / sqrt(2 * 3.14159265358979323846), sign = type == CALL ? 1 : -1;
  greeks_t g;
  g.delta = sign * cnd(sign * d1);
  g.gamma = density / (o.spot * deviation);
  g.vega = o.spot * density * root;
  g.price = o.spot * g.delta - sign * o.strike * exp(-o.riskless * o.years) * cnd(sign * d2);
  return g;
}

__global__ void greeks(const option_t *options, const unsigned char *types, greeks_t *results, size_t n) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    results[i] = types[i] == PUT ? greeks_of<PUT>(options[i]) : greeks_of<CALL>(options[i]);
}

static double seconds() {
  struct timeval now;
  gettimeofday(&now, NULL);
  return now.tv_sec + now.tv_usec * 1e-6;
}
static float between(float low, float high) {
  const float t = (float)rand() / (float)RAND_MAX;
  return (1.0f - t) * low + t * high;
}

int main(void) {
  const int n = 1 << 16, bytes = n * sizeof(float);
  float *host = (float *)malloc(3 * bytes), *device;
  for (int i = 0; i < n; i++) host[i] = between(5, 30), host[n + i] = between(1, 100), host[2 * n + i] = between(0.25f, 10);
  if (cudaMalloc((void **)&device, 5 * bytes) != cudaSuccess) return EXIT_FAILURE;
  cudaMemcpy(device, host, 3 * bytes, cudaMemcpyHostToDevice);
  const double start = seconds();
  black_scholes<<<n / 2 / THREADS_PER_BLOCK, THREADS_PER_BLOCK>>>((float2 *)(device + 3 * n), (float2 *)(device + 4 * n), (float2 *)device, (float2 *)(device + n),
                                                                  (float2 *)(device + 2 * n), 0.02f, 0.30f, n / 2);
  cudaDeviceSynchronize();
  printf("%f options per second\n", n / (seconds() - start));
  free(host);
  return EXIT_SUCCESS;
}
