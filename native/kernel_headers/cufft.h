// Only host code uses the other names of this header, and the library removes host code from kernel sources.
#pragma once

// Types of arrays that kernels take. Transforms run on the host.
#define cufftReal float
#define cufftDoubleReal double
#define cufftComplex float2
#define cufftDoubleComplex double2
