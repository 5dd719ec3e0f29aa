"""The rows of bench/arrays.ts with CuPy: copies of ordinary NumPy arrays to and from the GPU. Prints one JSON object."""
import json
import sys
import time

import cupy
import numpy

sizes = [int(mib) for mib in sys.argv[1].split(",")]
rounds = int(sys.argv[2])


def seconds(run):
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    run()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start


rows = {}
cupy.zeros(1).get()
for mib in sizes:
    count = mib * 2**20 // 4
    dst = cupy.empty(count, dtype=cupy.float32)
    fresh = []
    for _ in range(rounds):
        array = numpy.ones(count, dtype=numpy.float32)
        fresh.append(seconds(lambda: dst.set(array)))
    again = [seconds(lambda: dst.set(array)) for _ in range(rounds)]
    get = [seconds(lambda: dst.get()) for _ in range(rounds)]
    into = [seconds(lambda: dst.get(out=array)) for _ in range(rounds)]
    rows[mib] = {"up, a new array each time": fresh, "up, the same array": again, "down to a new array": get, "down to the same array": into}
print(json.dumps({"version": cupy.__version__, "rows": rows}))
