"""PyTorch as a peer of bench/main.ts. It has no launch of an own kernel without a compiler, so a launch is `add_` on one element.

    python3 torch_peer.py [ordinal]
"""
import sys

import torch

from conversation import MIB, after_idle, converse, mean, timed
from frames import Frames
from operations import operations

device = torch.device("cuda", int(sys.argv[1]) if len(sys.argv) > 1 else 0)
torch.cuda.set_device(device)
stream = torch.cuda.Stream()
torch.cuda.set_stream(stream)
x = torch.ones(1, device=device)
host = {}
memory = {}
pinned = {}


def on_device(mib):
    if mib not in memory:
        memory[mib] = torch.empty(mib * MIB // 4, device=device)
    return memory[mib]


def launch():
    x.add_(1)


def round_trip():
    launch()
    stream.synchronize()


def up(mib, freshness="new"):
    mib = int(mib)
    dst = on_device(mib)
    if freshness == "new" or mib not in host:
        host[mib] = torch.ones(mib * MIB // 4)
    stream.synchronize()
    return [timed(lambda: (dst.copy_(host[mib]), stream.synchronize()))]


def down(mib, freshness="new"):
    mib = int(mib)
    src = on_device(mib)
    if mib not in host:
        host[mib] = torch.ones(mib * MIB // 4)
    stream.synchronize()
    if freshness == "same":
        return [timed(lambda: (host[mib].copy_(src), stream.synchronize()))]
    return [timed(lambda: src.cpu())]


def copy_pinned(direction, mib, clock, count):
    mib = int(mib)
    array = on_device(mib)
    if mib not in pinned:
        pinned[mib] = torch.ones(mib * MIB // 4).pin_memory()
    dst, src = (array, pinned[mib]) if direction == "up" else (pinned[mib], array)
    seconds = []
    for _ in range(int(count)):
        if clock == "events":
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            dst.copy_(src, non_blocking=True)
            end.record()
            end.synchronize()
            seconds.append(start.elapsed_time(end) / 1e3)
        else:
            seconds.append(timed(lambda: (dst.copy_(src, non_blocking=True), stream.synchronize())))
    return seconds


profiled_streams = [torch.cuda.Stream() for _ in range(3)]
cycles_each = {}


def profiled(microseconds, streams, count):
    """Seconds of one of `count` launches on some streams in turn, without the profiler and with it."""
    microseconds, streams, count = int(microseconds), int(streams), int(count)

    def run(number, lanes, cycles):
        def submit():
            for n in range(number):
                with torch.cuda.stream(profiled_streams[n % lanes]):
                    torch.cuda._sleep(cycles)

        torch.cuda.synchronize()
        return timed(lambda: (submit(), torch.cuda.synchronize())) / number

    if microseconds not in cycles_each:
        cycles = 1000 * microseconds
        for _ in range(4):
            cycles = max(1, round(cycles * microseconds / (run(200, 1, cycles) * 1e6)))
        cycles_each[microseconds] = cycles
    plain = run(count, streams, cycles_each[microseconds])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        return [plain, run(count, streams, cycles_each[microseconds])]


class Lane:
    def __init__(self, size):
        self.stream = torch.cuda.Stream()
        self.pinned = [torch.zeros(size // 4).pin_memory() for _ in range(2)]
        self.source, self.target = (tensor.numpy() for tensor in self.pinned)
        self.ordinary = torch.ones(size // 4)
        self.x = torch.zeros(size // 4, device=device)
        self.captured = None

    def up(self):
        with torch.cuda.stream(self.stream):
            self.x.copy_(self.pinned[0], non_blocking=True)

    def down(self):
        with torch.cuda.stream(self.stream):
            self.pinned[1].copy_(self.x, non_blocking=True)

    def increment(self):
        with torch.cuda.stream(self.stream):
            self.x.add_(1)

    def spin(self, steps):
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(steps)

    def graph(self):
        if self.captured is None:
            self.captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.captured, stream=self.stream):
                self.up()
                self.increment()
                self.down()
        with torch.cuda.stream(self.stream):
            self.captured.replay()

    def synchronize(self):
        self.stream.synchronize()

    def plain(self):
        with torch.cuda.stream(self.stream):
            return self.ordinary.to(device).add_(1).cpu()


round_trip()
converse(
    torch.__version__,
    {
        "burst": lambda count: [mean(int(count), launch, stream.synchronize)[0]],
        "sustained": lambda count: [mean(int(count), launch, stream.synchronize)[1]],
        "blocking": lambda count, idle_ms: after_idle(int(count), int(idle_ms), round_trip),
        "up": up,
        "down": down,
        "pinned": copy_pinned,
        "profiled": profiled,
        **Frames(Lane, torch.cuda.synchronize).requests(),
        **operations(torch, stream.synchronize, torch.matmul, lambda shape: torch.rand(shape, device=device), torch.topk),
    },
)
