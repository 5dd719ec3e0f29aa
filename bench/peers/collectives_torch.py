"""All-reduce by PyTorch on two GPUs, a process for each: what bench/programs/collectives.mjs shows beside NCCL alone.

    python3 collectives_torch.py BYTES ROUNDS ...     a line for each pair: microseconds of a call of a queue, and of one that is awaited
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

PAIRS = [(int(sys.argv[n]), int(sys.argv[n + 1])) for n in range(1, len(sys.argv), 2)]
TURNS = 5


def measure(x, rounds):
    for _ in range(1000 if rounds > 20 else 20):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    queued = float("inf")
    for _ in range(TURNS):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(rounds):
            dist.all_reduce(x)
        torch.cuda.synchronize()
        queued = min(queued, time.perf_counter() - start)
    awaited = []
    for _ in range(rounds):
        start = time.perf_counter()
        dist.all_reduce(x)
        torch.cuda.synchronize()
        awaited.append(time.perf_counter() - start)
    return 1e6 * queued / rounds, 1e6 * sorted(awaited)[rounds // 2]


def rank_of_two(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29534")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2)
    for size, rounds in PAIRS:
        queued, awaited = measure(torch.zeros(size // 4, device="cuda"), rounds)
        if rank == 0:
            print(f"{queued:.2f} {awaited:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank_of_two, nprocs=2)
