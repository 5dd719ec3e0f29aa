// CUDA's pipeline header: on the CPU device it has the primitives only, and cuda_barrier.h of the shim has
// cuda::pipeline.
#pragma once

#include "cuda_pipeline_primitives.h"
