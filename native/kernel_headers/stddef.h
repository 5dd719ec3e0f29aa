// Device code needs no declaration of this header besides those of mr_types.h and mr_std.h.
#pragma once
