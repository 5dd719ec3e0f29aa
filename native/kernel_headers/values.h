// The older names of the limits.
#pragma once

#include <float.h>
#include <limits.h>

#define MAXSHORT SHRT_MAX
#define MAXINT INT_MAX
#define MAXFLOAT FLT_MAX
#define MAXDOUBLE DBL_MAX
