// What this header declares is for the host, whose code is removed from kernel sources.
#pragma once
