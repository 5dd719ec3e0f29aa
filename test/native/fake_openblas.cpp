// An OpenBLAS for machines without one, which tests compile and select by MILLRACE_OPENBLAS. It adds one product after
// the other, checks what it gets more strictly than the real library, and appends a line for each call to the file
// FAKE_OPENBLAS_LOG. CONFIG is what it says of itself.
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<int> threads{64};

template <typename Element>
void Multiply(const char* name, int order, int ta, int tb, int m, int n, int k, Element alpha, const Element* a,
              int lda, const Element* b, int ldb, Element beta, Element* c, int ldc) {
  const bool is_right = order == 101 && (ta == 111 || ta == 112) && (tb == 111 || tb == 112) && m > 0 && n > 0 &&
                        k > 0 && lda >= (ta == 111 ? k : m) && ldb >= (tb == 111 ? n : k) && ldc >= n && alpha == 1 &&
                        (beta == 0 || beta == 1) && threads == 1;
  if (!is_right) std::abort();
  if (std::FILE* const log = std::fopen(std::getenv("FAKE_OPENBLAS_LOG"), "a")) {
    std::fprintf(log, "%s %d %d %d\n", name, m, n, k);
    std::fclose(log);
  }
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      Element& result = c[static_cast<long>(row) * ldc + column];
      Element sum = beta == 0 ? 0 : result;
      for (int step = 0; step < k; ++step) {
        const Element left =
            ta == 111 ? a[static_cast<long>(row) * lda + step] : a[static_cast<long>(step) * lda + row];
        const Element right =
            tb == 111 ? b[static_cast<long>(step) * ldb + column] : b[static_cast<long>(column) * ldb + step];
        sum += left * right;
      }
      result = sum;
    }
  }
}

}  // namespace

extern "C" {
const char* openblas_get_config() {
  return CONFIG;
}
void openblas_set_num_threads(int count) {
  threads = count;
}
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                 int ldb, float beta, float* c, int ldc) {
  Multiply("sgemm", order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
#ifndef LACKS_DGEMM
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lda,
                 const double* b, int ldb, double beta, double* c, int ldc) {
  Multiply("dgemm", order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
#endif
}
