// Life with eight cells in a byte, on a torus.
typedef unsigned char ubyte;

__global__ void life_bits(const ubyte *world, ubyte *next, unsigned width_bytes, unsigned height) {
  const unsigned size = width_bytes * height;
  for (unsigned cell = blockIdx.x * blockDim.x + threadIdx.x; cell < size; cell += blockDim.x * gridDim.x) {
    const unsigned x = (cell + width_bytes - 1) % width_bytes;
    const unsigned row = cell / width_bytes * width_bytes;
    const unsigned up = (row + size - width_bytes) % size, down = (row + width_bytes) % size;
    const unsigned here = cell - row, right = (here + 1) % width_bytes;
    unsigned a = (unsigned)world[x + up] << 16 | (unsigned)world[here + up] << 8 | world[right + up];
    unsigned b = (unsigned)world[x + row] << 16 | (unsigned)world[here + row] << 8 | world[right + row];
    unsigned c = (unsigned)world[x + down] << 16 | (unsigned)world[here + down] << 8 | world[right + down];
    ubyte result = 0;
    for (int bit = 0; bit < 8; ++bit) {
      const int shift = 14 - bit;
      const unsigned neighbours = __popc((a >> shift) & 7) + __popc((c >> shift) & 7) + __popc((b >> shift) & 5);
      const unsigned alive = (b >> (shift + 1)) & 1;
      result = result << 1 | (neighbours == 3 || (neighbours == 2 && alive) ? 1u : 0u);
    }
    next[cell] = result;
  }
}
