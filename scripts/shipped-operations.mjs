// The operations whose kernels come with the platform packages, built ahead of time: calls of the operations themselves, so that what is built is
// what they launch. scripts/package.mjs builds the kernels, scripts/gen.mjs writes the list of docs/operations.md, and test/package runs the calls
// without a compiler.
const FLOATS = ['f32', 'f64'];
const COMMON = [...FLOATS, 'i32'];
/** Rows of 64 elements or more, and shorter ones, whose kernels find their places in another way. */
const WIDTHS = [100, 3];
const ROWS = 5;
/** Short, longer than a block of threads, and longer than the parts in which reductions, scans and sorts work. */
const LENGTHS = [4, 100, 70_000, 1_100_000];
/** Those that are sorted in different ways: by merging, in the cache of a core, and in chunks. */
const SORTED = [4, 100, 1000, 70_000];
const MATRICES = [
  [ROWS, 100],
  [ROWS, 3],
  [300, 200],
  [3, 70_000],
  [70_000, 3],
];

const two = (dtype) => (dtype === 'i64' ? 2n : 2);
const each = (names, call) => ({ names, call: (ops, ...rest) => names.map((name) => call(ops[name], ...rest)) });

/**
 * `names`: the operations; `operands`: in words; `dtypes`: of the elements. `call(ops, array, dtype)` calls them for one type, where `array(shape)`
 * makes operands, and returns the results, or promises of them.
 */
export const SHIPPED = [
  {
    ...each(['add', 'subtract', 'multiply', 'divide'], (op, array, dtype) => [
      op(array([100]), array([100])),
      op(array([100]), two(dtype)),
      op(two(dtype), array([100])),
      op(array([100]), array([])),
      ...WIDTHS.flatMap((width) => [op(array([ROWS, width]), array([width])), op(array([ROWS, width]), array([ROWS, 1]))]),
    ]),
    operands: 'arrays of one shape, a number on either side, an array beside a row, a column or an array without dimensions',
    dtypes: COMMON,
  },
  {
    ...each(['add', 'subtract', 'multiply', 'divide'], (op, array, dtype) => {
      const x = array([100]);
      return [op(x, array([100]), { out: x }), op(x, two(dtype), { out: x })];
    }),
    operands: 'in place: the result goes into the left operand',
    dtypes: FLOATS,
  },
  {
    ...each(['minimum', 'maximum', 'power', 'remainder', 'floorDivide'], (op, array, dtype) => [
      op(array([100]), array([100])),
      op(array([100]), two(dtype)),
    ]),
    operands: 'arrays of one shape, an array and a number',
    dtypes: COMMON,
  },
  {
    ...each(['equal', 'notEqual', 'less', 'lessEqual', 'greater', 'greaterEqual'], (op, array, dtype) => [
      op(array([100]), array([100])),
      op(array([100]), two(dtype)),
    ]),
    operands: 'arrays of one shape, an array and a number',
    dtypes: COMMON,
  },
  {
    ...each(['negative', 'absolute', 'square', 'sign'], (op, array) => [op(array([100]))]),
    operands: 'contiguous arrays',
    dtypes: COMMON,
  },
  {
    ...each(['sqrt', 'exp', 'log', 'sin', 'cos', 'tanh', 'floor', 'ceil', 'round', 'reciprocal'], (op, array) => [op(array([100]))]),
    operands: 'contiguous arrays',
    dtypes: FLOATS,
  },
  {
    ...each(['logicalAnd', 'logicalOr'], (op, array) => [op(array([100], 'bool'), array([100], 'bool'))]),
    operands: 'arrays of one shape',
    dtypes: ['bool'],
  },
  {
    names: ['logicalNot'],
    call: (ops, array) => [ops.logicalNot(array([100]))],
    operands: 'contiguous arrays',
    dtypes: ['bool'],
  },
  {
    names: ['where'],
    call: (ops, array, dtype) => [
      ops.where(array([100], 'bool'), array([100]), array([100])),
      ops.where(array([100], 'bool'), array([100]), two(dtype)),
      ops.where(array([100], 'bool'), two(dtype), array([100])),
    ],
    operands: 'a condition beside arrays of its shape, one of which may be a number',
    dtypes: COMMON,
  },
  {
    names: ['clip'],
    call: (ops, array, dtype) => [ops.clip(array([100]), two(dtype), two(dtype))],
    operands: 'a contiguous array and two numbers',
    dtypes: COMMON,
  },
  {
    names: ['astype'],
    call: (ops, array, dtype) => [...COMMON, 'bool'].filter((to) => to !== dtype).map((to) => ops.astype(array([100]), to)),
    operands: 'contiguous arrays, to each of these types and bool',
    dtypes: [...COMMON, 'bool'],
  },
  {
    ...each(['sum', 'mean', 'min', 'max', 'argmin', 'argmax', 'variance', 'standardDeviation'], (op, array) => reduced(op, array)),
    operands: 'contiguous arrays: of all elements, and along the rows and the columns of a matrix',
    dtypes: COMMON,
  },
  {
    ...each(['prod'], (op, array) => reduced(op, array)),
    operands: 'the same',
    dtypes: FLOATS,
  },
  {
    ...each(['all', 'any', 'sum'], (op, array) => reduced(op, array)),
    operands: 'the same',
    dtypes: ['bool'],
  },
  {
    ...each(['cumsum', 'cumprod'], (op, array) => [...LENGTHS.map((length) => [length]), ...MATRICES].map((shape) => op(array(shape)))),
    operands: 'contiguous arrays, along the last axis',
    dtypes: COMMON,
  },
  {
    ...each(['sort', 'argsort'], (op, array) => SORTED.flatMap((n) => [op(array([n])), op(array([n]), { descending: true })])),
    operands: 'contiguous arrays, along the last axis, upwards and downwards',
    dtypes: COMMON,
  },
  {
    names: ['topk'],
    call: (ops, array) => SORTED.flatMap((n) => Object.values(ops.topk(array([n]), 3))),
    operands: 'contiguous arrays: the largest',
    dtypes: COMMON,
  },
  {
    names: ['searchSorted'],
    call: (ops, array) => [ops.searchSorted(array([100]), array([20]))],
    operands: 'contiguous arrays',
    dtypes: COMMON,
  },
  {
    names: ['unique', 'compact'],
    call: (ops, array) => [ops.unique(array([100])), ops.compact(array([100]), array([100], 'bool'))],
    operands: 'contiguous arrays',
    dtypes: COMMON,
  },
  {
    names: ['take', 'concatenate', 'stack', 'tile'],
    call: (ops, array) => [
      ops.take(array([100]), array([20], 'i32')),
      ops.concatenate([array([100]), array([100])]),
      ops.stack([array([100]), array([100])]),
      ops.tile(array([100]), 2),
    ],
    operands: 'arrays of one type; `take` by i32',
    dtypes: COMMON,
  },
  {
    names: ['binCount'],
    call: (ops, array) => [ops.binCount(array([100]), 16)],
    operands: 'contiguous arrays',
    dtypes: ['i32'],
  },
  {
    names: ['histogram'],
    call: (ops, array) => [ops.histogram(array([100]), 16, { range: [0, 16] })],
    operands: 'contiguous arrays',
    dtypes: FLOATS,
  },
  {
    names: ['matmul'],
    call: (ops, array) => [
      ops.matmul(array([ROWS, 100]), array([100, 3])),
      ops.matmul(array([ROWS, 100]), array([100, 1])),
      ...LENGTHS.slice(0, 3).flatMap((n) => [
        ops.matmul(array([ROWS, n]), array([n])),
        ops.matmul(array([n]), array([n, 3])),
        ops.matmul(array([n]), array([n])),
      ]),
      ops.matmul(array([100, 3]).transpose(), array([100, ROWS])),
      ops.matmul(array([ROWS, 100]), array([3, 100]).transpose()),
      // In tiles, to which both are copied.
      ops.matmul(array([50, 40]), array([40, 256])),
    ],
    operands: 'matrices and vectors, and the transposed matrix on either side',
    dtypes: FLOATS,
  },
  {
    names: ['arange', 'linspace', 'eye', 'generator'],
    call: (ops, _array, _dtype, device) => {
      const numbers = ops.generator(1);
      const on = { device };
      return [
        ops.arange(20, on),
        ops.arange(0, 1, 0.25, on),
        ops.linspace(0, 1, 20, on),
        ops.eye(4, 4, on),
        numbers.uniform([20], on),
        numbers.normal([20], on),
        numbers.integers(0, 10, [20], on),
        numbers.permutation(20, on),
      ];
    },
    operands: 'of the type that they have without `dtype`',
    dtypes: ['f32'],
  },
];

