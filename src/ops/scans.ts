// Running sums and products along an axis. On a CPU each thread scans a part of a row, from the result of the parts before it, which a scan of the
// parts' results gives. On a GPU each block scans a chunk of a row, tile by tile, from what a first kernel found of the chunks before it. No block
// waits for another, so the order of the additions is always the same.
import { refuseSurplus } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import type { DType } from '../core/elements/dtype.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { Arguments } from './body.js';
import { castText, onlyArrays } from './fused.js';
import { sumOf, type SumOf } from './promotion.js';
import type { Result, TypeOf } from './ready.js';
import { alongAxis, type Rows } from './rows.js';
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
/** Threads of a block that scans a chunk, and how many elements each has of a tile at most. */
const BLOCK = 256;
const MOST_ITEMS = 16;
/** The chunks of all rows: 20 blocks for each multiprocessor of the largest GPU, so that the last of them leave few without work. */
const MOST_CHUNKS = 2640;
/** CUDA's limit of blocks along y. */
const MOST_ROWS = 65535;

/** The sum of each element and those before it along an axis: `numpy.cumsum`. Types as of `sum`. Throws as every operation does. */
export function cumsum<A extends DeviceArray, const O extends ScanOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, SumOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('cumsum', arguments, 2);
  return scan('cumsum', '+', '0', a, opts) as Result<O, SumOf<TypeOf<A>>>;
}

/** The product of each element and those before it along an axis: `numpy.cumprod`. Types as of `sum`. Throws as every operation does. */
export function cumprod<A extends DeviceArray, const O extends ScanOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, SumOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('cumprod', arguments, 2);
  return scan('cumprod', '*', '1', a, opts) as Result<O, SumOf<TypeOf<A>>>;
}

function scan(name: string, operator: '+' | '*', init: '0' | '1', a: DeviceArray, opts: ScanOptions | undefined): DeviceArray {
  onlyArrays(name, [a]);
  const target = targetOf(name, opts, [a], ['axis']);
  const dtype = target.typeOf(sumOf(a.dtype));
  return alongAxis(a, opts?.axis ?? -1, dtype, target, (from, to, rows) => {
    for (const form of formsOf(target)) {
      const submit = form === 'gpu' && rows.length > GPU_PART ? scanTiles : scanRows;
      submit(name, operator, init, from, to, rows, target);
    }
  });
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

function scanTiles(
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
  let items = 1;
  while (items < MOST_ITEMS && items * BLOCK < length) items *= 2;
  const tile = items * BLOCK;
  const chunk = Math.ceil(Math.ceil(length / tile) / Math.max(1, Math.floor(MOST_CHUNKS / count))) * tile;
  const chunks = Math.ceil(length / chunk);
  const shape = { grid: [chunks, Math.min(count, MOST_ROWS)], block: BLOCK } as const;
  const thread = 'threadIdx, blockIdx, gridDim, shared, syncthreads, syncwarp';
  const first = `${type}(${init})`;
  const element = (at: string): string => `${at} < end ? ${castText(`x[base + ${at}]`, REGISTER_TYPE[from.dtype], type)} : ${first}`;
  const head = `
    const t = threadIdx.x; const lane = t % 32; const warp = t >> 5; const part = blockIdx.x;
    const start = part * chunk; const end = start + min(chunk, length - start);`;
  const each = `for (let n = 0; n < ${items}; n++)`;
  using results = chunks > 1 ? target.temporary([count, chunks], type) : undefined;
  if (results !== undefined) {
    const args = new Arguments();
    args.array('x', from);
    args.array('results', results, 'output');
    args.numbers({ count, length, chunk });
    // Each thread folds the elements of its place in each tile: first those of a tile, so that its loads do not wait for each other.
    const body = (): string => `
      const parts = shared('${type}', ${BLOCK}); ${head}
      for (let row = blockIdx.y; row < count; row += gridDim.y) {
        const base = row * length; let v = ${first};
        for (let tile = start; tile < end; tile += ${tile}) {
          let own = ${first};
          ${each} { const at = tile + n * ${BLOCK} + t; const a = ${element('at')}; own = own ${operator} a; }
          v = v ${operator} own;
        }
        parts[t] = v;
        syncthreads();
        for (let half = ${BLOCK / 2}; half > 0; half = half >> 1) {
          if (t < half) parts[t] = parts[t] ${operator} parts[t + half];
          syncthreads();
        }
        if (t === 0) results[row * gridDim.x + part] = parts[0];
        syncthreads();
      }`;
    args.launch(target.recorder, name, `chunks|${operator}|${items}`, shape, thread, body);
  }
  const args = new Arguments();
  args.array('x', from);
  args.array('y', to, 'output');
  if (results !== undefined) args.array('results', results);
  args.numbers({ count, length, chunk });
  const ahead = `
        for (let one = t; one < part; one += ${BLOCK}) v = v ${operator} results[row * gridDim.x + one];
        sums[t] = v;
        syncthreads();
        for (let half = ${BLOCK / 2}; half > 0; half = half >> 1) {
          if (t < half) sums[t] = sums[t] ${operator} sums[t + half];
          syncthreads();
        }
        carry = sums[0];
        syncthreads();`;
  // Elements are loaded and stored side by side, and each thread scans neighbours: places are spread, so that the threads use different banks.
  const body = (): string => `
    const own = shared('${type}', ${tile + BLOCK}); const sums = shared('${type}', ${BLOCK}); ${head}
    for (let row = blockIdx.y; row < count; row += gridDim.y) {
      const base = row * length; let carry = ${first}; let v = ${first};
      ${results === undefined ? '' : ahead}
      for (let tile = start; tile < end; tile += ${tile}) {
        ${each} { const p = n * ${BLOCK} + t; const at = tile + p; own[p + idiv(p, ${items})] = ${element('at')}; }
        syncthreads();
        const place = t * ${items + 1};
        v = own[place];
        for (let n = 1; n < ${items}; n++) v = v ${operator} own[place + n];
        sums[t] = v;
        syncwarp();
        for (let step = 1; step < 32; step = step * 2) {
          const other = lane >= step ? sums[t - step] : ${first};
          syncwarp();
          if (lane >= step) { v = other ${operator} v; sums[t] = v; }
          syncwarp();
        }
        syncthreads();
        v = carry;
        for (let one = 0; one < ${BLOCK / 32}; one++) { const sum = sums[one * 32 + 31]; if (one < warp) v = v ${operator} sum; carry = carry ${operator} sum; }
        if (lane > 0) v = v ${operator} sums[t - 1];
        ${each} { v = v ${operator} own[place + n]; own[place + n] = v; }
        syncthreads();
        ${each} { const p = n * ${BLOCK} + t; const at = tile + p; const w = own[p + idiv(p, ${items})]; if (at < end) y[base + at] = ${castText('w', type, register)}; }
        syncthreads();
      }
    }`;
  args.launch(target.recorder, name, `tiles|${operator}|${items}|${chunks > 1}`, shape, thread, body);
}
