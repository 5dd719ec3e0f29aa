// The builder includes what the shim has of cooperative groups where a text names them.
#pragma once
