// Discrete Fourier transforms of contiguous arrays along adjacent axes: which passes a length takes. Lengths of 2^a 3^b 5^c 7^d are split into
// factors that fit into a block; the others are convolved with a chirp (Bluestein), by transforms of such lengths.
import type { DeviceArray } from '../core/api/array.js';
import { lengthOf } from '../core/elements/shape.js';
import { LOW_ROOTS, MOST_POINTS, type Pass, radicesOf, type Reading, type RealType, submitPass, type Writing } from './fourier-passes.js';
import { tableOf, writeChirp, writeRoots } from './fourier-tables.js';
import { submitByLibrary } from './library-transforms.js';
import { halfOf, type Transform } from './transform.js';
import type { Target } from './target.js';

/**
 * Submits a transform of `x` to `y`, which share no memory. Complex numbers are pairs of elements.
 */
export function submitTransform(x: DeviceArray, y: DeviceArray, transform: Transform, target: Target): void {
  if (submitByLibrary(x, y, transform, target)) return;
  const { kind, isInverse, lengths, given, outer, inner, scale, type } = transform;
  const last = lengths.length - 1;
  // Halves are made first and completed last.
  const order = [...lengths.keys()];
  if (kind !== 'hermitian') order.reverse();
  const extents = [...given];
  let from = x;
  const owned: Disposable[] = [];
  try {
    for (const [turn, axis] of order.entries()) {
      const isEnd = turn === last;
      const length = lengths[axis]!;
      const own = axis === last ? kind : 'complex';
      const kept = own === 'real' ? halfOf(length) : length;
      const box: Box = { outer: outer * lengthOf(extents.slice(0, axis)), length, inner: lengthOf(extents.slice(axis + 1)) * inner };
      const reading: Reading = { kind: own, isSwapped: isInverse, given: extents[axis]!, length };
      const writing: Writing = {
        kind: own === 'hermitian' ? 'real' : 'complex',
        isSwappedAfter: isInverse,
        kept,
        ...(isEnd && scale !== 1 && { scale }),
      };
      extents[axis] = kept;
      const to = isEnd ? y : target.temporary([outer * lengthOf(extents) * inner, 2], type);
      if (!isEnd) owned.push(to);
      submitAxis(from, to, box, reading, writing, type, target);
      from = to;
    }
  } finally {
    for (const one of owned) one[Symbol.dispose]();
  }
}

interface Box {
  readonly outer: number;
  readonly length: number;
  readonly inner: number;
}

function submitAxis(x: DeviceArray, y: DeviceArray, box: Box, reading: Reading, writing: Writing, type: RealType, target: Target): void {
  if (radicesOf(box.length) !== undefined) submitSmooth(x, y, box, reading, writing, type, target);
  else submitChirped(x, y, box, reading, writing, type, target);
}

const plainReading = (length: number): Reading => ({ kind: 'complex', given: length, length });
const plainWriting = (length: number): Writing => ({ kind: 'complex', kept: length });

function submitSmooth(x: DeviceArray, y: DeviceArray, box: Box, reading: Reading, writing: Writing, type: RealType, target: Target): void {
  const { outer, length, inner } = box;
  const own: Disposable[] = [];
  const temporary = (): DeviceArray => {
    const array = target.temporary([outer * length * inner, 2], type);
    own.push(array);
    return array;
  };
  const run = (from: DeviceArray, to: DeviceArray, pass: Omit<Pass, 'outer' | 'inner'>): void => {
    const { points } = pass;
    const hasTable = (radicesOf(points)?.length ?? 0) > 1;
    const table = hasTable
      ? tableOf(`roots ${points}`, points, type, target, own, (array) => writeRoots(array, points, points, target))
      : undefined;
    submitPass(from, to, { ...pass, outer, inner }, table, type, target);
  };
  try {
    if (length <= MOST_POINTS[type]) {
      run(x, y, { points: length, middle: 1, from: [1, 0], to: [1, 0], reading, writing });
      return;
    }
    const second = factorOf(length, MOST_POINTS[type]);
    const first = length / second;
    const rootCount = LOW_ROOTS + Math.ceil(length / LOW_ROOTS);
    const roots = tableOf(`roots of ${length}`, rootCount, type, target, own, (array) => writeRoots(array, length, LOW_ROOTS, target));
    const between = temporary();
    if (first <= MOST_POINTS[type]) {
      const writes = plainWriting(length);
      run(x, between, { points: first, middle: second, from: [second, 1], to: [second, 1], reading, writing: writes });
    } else {
      // The pass that reads the operand as it is given makes no transforms yet.
      const plain = temporary();
      run(x, plain, { points: 1, middle: length, from: [1, 1], to: [1, 1], reading, writing: plainWriting(length) });
      const inside: Box = { outer, length: first, inner: inner * second };
      submitSmooth(plain, between, inside, plainReading(first), plainWriting(first), type, target);
    }
    run(between, y, { points: second, middle: first, from: [1, second], to: [first, 1], reading: plainReading(length), writing, roots });
  } finally {
    for (const one of own) one[Symbol.dispose]();
  }
}

/** The factor of a length that is nearest to its root, but at most `most`. */
function factorOf(length: number, most: number): number {
  const root = Math.sqrt(length);
  const isNearer = (a: number, b: number): boolean => Math.abs(Math.log(a / root)) < Math.abs(Math.log(b / root));
  let best = 1;
  for (let factor = 2; factor <= most; factor++) if (length % factor === 0 && isNearer(factor, best)) best = factor;
  return best;
}

/** The shortest length of few steps for a convolution of at least so many points. */
function roomFor(least: number): number {
  let length = 2 ** Math.ceil(Math.log2(least));
  for (const odd of [3, 5, 9]) {
    const other = odd * 2 ** Math.max(0, Math.ceil(Math.log2(least / odd)));
    if (other >= least && other < length) length = other;
  }
  return length;
}

function submitChirped(
  x: DeviceArray,
  y: DeviceArray,
  { outer, length, inner }: Box,
  reading: Reading,
  writing: Writing,
  type: RealType,
  target: Target,
): void {
  const room = roomFor(2 * length - 1);
  const own: Disposable[] = [];
  try {
    const chirp = tableOf(`chirp ${length}`, room, type, target, own, (array) => writeChirp(array, length, false, target));
    const spectrum = tableOf(`spectrum ${length}`, room, type, target, own, (array) => {
      using mirrored = target.temporary([room, 2], type);
      writeChirp(mirrored, length, true, target);
      const box: Box = { outer: 1, length: room, inner: 1 };
      submitSmooth(mirrored, array, box, plainReading(room), { ...plainWriting(room), scale: 1 / room }, type, target);
    });
    const box: Box = { outer, length: room, inner };
    const between = target.temporary([outer * room * inner, 2], type);
    own.push(between);
    submitSmooth(
      x,
      between,
      box,
      { ...reading, factor: chirp },
      { ...plainWriting(room), isSwappedAfter: true, factor: spectrum },
      type,
      target,
    );
    submitSmooth(between, y, box, plainReading(room), { ...writing, isSwapped: true, factor: chirp }, type, target);
  } finally {
    for (const one of own) one[Symbol.dispose]();
  }
}
