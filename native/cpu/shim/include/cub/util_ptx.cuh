// Empty: the builder includes the shim's cub.h if the source names cub.
#pragma once
