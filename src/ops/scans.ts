// Running sums and products along an axis. Each thread scans a part of a row; before that, the results of the parts before it are known.
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

/** Elements that a thread scans at least. */
const PART = 64;
/** Parts of a row. One thread scans their results. */
const MOST_PARTS = 1024;
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
  const dtype = target.dtype ?? sumOf(a.dtype);
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
  const parts = Math.min(MOST_PARTS, Math.ceil(length / PART));
  const chunk = Math.ceil(length / parts);
  const element = castText('x[row * length + at]', REGISTER_TYPE[from.dtype], type);
  const rowsOnce = `for (let row = i; row < count; row += ${MOST_ROWS})`;
  const shape = { threads: [Math.min(count, MOST_ROWS), parts] };
  const bounds = 'const start = j * chunk; const end = min(start + chunk, length);';
  using ahead = parts > 1 ? target.temporary([count, parts], type) : undefined;
  if (ahead !== undefined) {
    const each = new Arguments();
    each.array('x', from);
    each.array('parts', ahead, 'output');
    each.numbers({ count, length, chunk, number: parts });
    each.launch(
      target.recorder,
      name,
      `parts|${operator}`,
      shape,
      'i, j',
      () => `
      ${rowsOnce} { ${bounds} let v = ${type}(${init}); for (let at = start; at < end; at++) v = v ${operator} ${element}; parts[row * number + j] = v; }`,
    );
    const all = new Arguments();
    all.array('parts', ahead, 'inout');
    all.numbers({ count, number: parts });
    // Each part's result becomes that of the parts before it.
    all.launch(
      target.recorder,
      name,
      `ahead|${operator}`,
      { threads: count },
      'i',
      () => `
      let v = ${type}(${init}); for (let at = 0; at < number; at++) { const own = parts[i * number + at]; parts[i * number + at] = v; v = v ${operator} own; }`,
    );
  }
  const last = new Arguments();
  last.array('x', from);
  last.array('y', to, 'output');
  if (ahead !== undefined) last.array('parts', ahead);
  last.numbers({ count, length, chunk, number: parts });
  const before = ahead === undefined ? `${type}(${init})` : 'parts[row * number + j]';
  last.launch(
    target.recorder,
    name,
    `scan|${operator}|${ahead !== undefined}`,
    shape,
    'i, j',
    () => `
    ${rowsOnce} { ${bounds} let v = ${before}; for (let at = start; at < end; at++) { v = v ${operator} ${element}; y[row * length + at] = ${castText('v', type, register)}; } }`,
  );
}
