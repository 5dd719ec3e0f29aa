// cuda_on_cpu.h is included before this header.
#include "../assert_macro.h"