function reduced(op, array) {
  return [
    ...LENGTHS.map((length) => op(array([length]))),
    ...MATRICES.flatMap((shape) => [op(array(shape), { axis: 0 }), op(array(shape), { axis: 1 })]),
  ];
}

/** Operands: positive numbers, not sorted, the same on each device. `made` takes them. */
function operandsOn(device, dtype, made) {
  return (shape, own = dtype) => {
    const length = shape.reduce((product, extent) => product * extent, 1);
    const values = Array.from({ length }, (_, at) => ((at * 37) % 11) + 1);
    const typed = own === 'i64' ? BigInt64Array.from(values, BigInt) : own === 'bool' ? values.map((value) => value % 2 === 1) : values;
    made.push(device.from(typed, { shape, dtype: own }));
    return made.at(-1);
  };
}

/** Calls everything on a device, or only what has one of these types. Resolves to the arrays of the results, by operation and type. */
export async function callShipped(ops, device, wanted) {
  const results = [];
  for (const { names, call, dtypes } of SHIPPED) {
    for (const dtype of dtypes.filter((one) => wanted?.includes(one) ?? true)) {
      const made = [];
      const arrays = await Promise.all(call(ops, operandsOn(device, dtype, made), dtype, device).flat(3));
      for (const operand of made) if (!arrays.includes(operand)) operand[Symbol.dispose]();
      // A result that goes into an operand may be there twice.
      results.push({ names, dtype, arrays: [...new Set(arrays)] });
    }
  }
  return results;
}
