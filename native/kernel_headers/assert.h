// NDEBUG counts at each inclusion. Otherwise CUDA's compilers and the shim of the CPU device have the macro.
#if defined(MILLRACE_CPU_DEVICE)
#include "assert_macro.h"
#elif defined(NDEBUG)
#undef assert
#define assert(condition) ((void)0)
#endif
