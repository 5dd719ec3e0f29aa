"""cuda.core, NVIDIA's Python interface to the driver, as a peer of bench/main.ts: launches only.

    python3 cuda_core_peer.py [ordinal]
"""
import ctypes
import sys

try:
    from cuda import core
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
except ImportError:  # Before 1.0.
    from cuda.core import experimental as core
    from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch

from conversation import SAXPY, after_idle, converse, mean

device = Device(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
device.set_current()
stream = device.create_stream()
capability = device.compute_capability
options = ProgramOptions(std="c++17", arch=f"sm_{capability.major}{capability.minor}")
compiled = Program(SAXPY, code_type="c++", options=options).compile("cubin")
empty, three = compiled.get_kernel("empty"), compiled.get_kernel("three")
config = LaunchConfig(grid=1, block=1)
x = device.allocate(4, stream=stream)
y = device.allocate(4, stream=stream)
a = ctypes.c_float(2)


def submit():
    launch(stream, config, empty)


def round_trip():
    submit()
    stream.sync()


round_trip()
converse(
    getattr(core, "__version__", "unknown"),
    {
        "burst": lambda count: [mean(int(count), lambda: launch(stream, config, three, a, x, y), stream.sync)[0]],
        "sustained": lambda count: [mean(int(count), submit, stream.sync)[1]],
        "blocking": lambda count, idle_ms: after_idle(int(count), int(idle_ms), round_trip),
    },
)
