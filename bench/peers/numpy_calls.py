"""NumPy as the peer of bench/programs/operations-beside-numpy.mjs. Answers each line, JSON of {dtype, shapes, call, count}, where `call` is an
expression of the operands x and y, with {"times": [[seconds, seconds of processors], ...]}."""
import json
import sys
import time

import numpy as np

TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}
numbers = np.random.default_rng(1)
operands = {}


def array(dtype, shape):
    if dtype.startswith("f"):
        return numbers.random(shape, dtype=TYPES[dtype])
    return numbers.integers(-(2**31), 2**31, shape, dtype=TYPES[dtype])


def blas():
    try:
        found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except TypeError:
        return "the system's BLAS"  # Before NumPy 1.25.
    return f"{found['name']} {found['version']}"


print(json.dumps({"version": f"{np.__version__} with {blas()}, Python {sys.version.split()[0]}"}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    key = (request["dtype"], str(request["shapes"]))
    if key not in operands:
        operands = {key: [array(request["dtype"], shape) for shape in request["shapes"]]}
    x, y = operands[key]
    run = eval(f"lambda x, y: {request['call']}", {"np": np})
    times = []
    for _ in range(request["count"]):
        used, start = time.process_time(), time.perf_counter()
        result = run(x, y)
        times.append([time.perf_counter() - start, time.process_time() - used])
        del result
    print(json.dumps({"times": times}), flush=True)
