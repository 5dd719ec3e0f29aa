// Empty: only host code uses what this header declares, and the library removes host code from kernel sources.
#pragma once
