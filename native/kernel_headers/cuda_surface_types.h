// Empty: NVRTC, nvcc and the CPU device's shim declare without an include what kernels use of this header.
#pragma once
