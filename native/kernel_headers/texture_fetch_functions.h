// CUDA's compilers, and the shim of the CPU device, have what kernels use of this header without an include.
#pragma once
