// Idioms of sorting: digits, networks, merges, compaction, histograms.
import { type CudaParams, f32, i32, i64, inout, input, output, struct, u32, u8 } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const scattered = (i: number, below: number): number => ((i + 1) * 7919 * 7919) % below;

// ── tiles of 512 keys, many of them equal ──
const TILE = 512;
type Keys = Float32Array | BigInt64Array | Uint32Array;
const params = { order: output(i32), first_bit: i32, last_bit: i32 };
function tiles<T extends Keys>(
  kernel: string,
  list: CudaParams,
  keys: T,
  [first, last]: readonly [number, number],
  of: (key: number) => number,
): TextCase {
  const byKey = (a: number, b: number): number => of(Number(keys[a])) - of(Number(keys[b])) || a - b;
  const sources = Array.from({ length: keys.length / TILE }, (_unused, tile) =>
    Array.from({ length: TILE }, (_key, i) => TILE * tile + i).toSorted(byKey),
  ).flat();
  const sorted = keys.slice();
  for (const [i, from] of sources.entries()) sorted[i] = keys[from]!;
  return {
    file: 'sorting/radix-tiles',
    kernel,
    params: { ...list, ...params },
    launch: { grid: keys.length / TILE, block: 128 },
    given: { keys_in: keys, keys_out: keys.slice(), order: new Int32Array(keys.length), first_bit: first, last_bit: last },
    results: { keys_out: sorted, order: Int32Array.from(sources, (from) => from % TILE) },
  };
}

// ── lists of 64 items with different keys ──
const [LENGTH, LISTS] = [64, 3];
const itemKeys = Uint32Array.from({ length: LENGTH * LISTS }, (_unused, i) => Math.imul(i + 1, 0x9e3779b1) >>> 0);
const itemValues = itemKeys.map((_unused, i) => i);
function listsInOrder(isDescending: boolean): { keys: Uint32Array; values: Uint32Array } {
  const order = [...itemValues].toSorted((a, b) => {
    const byList = Math.floor(a / LENGTH) - Math.floor(b / LENGTH);
    return byList || (isDescending ? itemKeys[b]! - itemKeys[a]! : itemKeys[a]! - itemKeys[b]!);
  });
  return { keys: Uint32Array.from(order, (at) => itemKeys[at]!), values: Uint32Array.from(order) };
}
function listsCase(isDescending: boolean): TextCase {
  return {
    file: 'sorting/odd-even-merge',
    kernel: 'sort_lists',
    params: { keys: inout(u32), values: inout(u32), n: u32, compare: struct({ is_descending: u32 }) },
    launch: { grid: LISTS, block: LENGTH, sharedBytes: 8 * LENGTH },
    given: { keys: itemKeys, values: itemValues, n: LENGTH, compare: { is_descending: Number(isDescending) } },
    results: listsInOrder(isDescending),
  };
}
// The comparators of the last merge that are 8 wires apart.
const [WIRES, HALF, REACH] = [256, 128, 8];
const wires = Uint32Array.from({ length: 2 * WIRES }, (_unused, i) => (i % 2 === 0 ? scattered(i, 1021) : i));
const compared = wires.slice();
for (let i = 0; i + REACH < WIRES; i++) {
  if (i < REACH || (i - REACH) % (2 * REACH) >= REACH || compared[2 * i]! <= compared[2 * (i + REACH)]!) continue;
  for (const k of [0, 1]) {
    const at = 2 * i + k;
    [compared[at], compared[at + 2 * REACH]] = [compared[at + 2 * REACH]!, compared[at]!];
  }
}

// ── records: a key, and where it came from ──
function merged(kernel: string, isDescending: boolean, lengths: readonly [number, number]): TextCase {
  const order = (keys: number[]): number[] => keys.toSorted((x, y) => (isDescending ? y - x : x - y));
  const [a, b] = lengths.map((length, list) => order(Array.from({ length }, (_unused, i) => scattered(i + 31 * list, 97) - 40)));
  const records = [...a!.map((key, i) => [key, i]), ...b!.map((key, i) => [key, 1000 + i])];
  const sorted = records.toSorted(([x], [y]) => (isDescending ? y! - x! : x! - y!));
  const bytes = (list: readonly (readonly number[])[]): Uint8Array => new Uint8Array(Int32Array.from(list.flat()).buffer);
  return {
    file: 'sorting/merge-path',
    kernel,
    params: { a: input(u8), a_count: i32, b: input(u8), b_count: i32, out: output(u8) },
    launch: { grid: Math.ceil(records.length / 160), block: 32 },
    given: {
      a: bytes(records.slice(0, lengths[0])),
      a_count: lengths[0],
      b: bytes(records.slice(lengths[0])),
      b_count: lengths[1],
      out: new Uint8Array(8 * records.length),
    },
    results: { out: bytes(sorted) },
  };
}

// ── segments with a filter each: its kind and its limit ──
const numbers = ints(1000, (i) => scattered(i, 211) - 60);
const segments = Int32Array.of(0, 210, 211, 500, 1000);
const FILTERS: readonly (readonly [kind: number, limit: number, keep: (v: number) => boolean])[] = [
  [0, 25, (v) => v > 25],
  [3, 0, () => true],
  [2, 5, (v) => (v & 5) === 5],
  [1, 3, (v) => v % 3 === 0],
];
const filtered = new Int32Array(numbers.length);
const kept = ints(FILTERS.length, (at) => {
  const list = numbers.subarray(segments[at], segments[at + 1]).filter(FILTERS[at]![2]);
  filtered.set(list, segments[at]);
  return list.length;
});
const sevens = numbers.filter((v) => v % 7 === 0);
const padded = (values: Int32Array): Int32Array => {
  const all = new Int32Array(numbers.length);
  all.set(values);
  return all;
};
const repeated = ints(numbers.length, (i) => Math.floor(Math.sqrt(i)) % 5);
const starts = [...repeated.keys()].filter((i) => i === 0 || repeated[i] !== repeated[i - 1]);

