// The functions of string.h, under an old name.
#pragma once
#include <string.h>
