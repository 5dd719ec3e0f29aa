// Empty: the builder includes the shim's groups.h if the source names cooperative groups.
#pragma once
