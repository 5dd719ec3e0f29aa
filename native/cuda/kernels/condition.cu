// Sets the condition of a graph's conditional node: whether `*value` equals `expected`, or, with is_equal 0, differs.
// The driver resolves cudaGraphSetConditional when it loads the PTX.
// After a change run `node native/cuda/kernels/generate.mjs`: the library loads the PTX that it generates.
extern "C" __global__ void millrace_condition(unsigned long long handle, const int* value, int expected, int is_equal) {
  cudaGraphSetConditional(handle, (*value == expected) == (is_equal != 0));
}
