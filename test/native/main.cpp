// The programs of many files: the first argument names the file whose cases are run, and without one all are.
#include "testing.h"

int main(int argc, char** argv) {
  return millrace::testing::RunAll(argc > 1 ? argv[1] : "");
}
