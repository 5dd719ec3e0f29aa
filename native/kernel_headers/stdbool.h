// Empty: mr_types.h and mr_std.h declare what device code uses of this header.
#pragma once
