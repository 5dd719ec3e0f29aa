// Running sums and products along an axis. On a CPU each thread scans a part of a row, from the result of the parts before it, which a scan of the
// parts' results gives. On a GPU each block scans a chunk of a row, tile by tile, from what a first kernel found of the chunks before it. No block
// waits for another, so the order of the additions is always the same.
import { refuseSurplus } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { type DType, DTYPES } from '../core/elements/dtype.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { Arguments } from './body.js';
import { castText, onlyArrays } from './fused.js';
import { isFloat, sumOf, type SumOf } from './promotion.js';
import type { Result, TypeOf } from './ready.js';
import { alongAxis, moved, type Rows } from './rows.js';
import { BLOCK, scanText, sumType, wrappingType } from './scan-text.js';
import { formsOf, type OpOptions, targetOf, type Target } from './target.js';

/** Options of scans. */
export interface ScanOptions<D extends DType = DType> extends OpOptions<D> {
  /** The axis to scan along, negative from the end. Default the last one; NumPy's default is the flat array. */
  readonly axis?: number;
}

/** Elements that a thread scans: long runs for a core. */
const CPU_PART = 4096;
/** Rows of so few elements have a thread each on a GPU, too. */
const GPU_PART = 64;
/** Elements of a thread in a tile. */
const MOST_ITEMS = 16;
/** The chunks of all rows: 64 blocks for each multiprocessor of the largest GPU, so that the last of them leave few without work. */
const MOST_CHUNKS = 8448;
/** CUDA's limit of blocks along y. */
const MOST_ROWS = 65535;

/** The sum of each element and those before it along an axis: `numpy.cumsum`. Types as of `sum`. Throws as every operation does. */
export function cumsum<A extends DeviceArray, const O extends ScanOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, SumOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('cumsum', arguments, 2);
  return scan('cumsum', '+', a, opts) as Result<O, SumOf<TypeOf<A>>>;
}

/** The product of each element and those before it along an axis: `numpy.cumprod`. Types as of `sum`. Throws as every operation does. */
export function cumprod<A extends DeviceArray, const O extends ScanOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, SumOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('cumprod', arguments, 2);
  return scan('cumprod', '*', a, opts) as Result<O, SumOf<TypeOf<A>>>;
}

function scan(name: string, operator: '+' | '*', a: DeviceArray, opts: ScanOptions | undefined): DeviceArray {
  onlyArrays(name, [a]);
  const target = targetOf(name, opts, [a], ['axis']);
  const dtype = target.typeOf(sumOf(a.dtype));
  return alongAxis(a, opts?.axis ?? -1, dtype, target, (from, to, rows) => {
    for (const form of formsOf(target)) {
      const submit = form === 'gpu' && rows.length > GPU_PART ? scanTiles : scanRows;
      submit(name, operator, from, to, rows, target);
    }
  });
}

function scanRows(name: string, operator: '+' | '*', from: DeviceArray, to: DeviceArray, { count, length }: Rows, target: Target): void {
  const register = REGISTER_TYPE[to.dtype];
  const type = sumType(to.dtype);
  const init = operator === '+' ? 0 : 1;
  const chunk = CPU_PART;
  const number = Math.ceil(length / chunk);
  const element = castText('x[row * length + at]', REGISTER_TYPE[from.dtype], type);
  const shape = { threads: [Math.min(count, MOST_ROWS), number] };
  const own = `for (let row = i; row < count; row += ${MOST_ROWS}) { const start = j * chunk; const end = start + min(chunk, length - start);`;
  using results = number > 1 ? target.temporary([count, number], type) : undefined;
  using ahead = number > 1 ? target.temporary([count, number], type) : undefined;
  if (results !== undefined && ahead !== undefined) {
    const args = new Arguments();
    args.array('x', from);
    args.array('results', results, 'output');
    args.numbers({ count, length, chunk, number });
    const body = `${own} let v = ${type}(${init}); for (let at = start; at < end; at++) v = v ${operator} ${element}; results[row * number + j] = v; }`;
    args.launch(target.recorder, name, `parts|${operator}`, shape, 'i, j', () => body);
    scanRows(name, operator, results, ahead, { count, length: number }, target);
  }
  const args = new Arguments();
  args.array('x', from);
  args.array('y', to, 'output');
  if (ahead !== undefined) args.array('ahead', ahead);
  args.numbers({ count, length, chunk, number });
  const before = ahead === undefined ? '' : 'if (j > 0) v = ahead[row * number + j - 1];';
  const body = `${own} let v = ${type}(${init}); ${before}
    for (let at = start; at < end; at++) { v = v ${operator} ${element}; y[row * length + at] = ${castText('v', type, register)}; } }`;
  args.launch(target.recorder, name, `scan|${operator}|${ahead !== undefined}`, shape, 'i, j', () => body);
}

function scanTiles(name: string, operator: '+' | '*', from: DeviceArray, to: DeviceArray, { count, length }: Rows, target: Target): void {
  const type = sumType(to.dtype);
  // C's conversions to a wider type are those of `astype`, which makes the others.
  const isWidened =
    REGISTER_TYPE[from.dtype] === type ||
    (type.endsWith('64') && type !== 'f64' && !isFloat(from.dtype)) ||
    (from.dtype !== 'bool' && (type === 'f64' || (type === 'f32' && DTYPES[from.dtype].byteSize <= 4)));
  using cast = isWidened ? undefined : target.temporary(from.shape, type);
  if (cast !== undefined) moved(cast, from, target);
  const x = cast ?? from;
  let items = 1;
  while (items < MOST_ITEMS && items * BLOCK < length) items *= 2;
  const tile = items * BLOCK;
  const chunk = Math.ceil(Math.ceil(length / tile) / Math.max(1, Math.floor(MOST_CHUNKS / count))) * tile;
  const chunks = Math.ceil(length / chunk);
  const grid = [chunks, Math.min(count, MOST_ROWS)] as const;
  const isDivided = chunks > 1;
  const key = `${operator}|${items}|${to.dtype}|${isDivided}`;
  const text = (): string => scanText({ operator, from: x.dtype, to: to.dtype, items, isDivided });
  const launch = (entry: 'scanChunks' | 'scanTiles', give: (args: Arguments) => void): void => {
    const args = new Arguments();
    args.array('x', x);
    give(args);
    args.numbers({ count, length, chunk });
    args.launchCuda(target.recorder, name, key, grid, BLOCK, entry, text);
  };
  using results = isDivided ? target.temporary([count, chunks], wrappingType(to.dtype)) : undefined;
  if (results !== undefined) launch('scanChunks', (args) => args.array('results', results, 'output'));
  launch('scanTiles', (args) => {
    args.array('y', to, 'output');
    if (results !== undefined) args.array('results', results);
  });
}
