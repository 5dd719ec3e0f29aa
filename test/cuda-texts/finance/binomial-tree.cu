// American and European options on binomial trees: a block for each option, with the values of several nodes in the registers of each thread.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <vector>

#define NUM_STEPS 500
#define THREADS 64
#define PER_THREAD ((NUM_STEPS + THREADS) / THREADS)

template <typename real>
struct Contract {
  real spot, strike;
  real log_step;    // of a move up
  real up, down;    // probabilities, discounted
  int is_american, sign;
};

// The logarithms of prices are the same distance apart, so a node of a level needs only its place.
template <typename real>
__device__ __forceinline__ real payoff(const Contract<real> &c, int level, int node) {
  const real price = c.spot * exp(c.log_step * (real)(2 * node - level));
  const real gain = (real)c.sign * (price - c.strike);
  return gain > 0 ? gain : 0;
}

template <bool IS_AMERICAN, typename real>
__device__ void sweep(const Contract<real> &c, real (&values)[PER_THREAD + 1], real *const edge) {
  const int first = threadIdx.x * PER_THREAD;
  for (int level = NUM_STEPS - 1; level >= 0; --level) {
    // A thread needs the first value of the next one.
    edge[threadIdx.x] = values[0];
    __syncthreads();
    values[PER_THREAD] = edge[threadIdx.x + 1];
    __syncthreads();
    if (first <= level) {
#pragma unroll
      for (int k = 0; k < PER_THREAD; ++k) {
        values[k] = c.up * values[k + 1] + c.down * values[k];
        if (IS_AMERICAN) values[k] = max(values[k], payoff(c, level, first + k));
      }
    }
  }
}

template <typename real>
__global__ void __launch_bounds__(THREADS) binomial(const Contract<real> *__restrict__ contracts, real *__restrict__ prices) {
  __shared__ real edge[THREADS + 1];
  __shared__ Contract<real> contract;
  if (threadIdx.x == 0) contract = contracts[blockIdx.x], edge[THREADS] = 0;
  __syncthreads();
  real values[PER_THREAD + 1];
  for (int k = 0; k <= PER_THREAD; ++k) {
    const int node = threadIdx.x * PER_THREAD + k;
    values[k] = node <= NUM_STEPS ? payoff(contract, NUM_STEPS, node) : (real)0;
  }
  if (contract.is_american)
    sweep<true>(contract, values, edge);
  else
    sweep<false>(contract, values, edge);
  if (threadIdx.x == 0) prices[blockIdx.x] = values[0];
}

// The values of a level in shared memory, which steps of barriers update in place.
template <int STEPS>
__global__ void binomial_shared(const Contract<float> *contracts, float *prices) {
  __shared__ float level[STEPS + 1];
  const Contract<float> c = contracts[blockIdx.x];
  for (int node = threadIdx.x; node <= STEPS; node += blockDim.x) level[node] = payoff(c, STEPS, node);
  for (int last = STEPS; last > 0; last--) {
    for (int start = 0; start < last; start += blockDim.x) {
      __syncthreads();
      const int node = start + threadIdx.x;
      float value = 0;
      if (node < last) value = c.up * level[node + 1] + c.down * level[node];
      __syncthreads();
      if (node < last) level[node] = value;
    }
  }
  if (threadIdx.x == 0) prices[blockIdx.x] = level[0];
}

template <typename real>
static Contract<real> contract_of(double spot, double strike, double years, double riskless, double volatility, bool is_american, bool is_put) {
  const double dt = years / NUM_STEPS, step = volatility * std::sqrt(dt), growth = std::exp(riskless * dt);
  const double up = (growth - std::exp(-step)) / (std::exp(step) - std::exp(-step));
  return {(real)spot, (real)strike, (real)step, real(up / growth), real((1 - up) / growth), is_american, is_put ? -1 : 1};
}

int main() {
  std::vector<Contract<double>> contracts;
  for (int i = 0; i < 64; i++) contracts.push_back(contract_of<double>(100, 80 + i, 1, 0.05, 0.2, i & 1, i & 2));
  Contract<double> *d_contracts;
  double *d_prices;
  cudaMalloc(&d_contracts, contracts.size() * sizeof(contracts[0]));
  cudaMalloc(&d_prices, contracts.size() * sizeof(double));
  cudaMemcpy(d_contracts, contracts.data(), contracts.size() * sizeof(contracts[0]), cudaMemcpyHostToDevice);
  binomial<double><<<contracts.size(), THREADS>>>(d_contracts, d_prices);
  std::vector<double> prices(contracts.size());
  cudaMemcpy(prices.data(), d_prices, prices.size() * sizeof(double), cudaMemcpyDeviceToHost);
  for (auto price : prices) std::cout << std::fixed << std::setprecision(4) << price << "\n";
}
