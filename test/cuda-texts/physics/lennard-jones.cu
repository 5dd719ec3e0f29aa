// Forces between atoms in a periodic box: lists of cells, structs of arrays, vectors with operators, and energies of pairs if a template argument asks.
#include <cuda_runtime.h>
#include <array>
#include <cmath>
#include <fstream>
#include <vector>

#ifdef DOUBLE_PRECISION
typedef double real;
#define SQRT sqrt
#else
typedef float real;
#define SQRT sqrtf
#endif

class Vec3 {
 public:
  real x, y, z;
  __host__ __device__ constexpr Vec3(real x_ = 0, real y_ = 0, real z_ = 0) : x(x_), y(y_), z(z_) {}
  __host__ __device__ Vec3 operator-(const Vec3 &o) const { return {x - o.x, y - o.y, z - o.z}; }
  __host__ __device__ Vec3 operator*(real s) const { return {x * s, y * s, z * s}; }
  __host__ __device__ friend Vec3 operator*(real s, const Vec3 &v) { return v * s; }
  __host__ __device__ Vec3 &operator+=(const Vec3 &o) { return x += o.x, y += o.y, z += o.z, *this; }
  __host__ __device__ real dot(const Vec3 &o) const { return x * o.x + y * o.y + z * o.z; }
  __host__ __device__ real operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};

// Arrays of one number an atom.
struct Atoms {
  real *x, *y, *z;
  __device__ Vec3 at(int i) const { return Vec3(x[i], y[i], z[i]); }
};
struct Box {
  real side, inverse;
  int cells;  // along each side
  __device__ Vec3 nearest(Vec3 r) const { return Vec3(wrap(r.x), wrap(r.y), wrap(r.z)); }
  __device__ int cell_of(Vec3 r) const {
    int index[3];
    for (int axis = 0; axis < 3; axis++) {
      int at = (int)floor(r[axis] * inverse * cells) % cells;
      index[axis] = at < 0 ? at + cells : at;
    }
    return cell(index[0], index[1], index[2]);
  }
  __device__ int cell(int i, int j, int k) const {
    auto around = [n = cells](int at) { return (at + n) % n; };
    return (around(k) * cells + around(j)) * cells + around(i);
  }

 private:
  __device__ real wrap(real d) const { return d - side * rint(d * inverse); }
};

// The members of a cell, in any order.
__global__ void fill_cells(Atoms atoms, Box box, int n, int capacity, int *counts, int *members, int *overflow) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  const int cell = box.cell_of(atoms.at(i)), place = atomicAdd(counts + cell, 1);
  if (place < capacity)
    members[cell * capacity + place] = i;
  else
    atomicExch(overflow, 1);
}

template <bool HAS_ENERGY>
struct Accumulated {
  Vec3 force;
  real energy;
  __device__ void add(Vec3 r, real r2, real epsilon, real sigma2) {
    const real s2 = sigma2 / r2, s6 = s2 * s2 * s2;
    force += (real(24) * epsilon * s6 * (2 * s6 - 1) / r2) * r;
    if constexpr (HAS_ENERGY) energy += 2 * epsilon * s6 * (s6 - 1);
  }
};

template <bool HAS_ENERGY>
__global__ void lennard_jones(const Atoms atoms, const Box box, const int *__restrict__ counts, const int *__restrict__ members, int capacity, real cutoff2,
                              Atoms forces, real *energies, int n) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  const Vec3 here = atoms.at(i);
  const int cell = box.cell_of(here), cx = cell % box.cells, cy = cell / box.cells % box.cells, cz = cell / (box.cells * box.cells);
  Accumulated<HAS_ENERGY> sum{};
  for (int dz = -1; dz <= 1; ++dz)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const int other = box.cell(cx + dx, cy + dy, cz + dz);
        const int *member = members + other * capacity;
        for (const int *const end = member + counts[other]; member < end; ++member) {
          if (*member == i) continue;
          const Vec3 r = box.nearest(here - atoms.at(*member));
          if (const real r2 = r.dot(r); r2 < cutoff2) sum.add(r, r2, real(1.5), real(0.81));
        }
      }
  forces.x[i] = sum.force.x, forces.y[i] = sum.force.y, forces.z[i] = sum.force.z;
  if constexpr (HAS_ENERGY) energies[i] = sum.energy;
}

template <typename Range>
static bool read_xyz(const char *path, Range &out) {
  std::ifstream file(path);
  for (typename Range::value_type v; file >> v[0] >> v[1] >> v[2];) out.push_back(v);
  return file.eof();
}

int main(int argc, char **argv) {
  std::vector<std::array<real, 3>> positions;
  if (argc < 2 || !read_xyz(argv[1], positions)) return 1;
  const int n = static_cast<int>(positions.size()), cells = 4, capacity = 64;
  real *memory;
  int *ints;
  cudaMalloc(&memory, 7 * n * sizeof(real));
  cudaMalloc(&ints, cells * cells * cells * (capacity + 1) * sizeof(int));
  cudaMemset(ints, 0, cells * cells * cells * sizeof(int));
  for (int axis = 0; axis < 3; axis++)
    cudaMemcpy2D(memory + axis * n, sizeof(real), &positions[0][axis], sizeof(positions[0]), sizeof(real), n, cudaMemcpyHostToDevice);
  const Atoms atoms{memory, memory + n, memory + 2 * n}, forces{memory + 3 * n, memory + 4 * n, memory + 5 * n};
  const Box box{8, real(1) / 8, cells};
  int *counts = ints, *members = ints + cells * cells * cells;
  fill_cells<<<(n + 63) / 64, 64>>>(atoms, box, n, capacity, counts, members, counts);
  lennard_jones<true><<<(n + 63) / 64, 64>>>(atoms, box, counts, members, capacity, 4, forces, memory + 6 * n, n);
  return cudaDeviceSynchronize();
}
