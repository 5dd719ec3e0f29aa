// Empty, as the headers of C++ that it stands for: mr_types.h and mr_std.h declare what device code uses of them.
#pragma once
