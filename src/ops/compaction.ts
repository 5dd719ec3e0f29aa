// Results whose length depends on the elements. The host has to know it, so these operations are awaited.
import { badArgument, refuseSurplus } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { DeviceArray } from '../core/api/array.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import type { WaitOptions } from '../core/waits/wait.js';
import { Arguments } from './body.js';
import { castText, onlyArrays } from './fused.js';
import { isSameList } from './layout.js';
import { isReal, type TypeOf } from './ready.js';
import { copied } from './rows.js';
import { cumsum } from './scans.js';
import { sort } from './sorting.js';
import { type OpOptions, targetOf, type Target } from './target.js';

/** Options of operations that wait for the length of their result. */
export interface CompactOptions extends Pick<OpOptions, 'stream' | 'device'>, WaitOptions {}

const OPTIONS = ['stream', 'device', 'signal', 'timeoutMs'];

/**
 * The elements where `mask`, of the same shape, is other than 0, in flat order, as a vector: `a[mask]`, `numpy.compress`. Waits for their number.
 * Rejects with ArgumentError for another shape, and as every operation and `read` do.
 * @example using large = await compact(x, greater(x, 100));
 */
export async function compact<A extends DeviceArray>(a: A, mask: DeviceArray, opts: CompactOptions = {}): Promise<DeviceArray<TypeOf<A>>> {
  if (arguments.length > 3) refuseSurplus('compact', arguments, 3);
  onlyArrays('compact', [a, mask]);
  checkOptionNames(opts, OPTIONS);
  const { stream, device, ...wait } = opts;
  const target = targetOf('compact', { ...(stream && { stream }), ...(device !== undefined && { device }) }, [a, mask]);
  if (!isSameList(a.shape, mask.shape)) {
    throw badArgument('mask', mask, `The mask of compact (${mask.label}) has not the shape of the array (${a.label}).`, a.shape);
  }
  const place = { stream: target.recorder };
  using flat = copied(a, target);
  using flags = copied(mask, target);
  return (await chosen(
    flat.reshape([a.length]),
    flags.reshape([a.length]),
    castText('flags[i]', REGISTER_TYPE[mask.dtype], 'bool'),
    'mask',
    place,
    wait,
    target,
  )) as DeviceArray<TypeOf<A>>;
}

/**
 * The different elements, sorted, NaN once and last: `numpy.unique`. Waits for their number. Rejects as every operation and `read` do.
 */
export async function unique<A extends DeviceArray>(a: A, opts: CompactOptions = {}): Promise<DeviceArray<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('unique', arguments, 2);
  onlyArrays('unique', [a]);
  checkOptionNames(opts, OPTIONS);
  const { stream, device, ...wait } = opts;
  const target = targetOf('unique', { ...(stream && { stream }), ...(device !== undefined && { device }) }, [a]);
  const place = { stream: target.recorder };
  using flat = copied(a, target);
  using sorted: DeviceArray = sort(flat.reshape([a.length]), place);
  const differs = isReal(REGISTER_TYPE[a.dtype])
    ? 'i === 0 || (x[i] !== x[i - 1] && (x[i] === x[i] || x[i - 1] === x[i - 1]))'
    : 'i === 0 || x[i] !== x[i - 1]';
  return (await chosen(sorted, sorted, differs, 'unique', place, wait, target)) as DeviceArray<TypeOf<A>>;
}

/** The elements of `x` for which the text `test` is true; it may name `flags[i]`. */
async function chosen(
  x: DeviceArray,
  flags: DeviceArray,
  test: string,
  key: string,
  place: OpOptions,
  wait: WaitOptions,
  target: Target,
): Promise<DeviceArray> {
  if (x.length === 0) return target.take([0], x.dtype);
  using marks = target.temporary([x.length], 'i32');
  const mark = new Arguments();
  mark.array('x', x);
  mark.array('flags', flags);
  mark.array('marks', marks, 'output');
  mark.launch(target.recorder, 'compact', `marks|${key}`, { threads: x.length }, 'i', () => `marks[i] = ${test} ? 1 : 0;`);
  using ends: DeviceArray = cumsum(marks, { ...place, dtype: 'i32' });
  const count = (await ends.subarray(x.length - 1).read(wait))[0] as number;
  const result = target.take([count], x.dtype);
  if (count === 0) return result;
  try {
    const move = new Arguments();
    move.array('x', x);
    move.array('marks', marks);
    move.array('ends', ends);
    move.array('y', result, 'output');
    move.launch(target.recorder, 'compact', 'move', { threads: x.length }, 'i', () => 'if (marks[i] !== 0) y[ends[i] - 1] = x[i];');
  } catch (error) {
    target.giveBack(result);
    throw error;
  }
  return result;
}
