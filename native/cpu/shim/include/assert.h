// Part of cuda_on_cpu.h, which is included before.
#include "../assert_macro.h"
