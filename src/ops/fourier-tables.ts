// What transforms of a length need beside their operands: roots of unity, and chirps. A device keeps them for later calls.
import { capturingStream } from '../core/api/active-capture.js';
import type { DeviceArray } from '../core/api/array.js';
import type { DeviceCore } from '../core/device/device-core.js';
import { DTYPES, i64 } from '../core/elements/dtype.js';
import { Arguments } from './body.js';
import { castText } from './fused.js';
import type { RealType } from './fourier-passes.js';
import type { Target } from './target.js';

/** Tables beyond these bytes of a device are made again for each call. */
const MOST_BYTES = 64 * 2 ** 20;

interface Kept {
  readonly array: DeviceArray;
  /** Whether it is written, so that streams without order of their own may read it. */
  isWritten: boolean;
}
interface Tables {
  readonly kept: Map<string, Kept>;
  bytes: number;
}
const tables: WeakMap<DeviceCore, Tables> = new WeakMap();

/**
 * A table of `length` complex numbers, which `write` submits at its first use on a device. In a capture, and on streams with explicit
 * ordering, a table that the device does not have yet is part of the operation. `own` takes those that the caller disposes.
 */
export function tableOf(
  key: string,
  length: number,
  type: RealType,
  target: Target,
  own: Disposable[],
  write: (array: DeviceArray) => void,
): DeviceArray {
  const { recorder } = target;
  const { core } = recorder;
  let all = tables.get(core);
  if (all === undefined) tables.set(core, (all = { kept: new Map(), bytes: 0 }));
  const { kept } = all;
  const name = `${key}|${type}`;
  const found = kept.get(name);
  const isTracked = recorder.ordering !== 'explicit';
  if (found !== undefined && (isTracked || found.isWritten)) return found.array;
  const bytes = 2 * length * DTYPES[type].byteSize;
  const array = target.temporary([length, 2], type);
  try {
    write(array);
  } catch (error) {
    array[Symbol.dispose]();
    throw error;
  }
  if (found !== undefined || !isTracked || capturingStream(core) !== undefined || all.bytes + bytes > MOST_BYTES) {
    own.push(array);
    return array;
  }
  const entry: Kept = { array, isWritten: false };
  const drop = (): void => {
    kept.delete(name);
    all.bytes -= bytes;
    array[Symbol.dispose]();
  };
  kept.set(name, entry);
  all.bytes += bytes;
  // A table that failed, for want of memory or after a failure of the stream, is made again.
  (array.view([0, 1]).read() as Promise<unknown>).then(() => (entry.isWritten = true), drop);
  return array;
}

/** An angle of `turns` / `of` of a full turn, exact to the last place of f64: the first quadrant's, turned. Declares `c` and `s`. */
const ANGLE = `
  const four = turns * 4n; const quadrant = four / of; const rest = four - quadrant * of;
  const isUpper = rest * 2n > of; const angle = 1.5707963267948966 * (f64(isUpper ? of - rest : rest) / f64(of));
  const near = Math.cos(angle); const far = Math.sin(angle);
  const p = isUpper ? far : near; const q = isUpper ? near : far;
  const c = quadrant === 0n ? p : quadrant === 1n ? -q : quadrant === 2n ? -p : q;
  const s = quadrant === 0n ? q : quadrant === 1n ? p : quadrant === 2n ? -q : -p;`;

/** Writes exp(-2 pi i k / of) for k = 0 to before `low`, then for every `low`-th k. */
export function writeRoots(array: DeviceArray, of: number, low: number, target: Target): void {
  const { length, args, store } = begun(array);
  args.give('of', i64, BigInt(of));
  args.numbers({ low });
  args.launch(
    target.recorder,
    'fft.roots',
    '',
    { threads: length },
    'i',
    () => `
    const number = i < low ? i64(i) : i64(i - low) * i64(low); const turns = number % of; ${ANGLE}
    y[2 * i] = ${store('c')}; y[2 * i + 1] = ${store('-s')};`,
  );
}

/**
 * Writes the chirp exp(-pi i k^2 / of), with zeros from k = `of` on; or, `isMirrored`, its conjugate for k = 0 and, on both ends, for the k from 1
 * to before `of`, which is what a convolution with chirps needs.
 */
export function writeChirp(array: DeviceArray, of: number, isMirrored: boolean, target: Target): void {
  const { length, args, store } = begun(array);
  args.give('of', i64, BigInt(2 * of));
  args.numbers({ length, half: of });
  args.launch(
    target.recorder,
    'fft.chirp',
    String(isMirrored),
    { threads: length },
    'i',
    () => `
    const near0 = ${isMirrored ? 'min(i, length - i)' : 'i'}; const number = i64(near0); const turns = (number * number) % of; ${ANGLE}
    const isIn = near0 < half;
    y[2 * i] = isIn ? ${store('c')} : ${store('f64(0)')}; y[2 * i + 1] = isIn ? ${store(isMirrored ? 's' : '-s')} : ${store('f64(0)')};`,
  );
}

function begun(array: DeviceArray): { readonly length: number; readonly args: Arguments; readonly store: (text: string) => string } {
  const args = new Arguments();
  args.array('y', array, 'output');
  return { length: array.length / 2, args, store: (text) => castText(text, 'f64', array.dtype as RealType) };
}
