"""NumPy as a peer of bench/main.ts on the CPU device.

    python3 numpy_peer.py
"""
import sys

import numpy

from conversation import converse
from operations import operations

numbers = numpy.random.default_rng(1)
converse(
    f"{numpy.__version__}, Python {sys.version.split()[0]}",
    operations(numpy, lambda: None, numpy.matmul, lambda shape: numbers.random(shape, dtype=numpy.float32)),
)
