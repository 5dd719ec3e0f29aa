// Empty: the builder includes the shim's groups_partitions.h if the source names what is in it.
#pragma once
