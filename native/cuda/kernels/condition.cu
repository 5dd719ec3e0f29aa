// Sets the condition of a graph's conditional node: whether `*value` equals `expected`, or, with is_equal 0, differs. It
// is false if `stop` is not null and `*stop` is not 0: a kernel of the graph has reported a fault there.
// The driver resolves cudaGraphSetConditional when it loads the PTX.
// After a change run `node native/cuda/kernels/generate.mjs`: the library loads the PTX that it generates.
extern "C" __global__ void millrace_condition(unsigned long long handle, const int* value, int expected, int is_equal,
                                              const volatile unsigned* stop) {
  const bool is_stopped = stop != nullptr && *stop != 0;
  cudaGraphSetConditional(handle, !is_stopped && (*value == expected) == (is_equal != 0));
}
