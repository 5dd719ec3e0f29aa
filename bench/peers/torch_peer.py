"""PyTorch as a peer of bench/main.ts. It has no launch of an own kernel without a compiler, so a launch is `add_` on one element.

    python3 torch_peer.py [ordinal]
"""
import sys

import torch

from conversation import MIB, after_idle, converse, mean, timed

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
    },
)
