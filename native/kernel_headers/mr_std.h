// The part of C++'s standard library that kernels use, in namespace std: types, values and algorithms, without memory
// allocation, exceptions and streams. The builder puts this header in front of sources that name std.
#pragma once

#include "mr_types.h"

#include "mr_std_traits.h"

#include "mr_std_limits.h"
#include "mr_std_utility.h"

#include "mr_std_algorithm.h"
#include "mr_std_functional.h"
#include "mr_std_host.h"
#include "mr_std_math.h"
#include "mr_std_tuple.h"
