// Running sums and products along an axis. Each thread scans a part of a row, from the result of the parts before it, which a scan of the parts'
// results gives.
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { Arguments } from './body.js';
import { arraysAmong, castText } from './fused.js';
import { sumOf, type SumOf } from './promotion.js';
import type { Result, TypeOf } from './ready.js';
import { alongAxis, type Rows } from './rows.js';
import { type OpOptions, targetOf, type Target } from './target.js';

/** Options of scans. */
export interface ScanOptions<D extends DType = DType> extends OpOptions<D> {
  /** The axis to scan along, negative from the end. Default the last one; NumPy's default is the flat array. */
  readonly axis?: number;
}

/** Elements that a thread scans: many threads for a GPU, long runs for a core. */
const GPU_PART = 64;
const CPU_PART = 4096;
/** CUDA's limit of blocks along y. */
const MOST_ROWS = 65535;

/** The sum of each element and those before it along an axis: `numpy.cumsum`. Types as of `sum`. Throws as every operation does. */
export function cumsum<A extends DeviceArray, const O extends ScanOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, SumOf<TypeOf<A>>> {
  return scan('cumsum', '+', '0', a, opts) as Result<O, SumOf<TypeOf<A>>>;
}

/** The product of each element and those before it along an axis: `numpy.cumprod`. Types as of `sum`. Throws as every operation does. */
export function cumprod<A extends DeviceArray, const O extends ScanOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, SumOf<TypeOf<A>>> {
  return scan('cumprod', '*', '1', a, opts) as Result<O, SumOf<TypeOf<A>>>;
}

function scan(name: string, operator: '+' | '*', init: '0' | '1', a: DeviceArray, opts: ScanOptions | undefined): DeviceArray {
  arraysAmong(name, [a]);
  const target = targetOf(name, opts, [a], ['axis']);
  const dtype = target.typeOf(sumOf(a.dtype));
  return alongAxis(a, opts?.axis ?? -1, dtype, target, (from, to, rows) => scanRows(name, operator, init, from, to, rows, target));
}

function scanRows(
  name: string,
  operator: string,
  init: string,
  from: DeviceArray,
  to: DeviceArray,
  { count, length }: Rows,
  target: Target,
): void {
  const register = REGISTER_TYPE[to.dtype];
  const type = register === 'bool' ? 'i64' : register;
  const chunk = target.recorder.device.info.backend === 'cpu' ? CPU_PART : GPU_PART;
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
    scanRows(name, operator, init, results, ahead, { count, length: number }, target);
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
