// A state that skips ahead is the state that drew as many words.
#include <curand_kernel.h>

template <typename State>
__device__ int differences(State *a, State *b) {
  int count = 0;
  for (int k = 0; k < 9; k++) count += curand(a) != curand(b);
  return count;
}

template <typename State>
__device__ int of_generator(unsigned long long seed, int id) {
  State drawn, skipped, far, further;
  curand_init(seed, 0, 0, &drawn);
  skipped = drawn;
  for (int k = 0; k < id; k++) curand(&drawn);
  skipahead(id, &skipped);
  int count = differences(&drawn, &skipped);
  curand_init(seed, 0, 0, &far);
  skipahead((unsigned long long)id << 40, &far);
  curand_init(seed, 0, (unsigned long long)id << 40, &further);
  return count + differences(&far, &further);
}

__global__ void random_skips(int *wrong, unsigned long long seed) {
  int id = threadIdx.x;
  curandStateXORWOW_t first, second;
  curand_init(seed, id, 2, &first);
  curand_init(seed, 0, 2, &second);
  skipahead_sequence(id, &second);
  curandStatePhilox4_32_10_t wide, narrow;
  curand_init(seed, id, id, &wide);
  narrow = wide;
  uint4 four = curand4(&wide);
  int count = four.x != curand(&narrow);
  count += four.y != curand(&narrow);
  count += four.z != curand(&narrow);
  count += four.w != curand(&narrow);
  wrong[id] = count + differences(&first, &second) + differences(&wide, &narrow) + of_generator<curandState_t>(seed, id) +
              of_generator<curandStatePhilox4_32_10_t>(seed, id) + of_generator<curandStateMRG32k3a_t>(seed, id);
}
