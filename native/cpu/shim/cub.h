// CUB's collective functions of blocks and warps. The builder includes this header if the source names cub.
#pragma once

#include "cub_exchange.h"
#include "cub_load_store.h"
#include "cub_reduce.h"
#include "cub_scan.h"
#include "cub_sort.h"
