# Writes what NumPy prints for many arrays, which array-text.test.ts compares: python3 test/support/numpy-texts.py [more cases of each kind]
# The stored texts are those of NumPy 2.4.6.
import base64
import hashlib
import json
import sys

import numpy as np

random = np.random.default_rng(20)
most = int(sys.argv[1]) if len(sys.argv) > 1 else 8
floats = {'f16': np.float16, 'f32': np.float32, 'f64': np.float64}
integers = {
    'i8': np.int8,
    'u8': np.uint8,
    'i16': np.int16,
    'u16': np.uint16,
    'i32': np.int32,
    'u32': np.uint32,
    'i64': np.int64,
    'u64': np.uint64,
}
types = {'bool': np.bool_, **integers, **floats}
cases = []


def add(dtype, values, **style):
    array = np.asarray(values, dtype=types[dtype])
    text = str(array)
    if style:
        text = np.array2string(
            array,
            precision=style.get('precision', 8),
            threshold=style.get('threshold', 1000),
            edgeitems=style.get('edgeItems', 3),
            max_line_width=style.get('lineWidth', 75),
            suppress_small=style.get('suppress', False),
        )
    # The elements of large arrays are 0, 1, 2 and so on.
    data = None if array.size > 200 else base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    cases.append([dtype, list(array.shape), style, data, text])


def numbers(kind, count):
    if kind == 0:
        return random.standard_normal(count)
    if kind == 1:
        return random.standard_normal(count) * 10.0 ** random.integers(-12, 12)
    if kind == 2:
        return random.standard_normal(count) * 10.0 ** random.integers(-6, 7, count)
    if kind == 3:
        return random.integers(-5000, 5000, count) / 2.0 ** random.integers(0, 12)
    if kind == 4:
        return np.round(random.random(count) * 10 ** random.integers(0, 5), int(random.integers(0, 6)))
    values = random.random(count)
    values[random.integers(0, count)] = [np.nan, np.inf, -np.inf, -0.0, 0][random.integers(0, 5)]
    return values


SCALARS = '0 -0.0 1 -1 0.5 0.1 0.333333333333333333 1e-4 1e-5 9.9e-5 999 1000 1e5 999999 1e6 1e7 1e8 1e15 1e16 1e22 1e-7 nan inf -inf 65504 5e-324 1e-45 6e-8 123456789'
LISTS = """0; -0.0 0; 1 2 3; 1 -2 3.5; 0.1 0.25 0.333333333333333333; 1e-5 1; 1e-4 1; 1 1000; 1 1001; 1 999.5; 1e8 1; 99999999 99999998; nan; nan 1; inf -inf;
-inf 2.25; nan -1e-9; inf 0; nan inf -inf -0.0; 1.001953125 1; 1.005859375 1; 0.5 1.5; 1e300 1e-300; 1e-310 1; 5e-324; 1e22 1; 0.1 16777217e3;
0.1 1.27403005e+23; -1e-5 1e5; 12345.678 0.5; 1e100 -1e100; 0 1e-9; 0 0; 5.960464477539063e-08 1; 6.103515625e-05; 0.00012 0.12; 1.7881393e-07 108.2; 0.015625 0.00001"""

with np.errstate(all='ignore'):
    for dtype, of in floats.items():
        for scalar in SCALARS.split():
            add(dtype, float(scalar))
        add(dtype, [])
        for values in LISTS.split(';'):
            add(dtype, [float(value) for value in values.split()])
        for _ in range(most):
            style = {}
            if random.random() < 0.25:
                style['precision'] = int(random.integers(0, 12))
            if random.random() < 0.15:
                style['suppress'] = True
            if random.random() < 0.15:
                style['lineWidth'] = int(random.integers(5, 60))
            add(dtype, numbers(int(random.integers(0, 6)), int(random.integers(1, 20))), **style)
        word = {'f16': np.uint16, 'f32': np.uint32, 'f64': np.uint64}[dtype]
        for _ in range(most):
            bits = random.integers(0, np.iinfo(word).max, int(random.integers(1, 12)), dtype=word, endpoint=True).view(of)
            add(dtype, bits)
            add(dtype, bits[0])
    for values in [True, False, [True], [True, True], [False], [[True, False], [False, True]], [], np.arange(70) % 3 == 0]:
        add('bool', values)
    for dtype, of in integers.items():
        low, high = np.iinfo(of).min, np.iinfo(of).max
        for values in [low, high, 0, [low, high], [high], [1, 2, 3], [[1, 20], [100, 3]], [], random.integers(low, high, 30, dtype=of, endpoint=True)]:
            add(dtype, values)
    for shape in [(2, 3), (3, 2, 2), (2, 2, 2, 2), (1, 1), (1, 1, 1, 1), (0, 3), (3, 0), (2, 0, 2), (4, 40), (1, 30), (30, 1), (2, 3, 9)]:
        count = int(np.prod(shape))
        add('f32', np.linspace(-1, 1, count).reshape(shape) if count else np.zeros(shape))
        add('i32', np.arange(count).reshape(shape))
    for shape in [(1001,), (1000,), (40, 40), (2, 600), (600, 2), (5, 300), (11, 11, 11), (6, 200), (7, 150), (3,) * 7, (1500, 1)]:
        for dtype in ['i16', 'f32']:
            add(dtype, np.arange(np.prod(shape)).reshape(shape))
    for style in [{'threshold': 5}, {'threshold': 5, 'edgeItems': 1}, {'threshold': 0, 'edgeItems': 2}, {'threshold': 5, 'edgeItems': 5, 'lineWidth': 20}]:
        add('f32', np.arange(12) / 3, **style)
        add('f32', (np.arange(48) / 3).reshape(3, 4, 4), **style)
        add('i64', np.arange(200).reshape(10, 20) ** 3, **style)

    def hashed(numbers):
        return hashlib.sha256('\n'.join(str(number) for number in numbers).encode()).hexdigest()

    # Each number of 16 bits, and each power of two, alone.
    hashes = {
        'f16': hashed(np.arange(65536, dtype=np.uint16).view(np.float16)),
        'f32': hashed(np.ldexp(np.float32(1), power) for power in range(-149, 128)),
        'f64': hashed(np.ldexp(np.float64(1), power) for power in range(-1074, 1024)),
    }

lines = ',\n'.join(json.dumps(case) for case in cases)
print(f'{{"hashes": {json.dumps(hashes)},\n"cases": [\n{lines}\n]}}')
