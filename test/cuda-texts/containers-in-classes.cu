// A class of host and device whose members are containers, strings and times of the standard library: host code fills it, and kernels use
// what the class has for both.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

class Mesh {
public:
  std::vector<int> nodes;
  std::string name = "mesh";
  std::chrono::steady_clock::time_point made;
  std::vector<float>::iterator next;

  int count() const { return (int)nodes.size() + (int)name.length(); }
  void add(int node) {
    nodes.push_back(node);
    nodes.resize(nodes.size() + 1, 0);
    nodes[0] = node;
    name += "x";
    for (int each : nodes) printf("%d\n", each);
  }
  double age() const {
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - made;
    return passed.count();
  }
  __host__ __device__ static int neighbour(int i, int n) { return i + 1 < n ? i + 1 : 0; }
};

int total(const std::vector<int> &values) {
  int sum = 0;
  for (int value : values) sum += value;
  return sum + (int)std::string("of").append(" all").length();
}

__global__ void turn(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[Mesh::neighbour(i, n)];
}

int main() {
  Mesh mesh;
  mesh.add(3);
  turn<<<1, 32>>>(nullptr, nullptr, total(mesh.nodes));
}
