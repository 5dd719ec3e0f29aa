// The shim declares what this header has for device code.
#pragma once
