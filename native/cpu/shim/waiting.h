// What the text of a kernel whose threads wait is compiled behind, besides cuda_on_cpu.h: a header of its own, because
// the others compile faster without it.
#pragma once

#include "block_threads.h"
#include "tasks.h"
#include "warp.h"
