// Another name of string.h.
#pragma once

#include <string.h>
