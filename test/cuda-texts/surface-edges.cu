// Surfaces of one, two and three dimensions, and accesses outside of them.
__global__ void mark(cudaSurfaceObject_t plane, int width, int height) {
  const int x = (int)threadIdx.x - 1, y = (int)threadIdx.y - 1;
  const short value = 100 * y + x;
  if (x >= 0 && x < width && y >= 0 && y < height) surf2Dwrite(value, plane, x * 2, y);
  else surf2Dwrite<short>(-1, plane, x * 2, y, cudaBoundaryModeZero);
}

__global__ void look(cudaSurfaceObject_t plane, short *clamped, short *zeros) {
  const int x = (int)threadIdx.x - 2, y = (int)threadIdx.y - 2;
  const int at = threadIdx.y * blockDim.x + threadIdx.x;
  clamped[at] = surf2Dread<short>(plane, x * 2, y, cudaBoundaryModeClamp);
  surf2Dread(&zeros[at], plane, x * 2, y, cudaBoundaryModeZero);
}

__global__ void grow(cudaSurfaceObject_t volume, cudaSurfaceObject_t line) {
  const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  uint2 value;
  surf3Dread(&value, volume, x * sizeof(uint2), y, z);
  value.x += 1000 * x + 100 * y + 10 * z;
  value.y *= 2;
  surf3Dwrite(value, volume, x * sizeof(uint2), y, z);
  if (y == 0 && z == 0) surf1Dwrite<float>(surf1Dread<float>(line, x * 4) + 0.5f, line, x * 4);
}
