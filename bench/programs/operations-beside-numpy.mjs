// Operations on arrays on the CPU device beside NumPy, in one run that alternates both:
//   node bench/programs/operations-beside-numpy.mjs [rounds] [rows]
// Each call alone, with an await behind it, and calls in a row, as a stream is used: some are queued, and one await ends them.
// `rows` is a list of beginnings of row names, for example `add,sort.f32`. Both sides use all cores that they can, and both have the low priority of
// kernels, so that other programs of the machine take as much time from one as from the other. With MILLRACE_OPENBLAS, products are also made by a device
// with that library, in turn. Figures: docs/operations.md.
import { spawn } from 'node:child_process';
import { constants, cpus, loadavg, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { openDevice } from 'millrace';
import * as ops from 'millrace/ops';
import { sort } from 'millrace/ops';

const rounds = Number(process.argv[2] ?? 9);
const wanted = process.argv[3]?.split(',') ?? [''];
/** A round of a row takes about this long on each side, and has at least three calls. */
const ROUND_MS = 60;
const LEAST_CALLS = 3;
const LARGEST = 100;
/** Calls in a row. Of long ones fewer, so that a row takes no longer than a round. */
const MOST_IN_A_ROW = 20;

/** Calls of both sides by operation: ours, and NumPy's in the words of Python. */
const CALLS = {
  add: [(x) => ops.add(x, x), 'x + x'],
  multiply: [(x) => ops.multiply(x, x), 'x * x'],
  addNumber: [(x) => ops.add(x, 3), 'x + 3'],
  inPlace: [(x, y) => ops.add(y, x, { out: y }), 'np.add(y, x, out=y)'],
  exp: [(x) => ops.exp(x), 'np.exp(x)'],
  sum: [(x) => ops.sum(x), 'np.sum(x)'],
  max: [(x) => ops.max(x), 'np.max(x)'],
  cumsum: [(x) => ops.cumsum(x), 'np.cumsum(x)'],
  sort: [(x) => sort(x), 'np.sort(x)'],
  argsort: [(x) => ops.argsort(x), 'np.argsort(x)'],
  topk: [
    (x) => {
      const { values, indices } = ops.topk(x, LARGEST);
      indices[Symbol.dispose]();
      return values;
    },
    `(np.sort(np.partition(x, -${LARGEST})[-${LARGEST}:]), np.argpartition(x, -${LARGEST})[-${LARGEST}:])`,
  ],
  matmul: [(x, y) => ops.matmul(x, y), 'x @ y'],
};
const VECTORS = [[1e6], [1e7]];
const SQUARES = [256, 512, 1024].map((n) => [
  [n, n],
  [n, n],
]);
const SKINNY = [
  [
    [16, 4096],
    [4096, 1024],
  ],
  [
    [4096, 64],
    [64, 4096],
  ],
  [
    [64, 16384],
    [16384, 64],
  ],
];
const nameOf = (shape) => (Array.isArray(shape[0]) ? shape.map(nameOf).join('.') : shape.join('x'));
const rowsOf = (name, dtypes, shapes) => dtypes.flatMap((dtype) => shapes.map((shape) => ({ name, dtype, shape })));
const ROWS = [
  ...['add', 'multiply'].flatMap((name) => rowsOf(name, ['f32', 'f64', 'i32'], VECTORS)),
  ...['addNumber', 'inPlace', 'exp', 'max', 'cumsum'].flatMap((name) => rowsOf(name, ['f32'], VECTORS)),
  ...rowsOf('sum', ['f32', 'f64'], VECTORS),
  ...rowsOf('sort', ['f32', 'f64', 'i32', 'i64'], VECTORS),
  ...rowsOf('argsort', ['f32'], [[1e6]]),
  ...rowsOf('topk', ['f32'], VECTORS),
  ...rowsOf('matmul', ['f32', 'f64'], [...SQUARES, ...SKINNY]),
  ...rowsOf(
    'matmul',
    ['f32'],
    [
      [2048, 2048],
      [64, 128, 128],
    ],
  ),
].map((row) => ({ ...row, id: `${row.name}.${row.dtype}.${nameOf(row.shape)}` }));

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** NumPy answers a line, JSON of { dtype, shapes, call, count }, with [seconds, seconds of processors] of each call. */
async function startNumpy() {
  const script = fileURLToPath(new URL('../peers/numpy_calls.py', import.meta.url));
  const child = spawn('python3', [script], { stdio: ['pipe', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (said = (said + text).slice(-1000)));
  child.on('error', (error) => (said = error.message));
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(said.trim().split('\n').at(-1) || 'python3 ended');
    return JSON.parse(value);
  };
  const { version } = await next();
  const ask = (request) => {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    return next();
  };
  return { version, ask, end: () => child.stdin.end() };
}

const ARRAYS = { f32: Float32Array, f64: Float64Array, i32: Int32Array, i64: BigInt64Array };

/** Random numbers: of floats from 0 to 1, of integers of all that i32 has. */
function randomNumbers(dtype, length) {
  const numbers = new ARRAYS[dtype](length);
  for (let at = 0; at < length; at++) {
    const number = Math.random();
    if (dtype.startsWith('f')) numbers[at] = number;
    else numbers[at] = dtype === 'i64' ? BigInt(Math.trunc((number - 0.5) * 2 ** 32)) : Math.trunc((number - 0.5) * 2 ** 32);
  }
  return numbers;
}

async function ours(device, call, operands, count) {
  const times = [];
  for (let n = 0; n < count; n++) {
    const before = process.cpuUsage();
    const start = performance.now();
    const result = call(...operands);
    await device.stream.record().done;
    const seconds = (performance.now() - start) / 1e3;
    if (!operands.includes(result)) result[Symbol.dispose]();
    const { user, system } = process.cpuUsage(before);
    times.push([seconds, (user + system) / 1e6]);
  }
  return times;
}

/** The seconds of one of `count` calls in a row. Each result goes as soon as it is made, on both sides. */
async function oursInARow(device, call, operands, count) {
  const start = performance.now();
  for (let n = 0; n < count; n++) {
    const result = call(...operands);
    if (!operands.includes(result)) result[Symbol.dispose]();
  }
  await device.stream.record().done;
  return (performance.now() - start) / 1e3 / count;
}

// Threads of the device set this themselves. NumPy inherits it.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
let numpy;
let absent;
try {
  numpy = await startNumpy();
} catch (error) {
  absent = error.message;
}
const { MILLRACE_OPENBLAS: library } = process.env;
delete process.env.MILLRACE_OPENBLAS;
if (library) process.env.MILLRACE_CPU_DEVICES ??= '2';
const device = await openDevice('cpu');
if (library) process.env.MILLRACE_OPENBLAS = library;
const other = library ? await openDevice('cpu:1') : undefined;
console.log(`${cpus()[0].model}, ${cpus().length} cores; Node ${process.versions.node}; NumPy ${numpy?.version ?? `absent: ${absent}`}`);
const loads = [loadavg()[0]];

const ms = (times, at) => 1e3 * median(times.map((one) => one[at]));
const table = {};
for (const { id, name, dtype, shape } of ROWS.filter((row) => wanted.some((begin) => row.id.startsWith(begin)))) {
  const [call, theirCall] = CALLS[name];
  const shapes = Array.isArray(shape[0]) ? shape : [shape, shape];
  const byLibrary = name === 'matmul' ? other : undefined;
  const [operands, otherOperands] = [device, byLibrary].map((on) =>
    shapes.map((one) =>
      on?.from(
        randomNumbers(
          dtype,
          one.reduce((a, b) => a * b, 1),
        ),
        { shape: one },
      ),
    ),
  );
  const request = { dtype, shapes, call: theirCall };
  // Builds the kernels, and says how many calls a round has.
  await ours(device, call, operands, 3);
  const [[first]] = await ours(device, call, operands, 1);
  const count = Math.max(LEAST_CALLS, Math.min(200, Math.round(ROUND_MS / 1e3 / first)));
  const inARow = Math.max(LEAST_CALLS, Math.min(MOST_IN_A_ROW, count));
  await numpy?.ask({ ...request, count: 2 });
  if (byLibrary !== undefined) await ours(byLibrary, call, otherOperands, 3);
  const [us, them, ratios, withLibrary, ourRows, rowRatios] = [[], [], [], [], [], []];
  for (let round = 0; round < rounds; round++) {
    const mine = await ours(device, call, operands, count);
    us.push(...mine);
    const rows = [];
    for (let n = 0; n < Math.max(1, Math.round(count / inARow)); n++) rows.push(await oursInARow(device, call, operands, inARow));
    ourRows.push(...rows);
    if (numpy === undefined) continue;
    const { times } = await numpy.ask({ ...request, count });
    them.push(...times);
    ratios.push([0, 1].map((at) => ms(mine, at) / ms(times, at)));
    // A call of NumPy is over when it returns: one after the other is in a row.
    rowRatios.push((1e3 * median(rows)) / ms(times, 0));
    if (byLibrary !== undefined) withLibrary.push(...(await ours(byLibrary, call, otherOperands, count)));
  }
  for (const one of [...operands, ...otherOperands]) one?.[Symbol.dispose]();
  const best = (times) => 1e3 * Math.min(...times.map(([seconds]) => seconds));
  const withNumpy = () => ({
    'NumPy (ms)': ms(them, 0).toFixed(3),
    'NumPy, best': best(them).toFixed(3),
    'time / NumPy': median(ratios.map(([elapsed]) => elapsed)).toFixed(2),
    'best / best': (best(us) / best(them)).toFixed(2),
    'in a row / NumPy': median(rowRatios).toFixed(2),
    'processor time / NumPy': median(ratios.map(([, used]) => used)).toFixed(2),
  });
  table[id] = {
    'median (ms)': ms(us, 0).toFixed(3),
    best: best(us).toFixed(3),
    'in a row (ms)': (1e3 * median(ourRows)).toFixed(3),
    ...(numpy === undefined ? { 'NumPy (ms)': 'absent' } : withNumpy()),
    ...(withLibrary.length > 0 && {
      'OpenBLAS (ms)': ms(withLibrary, 0).toFixed(3),
      'OpenBLAS, best': best(withLibrary).toFixed(3),
      'best OpenBLAS / best NumPy': (best(withLibrary) / best(them)).toFixed(2),
    }),
  };
  console.error(id, JSON.stringify(table[id]));
  loads.push(loadavg()[0]);
}
console.table(table);
console.log(`Load of the machine (both sides and all else, mean of a minute): ${Math.min(...loads)} to ${Math.max(...loads)}`);
numpy?.end();
await Promise.all([device.close(), other?.close()]);
