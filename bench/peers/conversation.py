"""What the peers of bench/main.ts in Python share. A peer answers each line of standard input with one line of JSON, so that the
benchmark measures both sides in turn. A request is a name and its arguments (bench/native/driver_peer.cpp lists them), an answer
{"seconds": [...]} or {"error": "..."}."""
import json
import sys
import time

SAXPY = """
extern "C" __global__ void three(float a, const float* x, float* y) { if (a < 0) y[0] = a * x[0]; }
extern "C" __global__ void empty() {}
"""
MIB = 2**20


def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def mean(count, submit, finish):
    """Seconds of one of `count` submissions on the calling thread, and of one until the device has finished all."""
    start = time.perf_counter()
    for _ in range(count):
        submit()
    submitted = time.perf_counter() - start
    finish()
    return submitted / count, (time.perf_counter() - start) / count


def after_idle(count, idle_ms, run):
    seconds = []
    for _ in range(count):
        if idle_ms > 0:
            time.sleep(idle_ms / 1e3)
        seconds.append(timed(run))
    return seconds


def converse(version, requests):
    """`requests` has a function of the arguments (strings) for each name; its result is a list of seconds."""
    print(json.dumps({"version": version, "can": list(requests)}), flush=True)
    for line in sys.stdin:
        name, *args = line.split()
        try:
            if name not in requests:
                raise ValueError(f"no request {name}")
            answer = {"seconds": requests[name](*args)}
        except Exception as error:  # The benchmark shows the reason in place of a figure.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
