"""Operations on arrays, which the peers in Python have in common: `operation NAME SIZE COUNT` answers with the seconds of each of COUNT
results, until the device has finished, and `operation.call` with those of one call in a burst."""
from conversation import mean, timed


def operations(xp, finish, matmul, uniform):
    """`xp` is a module with NumPy's names; `uniform(shape)` makes f32 numbers."""
    arrays = {}

    def array(key, shape):
        if key not in arrays:
            arrays[key] = uniform(shape)
        return arrays[key]

    def call(name, size):
        if name == "matmul":
            a, b = array(("a", size), (size, size)), array(("b", size), (size, size))
            return lambda: matmul(a, b)
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
        }[name]

    def operation(name, size, count):
        run = call(name, int(size))
        return [timed(lambda: (run(), finish())) for _ in range(int(count))]

    def burst(name, size, count):
        return [mean(int(count), call(name, int(size)), finish)[0]]

    return {"operation": operation, "operation.call": burst}
