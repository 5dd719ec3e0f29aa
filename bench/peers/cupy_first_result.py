"""CuPy's side of bench/programs/first-result.ts, in a process of its own: from `import cupy` to the first result of an own kernel, and
the first copies of ordinary arrays. Prints one JSON object.

    python3 cupy_first_result.py ORDINAL MIB,MIB
"""
import json
import sys
import time

start = time.perf_counter()
import cupy  # noqa: E402
import numpy  # noqa: E402

imported = time.perf_counter()
cupy.cuda.Device(int(sys.argv[1])).use()
kernel = cupy.RawKernel('extern "C" __global__ void square(float* x) { x[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x] + 1; }', "square")
x = cupy.ones(256, dtype=cupy.float32)
kernel((1,), (256,), (x,))
assert x.get()[0] == 2
first = time.perf_counter()

up = {}
for mib in [int(text) for text in sys.argv[2].split(",")]:
    count = mib * 2**20 // 4
    dst = cupy.empty(count, dtype=cupy.float32)
    array = numpy.ones(count, dtype=numpy.float32)
    cupy.cuda.Device().synchronize()
    before = time.perf_counter()
    dst.set(array)
    cupy.cuda.Device().synchronize()
    up[mib] = time.perf_counter() - before
print(json.dumps({"importSeconds": imported - start, "resultSeconds": first - start, "upSeconds": up}))
