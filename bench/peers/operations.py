"""Operations on arrays, which the peers in Python have in common: `operation NAME SIZE COUNT` answers with the seconds of each of COUNT
results, until the device has finished, `operation.row NAME SIZE COUNT EACH` with those of COUNT times EACH in a row, and `operation.call` with those of one call in a burst."""
from conversation import mean, timed


LARGEST = 100
# Products of other types than f32: PyTorch's method that converts, and the type of NumPy and CuPy, which have no bfloat16.
PRODUCTS = {"matmulHalf": ("half", "float16"), "matmulBrain": ("bfloat16", "bfloat16"), "matmulDouble": ("double", "float64")}


def operations(xp, finish, matmul, uniform, topk=None):
    """`xp` is a module with NumPy's names; `uniform(shape)` makes f32 numbers. Without `topk`, the largest are selected by `partition`."""
    if topk is None:
        topk = lambda x, k: (xp.sort(xp.partition(x, -k)[-k:]), xp.argpartition(x, -k)[-k:])
    arrays = {}

    def array(key, shape):
        if key not in arrays:
            arrays[key] = uniform(shape)
        return arrays[key]

    def call(name, size):
        if name == "matmul":
            a, b = array(("a", size), (size, size)), array(("b", size), (size, size))
            return lambda: matmul(a, b)
        if name in PRODUCTS:
            x = array(("cast", size), (size, size))
            method, dtype = PRODUCTS[name]
            cast = getattr(x, method)() if hasattr(x, method) else x.astype(getattr(xp, dtype))
            return lambda: matmul(cast, cast)
        if name.startswith("fft"):
            shape = {"fft": (size,), "fftRows": (1000, size // 1000), "fftPlane": (size, size)}[name]
            z = array((name, size), shape) + 1j * array((name, size), shape)
            return (lambda: xp.fft.fft2(z)) if name == "fftPlane" else (lambda: xp.fft.fft(z))
        x = array(("x", size), (size,))
        square = x.reshape(1000, -1) if size % 1000 == 0 else x
        return {
            "add": lambda: x + x,
            "exp": lambda: xp.exp(x),
            "sum": lambda: xp.sum(x),
            "columns": lambda: xp.sum(square, 0),
            "argmax": lambda: xp.argmax(x),
            "cumsum": lambda: xp.cumsum(x, 0),
            "sort": lambda: xp.sort(x),
            "argsort": lambda: xp.argsort(x),
            "topk": lambda: topk(x, LARGEST),
            "rfft": lambda: xp.fft.rfft(x),
        }[name]

    def operation(name, size, count):
        run = call(name, int(size))
        return [timed(lambda: (run(), finish())) for _ in range(int(count))]

    def burst(name, size, count):
        return [mean(int(count), call(name, int(size)), finish)[0]]

    def row(name, size, count, each):
        run = call(name, int(size))
        return [mean(int(each), run, finish)[1] for _ in range(int(count))]

    return {"operation": operation, "operation.row": row, "operation.call": burst}
