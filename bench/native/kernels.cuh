// The kernels of bench/kernels.ts in CUDA C++: nvcc compiles them in kernels_cuda.cu, and Millrace takes the text as it is.

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void nbody(const float* bodies, float* pull, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = bodies[4 * i];
  const float y = bodies[4 * i + 1];
  const float z = bodies[4 * i + 2];
  float ax = 0;
  float ay = 0;
  float az = 0;
  for (int k = 0; k < n; ++k) {
    const float dx = bodies[4 * k] - x;
    const float dy = bodies[4 * k + 1] - y;
    const float dz = bodies[4 * k + 2] - z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    const float force = bodies[4 * k + 3] * inverse * inverse * inverse;
    ax += dx * force;
    ay += dy * force;
    az += dz * force;
  }
  pull[3 * i] = ax;
  pull[3 * i + 1] = ay;
  pull[3 * i + 2] = az;
}

extern "C" __global__ void mandelbrot(int* steps, int most, int height, int width) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= height || j >= width) return;
  const float cx = (float)j / (float)width * 3 - 2;
  const float cy = (float)i / (float)height * 3 - 1.5f;
  float x = 0;
  float y = 0;
  int n = 0;
  while (n < most && x * x + y * y < 4) {
    const float next = x * x - y * y + cx;
    y = 2 * x * y + cy;
    x = next;
    ++n;
  }
  steps[i * width + j] = n;
}

extern "C" __global__ void life(const unsigned char* from, unsigned char* to, int height, int width) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= height || j >= width) return;
  if (i == 0 || j == 0 || i >= height - 1 || j >= width - 1) {
    to[i * width + j] = 0;
    return;
  }
  const unsigned char* above = from + (i - 1) * width + j;
  const unsigned char* row = above + width;
  const unsigned char* below = row + width;
  const int around = above[-1] + above[0] + above[1] + row[-1] + row[1] + below[-1] + below[0] + below[1];
  to[i * width + j] = around == 3 || (around == 2 && row[0] == 1) ? 1 : 0;
}

extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1u);
}

extern "C" __global__ void binned(const unsigned char* data, unsigned* bins) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  const int first = blockIdx.x * 16384 + threadIdx.x;
  for (int n = 0; n < 64; ++n) atomicAdd(&own[data[first + n * 256]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float tileA[16][16];
  __shared__ float tileB[16][16];
  const int row = threadIdx.y;
  const int column = threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < n; first += 16) {
    tileA[row][column] = a[i * n + first + column];
    tileB[row][column] = b[(first + row) * n + j];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += tileA[row][k] * tileB[k][column];
    __syncthreads();
  }
  c[i * n + j] = sum;
}

extern "C" __global__ void reduction(const float* x, float* sums) {
  __shared__ float part[256];
  part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (int stride = 128; stride > 0; stride >>= 1) {
    if (threadIdx.x < stride) part[threadIdx.x] += part[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
