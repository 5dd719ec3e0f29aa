// Makes CUDA C++ valid for a plain C++ compiler: the features that kernel source may use on the CPU device.
//
// The source is compiled after this header, followed by one MR_KERNEL(name) per kernel (kernel_exports.h), into a
// shared object that the CPU backend loads. A kernel is one function; a block is a loop over its threads, which one
// pool thread runs in order. waiting.h adds what kernels need whose threads wait for each other, and groups.h adds
// cooperative groups.
//
// It includes no system header, because these take ten times as long to compile as the kernel (0.6 s instead of 0.06).
// Names that user code does not expect begin with mr_ or Mr.
#pragma once

#include "atomics.h"
#include "block_atomics.h"
#include "conversions.h"
#include "device_functions.h"
#include "kernel_exports.h"
#include "math_functions.h"
#include "packed_integers.h"
#include "rounding.h"
#include "special_functions.h"
#include "thread_index.h"
#include "types.h"
#include "vectors.h"

#if defined(MR_FINDS_RACES)
#include "race_callbacks.h"
#endif
