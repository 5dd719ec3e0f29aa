// What this header declares is for the host, whose code is removed from kernel sources.
#pragma once

// Types of arrays that kernels take. Transforms run on the host.
#define cufftReal float
#define cufftDoubleReal double
#define cufftComplex float2
#define cufftDoubleComplex double2
