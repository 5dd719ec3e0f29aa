// The macros of <values.h>: older names of the limits in <limits.h> and <float.h>.
#pragma once

#include <float.h>
#include <limits.h>

#define MAXSHORT SHRT_MAX
#define MAXINT INT_MAX
#define MAXFLOAT FLT_MAX
#define MAXDOUBLE DBL_MAX
