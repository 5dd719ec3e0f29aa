"""The training of examples/parallel by PyTorch: DistributedDataParallel with a process for each of two GPUs, and one GPU that takes the
parts of both in each step.

    python3 parallel_torch.py [width] [layers] [rows] [steps]     prints milliseconds of a step
"""
import contextlib
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WIDTH, LAYERS, ROWS, STEPS = (int(text) for text in (sys.argv[1:] + ["2048", "6", "2048", "60"][len(sys.argv) - 1 :]))
FIRST = min(5, STEPS - 1)


def network(device):
    layers = []
    for n in range(LAYERS):
        linear = torch.nn.Linear(WIDTH, WIDTH, bias=False, device=device)
        torch.nn.init.normal_(linear.weight, std=(2 / WIDTH) ** 0.5)
        layers.append(linear)
        if n < LAYERS - 1:
            layers.append(torch.nn.ReLU())
    return torch.nn.Sequential(*layers)


def train(rank, size, parts):
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    model = network(device)
    truth = network(device)
    if size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1 / WIDTH)
    torch.manual_seed(1 + rank)
    x = [torch.randn(ROWS, WIDTH, device=device) for _ in range(parts)]
    with torch.no_grad():
        y = [truth(part) for part in x]
    for step in range(STEPS):
        if step == FIRST:
            torch.cuda.synchronize()
            start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for n in range(parts):
            waits = model.no_sync() if size > 1 and n < parts - 1 else contextlib.nullcontext()
            with waits:
                loss = (model(x[n]) - y[n]).square().sum() / (2 * ROWS * parts)
                loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    if rank == 0:
        print(f"PyTorch {torch.__version__}, {size} GPU: {1e3 * (time.perf_counter() - start) / (STEPS - FIRST):.3f} ms a step", flush=True)


def rank_of_two(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
    dist.init_process_group("nccl", rank=rank, world_size=2)
    train(rank, 2, 1)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank_of_two, nprocs=2)
    train(0, 1, 2)