// ── bytes below 32, and pixels ──
const BYTES = 30_000;
const small = Uint32Array.from({ length: BYTES / 4 }, (_unused, i) => {
  const at = (k: number): number => scattered(4 * i + k, 1009) & 31;
  return at(0) | (at(1) << 8) | (at(2) << 16) | (at(3) << 24);
});
const smallBytes = new Uint8Array(small.buffer);
const PER_BLOCK = 64 * 240;
const partial = new Uint32Array(32 * Math.ceil(BYTES / PER_BLOCK));
for (const [i, byte] of smallBytes.entries()) partial[32 * Math.floor(i / PER_BLOCK) + byte]!++;
const pixels = Uint8Array.from({ length: 4 * 700 }, (_unused, i) => scattered(i >> (i % 4), 256));
const channels = new Uint32Array(4 * 256);
for (const [i, value] of pixels.entries()) channels[256 * (i % 4) + value]!++;

export const SORTING_CASES: readonly TextCase[] = [
  tiles(
    'radix_tiles<float, 128, 4>',
    { keys_in: input(f32), keys_out: output(f32) },
    floats(2 * TILE, (i) => scattered(i, 201) / 8 - 12),
    [0, 32],
    (key) => key,
  ),
  tiles(
    'radix_tiles<int64_t, 128, 4>',
    { keys_in: input(i64), keys_out: output(i64) },
    BigInt64Array.from({ length: TILE }, (_unused, i) => BigInt(scattered(i, 401) - 200) * 2n ** 33n),
    [0, 64],
    (key) => key,
  ),
  tiles(
    'radix_tiles<uint32_t, 128, 4>',
    { keys_in: input(u32), keys_out: output(u32) },
    Uint32Array.from({ length: TILE }, (_unused, i) => Math.imul(i + 1, 0x9e3779b1) >>> 0),
    [8, 16],
    (key) => (key >>> 8) & 255,
  ),
  listsCase(false),
  listsCase(true),
  {
    file: 'sorting/odd-even-merge',
    kernel: 'merge_step',
    params: { items: inout(u8), half: u32, reach: u32, compare: struct({ is_descending: u32 }) },
    launch: { grid: 4, block: 64 },
    given: { items: new Uint8Array(wires.buffer), half: HALF, reach: REACH, compare: { is_descending: 0 } },
    results: { items: new Uint8Array(compared.buffer) },
  },
  merged('merge_lists<Record, 32, 5>', false, [333, 210]),
  merged('merge_lists<Record, 32, 5, Greater>', true, [17, 480]),
  {
    file: 'sorting/filter-by-pointers',
    kernel: 'filter_segments',
    params: { in: input(i32), segments: input(i32), out: output(i32), counts: output(i32), filters: input(u8) },
    launch: { grid: FILTERS.length, block: 96 },
    given: {
      in: numbers,
      segments,
      out: new Int32Array(numbers.length),
      counts: new Int32Array(FILTERS.length),
      filters: new Uint8Array(Int32Array.from(FILTERS.flatMap(([kind, limit]) => [kind, limit])).buffer),
    },
    results: { out: filtered, counts: kept },
  },
  {
    file: 'sorting/filter-by-pointers',
    kernel: 'filter_with<is_multiple, 64>',
    params: { in: input(i32), n: i32, limit: i32, out: output(i32), count: output(i32) },
    launch: { grid: 1, block: 64 },
    given: { in: numbers, n: numbers.length, limit: 7, out: new Int32Array(numbers.length), count: new Int32Array(1) },
    results: { out: padded(sevens), count: Int32Array.of(sevens.length) },
  },
  {
    file: 'sorting/filter-by-pointers',
    kernel: 'encode_runs',
    params: { in: input(i32), n: i32, values: output(i32), lengths: output(i32), runs: output(i32) },
    launch: { grid: 1, block: 128 },
    given: {
      in: repeated,
      n: repeated.length,
      values: new Int32Array(repeated.length),
      lengths: new Int32Array(repeated.length),
      runs: new Int32Array(1),
    },
    results: {
      values: padded(Int32Array.from(starts, (at) => repeated[at]!)),
      lengths: padded(Int32Array.from(starts, (at, run) => (starts[run + 1] ?? repeated.length) - at)),
      runs: Int32Array.of(starts.length),
    },
  },
  {
    file: 'sorting/histogram-packed',
    kernel: 'histogram_private',
    params: { data: input(u32), count: u32, partial: output(u32) },
    launch: { grid: partial.length / 32, block: 64 },
    given: { data: small, count: BYTES / 16, partial: new Uint32Array(partial.length) },
    results: { partial },
  },
  {
    file: 'sorting/histogram-packed',
    kernel: 'merge_partial<64>',
    params: { partial: input(u32), count: u32, histogram: output(u32) },
    launch: { grid: 32, block: 64 },
    given: { partial, count: partial.length / 32, histogram: new Uint32Array(32) },
    results: { histogram: Uint32Array.from({ length: 32 }, (_unused, bin) => smallBytes.filter((byte) => byte === bin).length) },
  },
  {
    file: 'sorting/histogram-packed',
    kernel: 'histogram_channels',
    params: { pixels: input(u8), n: i32, histograms: inout(u32) },
    launch: { grid: 3, block: 96, sharedBytes: 4096 },
    given: { pixels, n: 700, histograms: new Uint32Array(1024) },
    results: { histograms: channels },
  },
];
