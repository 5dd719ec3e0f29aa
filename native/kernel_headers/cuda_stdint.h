// An older name of <stdint.h>, which CUDA had.
#pragma once

#include <stdint.h>
