"""CuPy as a peer of bench/main.ts: kernels through RawKernel, ordinary NumPy arrays, page-locked memory, asyncio.

    python3 cupy_peer.py [ordinal]
"""
import asyncio
import concurrent.futures
import sys
import time

import cupy
import cupyx
import numpy

from conversation import MIB, SAXPY, after_idle, converse, mean, timed
from frames import Frames
from operations import operations

device = cupy.cuda.Device(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
device.use()
module = cupy.RawModule(code=SAXPY)
empty, three = module.get_function("empty"), module.get_function("three")
stream = cupy.cuda.Stream(non_blocking=True)
stream.use()
x, y = cupy.ones(1, dtype=cupy.float32), cupy.zeros(1, dtype=cupy.float32)
args = (numpy.float32(2), x, y)
host = {}
memory = {}
pinned = {}


def on_device(mib):
    if mib not in memory:
        memory[mib] = cupy.empty(mib * MIB // 4, dtype=cupy.float32)
    return memory[mib]


def launch():
    empty((1,), (1,), ())


def round_trip():
    launch()
    stream.synchronize()


def up(mib, freshness="new"):
    mib = int(mib)
    dst = on_device(mib)
    if freshness == "new" or mib not in host:
        host[mib] = numpy.ones(mib * MIB // 4, dtype=numpy.float32)
    stream.synchronize()
    return [timed(lambda: (dst.set(host[mib]), stream.synchronize()))]


def down(mib, freshness="new"):
    mib = int(mib)
    src = on_device(mib)
    if mib not in host:
        host[mib] = numpy.ones(mib * MIB // 4, dtype=numpy.float32)
    stream.synchronize()
    return [timed(lambda: src.get(out=host[mib] if freshness == "same" else None))]


def copy_pinned(direction, mib, clock, count):
    mib = int(mib)
    array = on_device(mib)
    if mib not in pinned:
        pinned[mib] = cupyx.empty_pinned(mib * MIB // 4, dtype=numpy.float32)
        pinned[mib][:] = 1
    memory_of_host = pinned[mib]

    def copy():
        if direction == "up":
            array.set(memory_of_host, stream)
        else:
            array.get(stream, out=memory_of_host, blocking=False)

    seconds = []
    for _ in range(int(count)):
        if clock == "events":
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record(stream)
            copy()
            end.record(stream)
            end.synchronize()
            seconds.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
        else:
            seconds.append(timed(lambda: (copy(), stream.synchronize())))
    return seconds


def awaited(count, idle_ms):
    """Launches from a coroutine, which awaits the synchronisation in an executor's thread: the event loop stays free."""

    async def run():
        loop = asyncio.get_running_loop()
        seconds = []
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            for _ in range(int(count)):
                if int(idle_ms) > 0:
                    await asyncio.sleep(int(idle_ms) / 1e3)
                start = time.perf_counter()
                launch()
                await loop.run_in_executor(pool, stream.synchronize)
                seconds.append(time.perf_counter() - start)
        return seconds

    return asyncio.run(run())


def events(count):
    made = [cupy.cuda.Event(disable_timing=True) for _ in range(int(count))]
    start = time.perf_counter()
    for event in made:
        event.record(stream)
    for event in made:
        event.synchronize()
    return [(time.perf_counter() - start) / len(made)]


FRAMES = """
extern "C" __global__ void increment(float* x, int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) x[i] += 1;
}
extern "C" __global__ void spin(float* x, int steps) {
  float value = 0;
  for (int n = 0; n < steps; n++) value = value * 0.5f + 1;
  x[0] = value;
}
"""
frame_kernels = cupy.RawModule(code=FRAMES)
increment, spin = frame_kernels.get_function("increment"), frame_kernels.get_function("spin")


class Lane:
    def __init__(self, size):
        self.size = size
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.source, self.target = (cupyx.zeros_pinned(size // 4, dtype=numpy.float32) for _ in range(2))
        self.addresses = self.source.ctypes.data, self.target.ctypes.data
        self.ordinary = numpy.ones(size // 4, dtype=numpy.float32)
        self.x, self.y = cupy.zeros(size // 4, dtype=cupy.float32), cupy.zeros(1, dtype=cupy.float32)
        self.length = numpy.int32(size // 4)
        self.blocks = ((size // 4 + 255) // 256,)
        self.captured = None

    def up(self):
        self.x.data.copy_from_host_async(self.addresses[0], self.size, self.stream)

    def down(self):
        self.x.data.copy_to_host_async(self.addresses[1], self.size, self.stream)

    def increment(self):
        with self.stream:
            increment(self.blocks, (256,), (self.x, self.length))

    def spin(self, steps):
        with self.stream:
            spin((1,), (1,), (self.y, numpy.int32(steps)))

    def graph(self):
        if self.captured is None:
            self.captured = self.capture()
        self.captured.launch(self.stream)

    def capture(self):
        # The copies of `cupy.ndarray` refuse to be captured, those of the runtime do not.
        copy, kinds = cupy.cuda.runtime.memcpyAsync, cupy.cuda.runtime
        x, (source, target) = self.x.data.ptr, self.addresses
        with self.stream:
            self.stream.begin_capture()
            try:
                copy(x, source, self.size, kinds.memcpyHostToDevice, self.stream.ptr)
                increment(self.blocks, (256,), (self.x, self.length))
                copy(target, x, self.size, kinds.memcpyDeviceToHost, self.stream.ptr)
            finally:
                graph = self.stream.end_capture()
        return graph

    def synchronize(self):
        self.stream.synchronize()

    def plain(self):
        with self.stream:
            x = cupy.asarray(self.ordinary)
            increment(self.blocks, (256,), (x, self.length))
            return cupy.asnumpy(x)


round_trip()
runtime = cupy.cuda.runtime.runtimeGetVersion()
converse(
    f"{cupy.__version__}, CUDA {runtime // 1000}.{runtime % 1000 // 10}, Python {sys.version.split()[0]}",
    {
        "burst": lambda count: [mean(int(count), lambda: three((1,), (1,), args), stream.synchronize)[0]],
        "sustained": lambda count: [mean(int(count), launch, stream.synchronize)[1]],
        "blocking": lambda count, idle_ms: after_idle(int(count), int(idle_ms), round_trip),
        "awaited": awaited,
        "events": events,
        "up": up,
        "down": down,
        "pinned": copy_pinned,
        **Frames(Lane, device.synchronize).requests(),
        **operations(cupy, stream.synchronize, cupy.matmul, lambda shape: cupy.random.random(shape, dtype=cupy.float32)),
    },
)
