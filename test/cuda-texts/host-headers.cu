#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>
#include <sys/time.h>
#include <unistd.h>
#include <omp.h>

extern "C" __global__ void host_headers(int *y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = std::min(std::max(i, 3), n - 2);
}
