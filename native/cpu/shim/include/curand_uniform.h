// Empty: the builder includes the shim's curand_numbers.h if the source names cuRAND.
#pragma once
