// Macros of <stdlib.h>. mr_types.h says where its functions are.
#pragma once

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
