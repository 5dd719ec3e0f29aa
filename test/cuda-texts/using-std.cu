#include <cmath>
#include <iostream>
#include <vector>
using namespace std;
using std::cout;

extern "C" __global__ void using_std(const float *x, float *y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = max(min(x[i], 2.0f), -2.0f) + abs(x[i]) + sqrt(fabs(x[i])) * 0 + std::pow(x[i], 2.0f);
}
