// The arguments of `stream.copyBatch`: checks every pair, as `stream.copy` does, and the pairs among each other. Nothing is submitted here.
// Thread: owner.
import { MAX_BATCH_COPIES } from '../../protocol/protocol.gen.js';
import { show } from '../base/arguments.js';
import { ArgumentError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-names.js';
import type { BatchedPlan } from '../copies/batch.js';
import { badCopy, type CopyPlan, type End } from '../copies/copy-plan.js';
import type { DeviceCore } from '../device/device-core.js';
import { type CopyOptions, planCopy } from './copy.js';

/** Options of `stream.copyBatch`. */
export interface CopyBatchOptions {
  /** The name of the batch in messages and in `device.inspect()`. */
  readonly label?: string;
}

/** Bytes that a pair reads or writes. */
interface Span {
  readonly pair: number;
  readonly isWrite: boolean;
  readonly start: number;
  readonly end: number;
}

/** Pairs that were read once, so that no getter among them runs after the arrays were checked. */
export interface GivenBatch {
  readonly pairs: readonly (readonly [dst: unknown, src: unknown])[];
  readonly label: string | undefined;
}

/** Throws ArgumentError for what is no array of pairs. */
export function readBatch(pairs: unknown, opts: CopyBatchOptions | undefined): GivenBatch {
  if (opts !== undefined) checkOptionNames(opts, ['label']);
  if (!Array.isArray(pairs)) throw badCopy('pairs', pairs, `The pairs of the batch (${show(pairs)}) are not an array of pairs [dst, src].`);
  if (pairs.length > MAX_BATCH_COPIES) {
    const message = `The batch has ${pairs.length} pairs, more than the limit (${MAX_BATCH_COPIES}): make several batches.`;
    throw badCopy('pairs', pairs.length, message, MAX_BATCH_COPIES);
  }
  const read: [unknown, unknown][] = [];
  for (let n = 0; n < pairs.length; n++) {
    const pair: unknown = pairs[n];
    if (!Array.isArray(pair) || pair.length !== 2)
      throw badCopy(`pairs[${n}]`, pair, `Pair ${n} of the batch (${show(pair)}) is not an array [dst, src].`);
    read.push([pair[0], pair[1]]);
  }
  return { pairs: read, label: opts?.label };
}

/** The arguments of `stream.copyBatch`. Pairs without elements are left out. */
export function planBatch(core: DeviceCore, { pairs, label }: GivenBatch): BatchedPlan {
  const opts = { label } as CopyOptions;
  const copies = pairs.map(([dst, src], n) => {
    try {
      const plan = planCopy(dst, src, opts);
      checkEnd(core, 'dst', dst, plan.dst);
      checkEnd(core, 'src', src, plan.src);
      return plan;
    } catch (error) {
      throw error instanceof ArgumentError ? ofPair(error, n) : error;
    }
  });
  checkApart(copies);
  const byteLength = copies.reduce((sum, copy) => sum + copy.byteLength, 0);
  return { copies: copies.filter((copy) => copy.byteLength > 0), byteLength, label };
}

/** A record copies contiguous memory of its own device. */
function checkEnd(core: DeviceCore, name: string, value: unknown, { region }: End): void {
  if (region === undefined) return;
  const { storage, strides } = region;
  if (strides !== undefined) throw badCopy(name, value, `The ${name} (${show(value)}) is not contiguous: use \`copy\` for it.`);
  if (storage.core === core) return;
  const message = `The ${name} (${show(value)}) is memory of device ${storage.core.name}, and the stream belongs to ${core.name}: use \`copy\` for it.`;
  throw badCopy(name, value, message, core.name);
}

function ofPair({ argument, value, limit, message }: ArgumentError, n: number): ArgumentError {
  return badCopy(`pairs[${n}].${argument}`, value, `Pair ${n} of the batch: ${message}`, limit);
}

/** Throws if a pair writes what another one reads or writes: devices make the copies of a batch in any order. */
function checkApart(copies: readonly CopyPlan[]): void {
  const spans = new Map<object, Span[]>();
  const note = (pair: number, isWrite: boolean, key: object, start: number, end: number): void => {
    if (start === end) return;
    const all = spans.get(key);
    const span = { pair, isWrite, start, end };
    if (all === undefined) spans.set(key, [span]);
    else all.push(span);
  };
  for (let pair = 0; pair < copies.length; pair++) {
    const { dst, src } = copies[pair] as CopyPlan;
    if (dst.region !== undefined) note(pair, true, dst.region.storage, dst.region.start, dst.region.end);
    else note(pair, true, dst.bytes.buffer, dst.bytes.byteOffset, dst.bytes.byteOffset + dst.bytes.byteLength);
    // The bytes of an ordinary source are taken by the call.
    if (src.region !== undefined) note(pair, false, src.region.storage, src.region.start, src.region.end);
  }
  for (const all of spans.values()) if (all.length > 1) checkSpans(all.toSorted((one, two) => one.start - two.start));
}

/** In the order of their starts: compares each one with the earlier ones that reach farthest. */
function checkSpans(spans: readonly Span[]): void {
  let [any, written]: (Span | undefined)[] = [];
  for (const span of spans) {
    const other = span.isWrite ? any : written;
    if (other !== undefined && other.end > span.start) {
      const [one, two] = [other, span].toSorted((a, b) => a.pair - b.pair) as [Span, Span];
      const bytes = Math.min(other.end, span.end) - span.start;
      const what = one.isWrite && two.isWrite ? 'both write' : `one reads and one writes`;
      const message = `Pairs ${one.pair} and ${two.pair} of the batch overlap: ${what} the same ${bytes} bytes, and the copies of a batch have no order. Make two batches.`;
      throw badCopy(`pairs[${two.pair}]`, two.pair, message);
    }
    if (any === undefined || span.end > any.end) any = span;
    if (span.isWrite && (written === undefined || span.end > written.end)) written = span;
  }
}
