# The search in PyTorch, for a host with a GPU: python3 examples/search/pytorch.py [VECTORS] [SIZE] [BATCH] [K]
# Prints the milliseconds of a query alone, and of a query in a batch, in f32 and in f16.
import sys
import time

import torch

count, size, batch, k = [int(given) for given in sys.argv[1:]] + [1_000_000, 384, 32, 10][len(sys.argv) - 1 :]
device = "cuda" if torch.cuda.is_available() else "cpu"
for dtype in (torch.float32, torch.float16):
    x = torch.randn(count, size, device=device).to(dtype)
    for width in (1, batch):
        q = torch.randn(size, width, device=device).to(dtype)
        times = []
        for _ in range(10):
            start = time.perf_counter()
            values, rows = torch.topk((x @ q).float(), k, dim=0)
            values, rows = values.cpu(), rows.cpu()
            times.append((time.perf_counter() - start) * 1000 / width)
        print(f"{device} {dtype} {width} at a time: {min(times):.3f} ms a query")
