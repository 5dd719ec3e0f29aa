// What nvcc accepts beside C++17: constants that constants initialise, `register`, the system's macros, a literal next to a specifier.
#if defined(__linux__)
#define HALVES 2
#else
#error "This system is not supported."
#endif

const double whole = 3.0;
const float up = 1.5f;
static const float down = -up;
const double part = whole / HALVES;

extern "C"__global__ void move(const float *x, float *y, int n) {
  register int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] + up : x[i] * down + static_cast<float>(part);
}
