// A ray tracer with objects made on the device: virtual functions, pointers to pointers, and materials in a tagged union.
#include <cfloat>
#include <cmath>
#include <iostream>
#include <time.h>

class vec3 {
 public:
  __host__ __device__ vec3() {}
  __host__ __device__ vec3(float e0, float e1, float e2) { e[0] = e0, e[1] = e1, e[2] = e2; }
  __host__ __device__ inline float x() const { return e[0]; }
  __host__ __device__ inline float y() const { return e[1]; }
  __host__ __device__ inline float z() const { return e[2]; }
  __host__ __device__ inline vec3 operator-() const { return vec3(-e[0], -e[1], -e[2]); }
  __host__ __device__ inline float operator[](int i) const { return e[i]; }
  __host__ __device__ inline float &operator[](int i) { return e[i]; }
  __host__ __device__ inline vec3 &operator*=(const float t) {
    for (auto &v : e) v *= t;
    return *this;
  }
  __host__ __device__ inline float length() const { return sqrtf(e[0] * e[0] + e[1] * e[1] + e[2] * e[2]); }
  float e[3];
};
inline std::ostream &operator<<(std::ostream &os, const vec3 &t) { return os << t.e[0] << " " << t.e[1] << " " << t.e[2]; }
__host__ __device__ inline vec3 operator+(const vec3 &a, const vec3 &b) { return {a.x() + b.x(), a.y() + b.y(), a.z() + b.z()}; }
__host__ __device__ inline vec3 operator-(const vec3 &a, const vec3 &b) { return a + -b; }
__host__ __device__ inline vec3 operator*(float t, vec3 v) { return v *= t; }
__host__ __device__ inline float dot(const vec3 &a, const vec3 &b) { return a.x() * b.x() + a.y() * b.y() + a.z() * b.z(); }
__host__ __device__ inline vec3 unit_vector(vec3 v) { return (1.0f / v.length()) * v; }

struct ray {
  vec3 A, B;
  __device__ vec3 point_at_parameter(float t) const { return A + t * B; }
};

struct material {
  enum kind_t { matte, metal } kind;
  union {
    struct { float r, g, b; } albedo;
    float reflectance;
  };
};
struct hit_record {
  float t = FLT_MAX;
  vec3 normal;
  const material *mat_ptr = nullptr;
};

class hitable {
 public:
  __device__ virtual bool hit(const ray &r, float t_min, float t_max, hit_record &rec) const = 0;
};

class sphere : public hitable {
 public:
  __device__ sphere(vec3 cen, float r, material m) : center(cen), radius(r), mat(m) {}
  __device__ bool hit(const ray &r, float t_min, float t_max, hit_record &rec) const override {
    const vec3 oc = r.A - center;
    const float a = dot(r.B, r.B), b = dot(oc, r.B), c = dot(oc, oc) - radius * radius, discriminant = b * b - a * c;
    if (discriminant <= 0) return false;
    const float t = (-b - sqrtf(discriminant)) / a;
    if (t >= t_max || t <= t_min) return false;
    rec.t = t;
    rec.normal = (1.0f / radius) * (r.point_at_parameter(t) - center);
    rec.mat_ptr = &mat;
    return true;
  }
  vec3 center;
  float radius;
  material mat;
};

class hitable_list : public hitable {
 public:
  __device__ hitable_list(hitable **l, int n) : list(l), list_size(n) {}
  __device__ virtual bool hit(const ray &r, float t_min, float t_max, hit_record &rec) const {
    hit_record temp_rec;
    bool hit_anything = false;
    float closest_so_far = t_max;
    for (int i = 0; i < list_size; i++)
      if (list[i]->hit(r, t_min, closest_so_far, temp_rec)) {
        hit_anything = true;
        closest_so_far = temp_rec.t;
        rec = temp_rec;
      }
    return hit_anything;
  }
  hitable **list;
  int list_size;
};

__device__ vec3 color(const ray &r, hitable **world, int depth = 4) {
  hit_record rec;
  if (depth == 0 || !(*world)->hit(r, 0.001f, FLT_MAX, rec)) {
    const float t = 0.5f * (unit_vector(r.B).y() + 1.0f);
    return (1.0f - t) * vec3(1, 1, 1) + t * vec3(0.5f, 0.75f, 1.0f);
  }
  switch (rec.mat_ptr->kind) {
    case material::metal: {
      const vec3 bounced = r.B - (2 * dot(r.B, rec.normal)) * rec.normal;
      return rec.mat_ptr->reflectance * color(ray{r.point_at_parameter(rec.t), bounced}, world, depth - 1);
    }
    default: {
      const auto &[red, green, blue] = rec.mat_ptr->albedo;
      return fmaxf(0.0f, rec.normal.y()) * vec3(red, green, blue);
    }
  }
}

// Each block makes its world, a grid of spheres.
__global__ void render(vec3 *fb, int max_x, int max_y, int spheres) {
  __shared__ hitable **d_list, *d_world;
  if (threadIdx.x + threadIdx.y == 0) {
    d_list = new hitable *[spheres];
    for (int i = 0; i < spheres; i++) {
      material m{i % 2 ? material::metal : material::matte, {{0.25f * i, 0.5f, 1.0f}}};
      if (m.kind == material::metal) m.reflectance = 0.75f;
      d_list[i] = new sphere(vec3(i - spheres / 2.0f, 0.25f * (i % 3), -2.0f - 0.5f * i), 0.625f, m);
    }
    d_world = new hitable_list(d_list, spheres);
  }
  __syncthreads();
  const int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
  if (i < max_x && j < max_y) fb[j * max_x + i] = color({vec3(0, 0, 0), vec3(4.0f * i / max_x - 2.0f, 2.0f * j / max_y - 1.0f, -1.0f)}, &d_world);
  __syncthreads();
  if (threadIdx.x + threadIdx.y == 0) {
    for (int k = 0; k < spheres; k++) delete static_cast<sphere *>(d_list[k]);
    delete[] d_list;
    delete static_cast<hitable_list *>(d_world);
  }
}

int main() {
  const int nx = 1200, ny = 600, tx = 8, ty = 8;
  vec3 *fb;
  cudaMallocManaged((void **)&fb, nx * ny * sizeof(vec3));
  clock_t start = clock();
  render<<<dim3(nx / tx + 1, ny / ty + 1), dim3(tx, ty)>>>(fb, nx, ny, 5);
  cudaDeviceSynchronize();
  std::cerr << "took " << ((double)(clock() - start)) / CLOCKS_PER_SEC << " seconds.\n" << fb[0] << "\n";
}
