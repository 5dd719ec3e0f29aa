// Everything for one 16-bit floating-point type: included by cuda_fp16.h and by cuda_bf16.h, after the definitions that
// half_type.h names, and of MR_WORD and of MR_NO_HALF_OPERATORS or MR_NO_PAIR_OPERATORS.
#include "half_type.h"

#define MR_VALUE MR_HALF
#define MR_ARITHMETIC MR_JOIN(mr_arithmetic_of, MR_HALF, )
#define MR_PRODUCT MR_JOIN(mr_product_of, MR_HALF, )
#define MR_2
#if defined(MR_NO_HALF_OPERATORS)
#define MR_NO_OPERATORS
#endif
using MR_ARITHMETIC = mr_half_arithmetic<mr_half_lanes<MR_HALF>, MR_HALF>;
using MR_PRODUCT = mr_half_product_type<MR_HALF, MR_ARITHMETIC>;
#include "half_operators.h"

#define MR_VALUE MR_PAIR
#define MR_ARITHMETIC MR_JOIN(mr_arithmetic_of, MR_PAIR, )
#define MR_PRODUCT MR_JOIN(mr_product_of, MR_PAIR, )
#define MR_2 2
#if defined(MR_NO_PAIR_OPERATORS)
#define MR_NO_OPERATORS
#endif
using MR_ARITHMETIC = mr_half_arithmetic<mr_half_pair_lanes<MR_PAIR>, MR_PAIR>;
using MR_PRODUCT = mr_half_product_type<MR_PAIR, MR_ARITHMETIC>;
#include "half_operators.h"

#include "half_comparisons.h"
#include "half_conversions.h"
#include "half_math.h"

#undef MR_HALF
#undef MR_PAIR
#undef MR_HALF_RAW
#undef MR_PAIR_RAW
#undef MR_OTHER_HALF
#undef MR_FORMAT
#undef MR_WORD
#undef MR_NO_CONVERSIONS
#undef MR_NO_HALF_OPERATORS
#undef MR_NO_PAIR_OPERATORS
