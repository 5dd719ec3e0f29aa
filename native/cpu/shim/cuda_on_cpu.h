// CUDA C++ for a plain C++ compiler: what a kernel text may use on the CPU device.
//
// The text is compiled behind this header and followed by one MR_KERNEL(name) per kernel (launch.h), which makes a
// shared object that the CPU backend loads. A kernel here is one function; a block is a loop over its threads, run from
// first to last by one thread of the device's pool. What a kernel needs whose threads wait for each other is in
// waiting.h, and cooperative groups are in groups.h.
//
// Freestanding: not one system header is read, because they cost ten times what the kernel costs (0.6 s against
// 0.06 s). Names that a text may not expect begin with mr_ or Mr.
#pragma once

#include "atomics.h"
#include "block_atomics.h"
#include "conversions.h"
#include "device_functions.h"
#include "index.h"
#include "launch.h"
#include "math_functions.h"
#include "rounding.h"
#include "special_functions.h"
#include "types.h"
#include "vectors.h"
