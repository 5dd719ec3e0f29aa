// Idioms of searching: bounds in sorted arrays, trees, hash tables.
import { f32, f64, i32, inout, input, output, u32, u64 } from 'millrace';
import { doubles, floats, ints, type TextCase } from './text-case.js';

const scattered = (i: number, below: number): number => ((i + 1) * 7919 * 7919) % below;

// ── bounds ──
const [SORTED, QUERIES] = [1000, 201];
const sorted = doubles(SORTED, (i) => Math.floor(i / 3) * 1.5 - 40);
const wanted = doubles(QUERIES, (i) => scattered(i, 600) - 60);
const bounds = Int32Array.from(
  [...wanted].flatMap((value) => [sorted.filter((v) => v < value).length, sorted.filter((v) => v <= value).length]),
);
const words = Uint32Array.from({ length: 2500 }, (_unused, i) => 3 * Math.floor(i / 2) + 7);
const wantedWords = Uint32Array.from({ length: 45 }, (_unused, i) => [0, 7, 8, 3754, 3755, 4e9][i] ?? scattered(i, 4000));

// ── a full tree of 255 nodes: keys in order, 8 levels ──
const [LEVELS, NODES] = [8, 255];
const treeKeys = new Int32Array(NODES);
let inserted = 0;
function fill(node: number): void {
  if (node >= NODES) return;
  fill(2 * node + 1);
  treeKeys[node] = 4 * inserted++ - 300;
  fill(2 * node + 2);
}
fill(0);
const depthOf = (node: number): number => Math.floor(Math.log2(node + 1));
const tree = BigUint64Array.from({ length: NODES }, (_unused, node) => {
  const isLeaf = depthOf(node) === LEVELS - 1;
  return (BigInt(isLeaf) << 48n) | (BigInt(depthOf(node)) << 32n) | BigInt.asUintN(32, BigInt(treeKeys[node]!));
});
const treeQueries = ints(150, (i) => scattered(i, 1100) - 320);

// ── hash tables ──
const EMPTY = 0xffff_ffff;
const CAPACITY = 256;
function murmur(key: number): number {
  let h = key ^ (key >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
const keys = Uint32Array.from({ length: 2000 }, (_unused, i) => 1000 + scattered(i, 131));
const counts = new Map<number, number>();
for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
const slots = [...counts].map(([key, count]) => (BigInt(count) << 32n) | BigInt(key));
const allSlots = BigUint64Array.from({ length: CAPACITY }, (_unused, i) => slots[i] ?? BigInt(EMPTY)).toSorted();

const tableKeys = new Uint32Array(CAPACITY).fill(EMPTY);
const tableValues = new Float32Array(CAPACITY);
const entries = new Map<number, number>();
for (let i = 0; i < 200; i++) {
  const key = Math.imul(i + 1, 0x9e3779b1) >>> 0;
  let at = murmur(key) % CAPACITY;
  while (tableKeys[at] !== EMPTY) at = (at + 1) % CAPACITY;
  tableKeys[at] = key;
  tableValues[at] = i / 4;
  entries.set(key, i / 4);
}
const queries = Uint32Array.from({ length: 300 }, (_unused, i) => Math.imul(i + 1, 0x9e3779b1) >>> 0);

const GROUPS = 90;
const rows = ints(2 * 3000, (i) => (i % 2 === 0 ? scattered(i, GROUPS) : (i % 23) - 11));
const sums = new Int32Array(GROUPS);
for (let i = 0; i < rows.length; i += 2) sums[rows[i]!]! += rows[i + 1]!;

export const SEARCHING_CASES: readonly TextCase[] = [
  {
    file: 'sorting/searches',
    kernel: 'search_sorted<double, 2>',
    params: { sorted: input(f64), n: i32, values: input(f64), found: output(i32), m: i32 },
    launch: { grid: 2, block: 64 },
    given: { sorted, n: SORTED, values: wanted, found: new Int32Array(2 * QUERIES), m: QUERIES },
    results: { found: bounds },
  },
  {
    file: 'sorting/searches',
    kernel: 'search_by_warps',
    params: { sorted: input(u32), n: i32, values: input(u32), found: output(i32), m: i32 },
    launch: { grid: 12, block: 128 },
    given: { sorted: words, n: words.length, values: wantedWords, found: new Int32Array(45), m: 45 },
    results: { found: ints(45, (i) => words.filter((v) => v < wantedWords[i]!).length) },
  },
  {
    file: 'sorting/searches',
    kernel: 'search_tree',
    params: { tree: input(u64), nodes: i32, values: input(i32), depths: output(i32), m: i32 },
    launch: { grid: 3, block: 64 },
    given: { tree, nodes: NODES, values: treeQueries, depths: new Int32Array(150), m: 150 },
    results: { depths: treeQueries.map((value) => (treeKeys.includes(value) ? depthOf(treeKeys.indexOf(value)) : -1)) },
  },
  {
    file: 'sorting/hash-table',
    kernel: 'look_up',
    params: { keys: input(u32), values: input(f32), capacity: u32, queries: input(u32), found: output(f32), n: i32 },
    launch: { grid: 3, block: 128 },
    given: { keys: tableKeys, values: tableValues, capacity: CAPACITY, queries, found: new Float32Array(300), n: 300 },
    results: { found: floats(300, (i) => entries.get(queries[i]!) ?? -1) },
  },
  {
    file: 'sorting/hash-table',
    kernel: 'sum_groups<64>',
    params: { rows: input(i32), n: i32, sums: inout(i32) },
    launch: { grid: 4, block: 96 },
    given: { rows, n: 3000, sums: new Int32Array(GROUPS) },
    results: { sums },
  },
];

/** The place of a key in the table depends on the order in which threads insert. */
export const UNORDERED_SEARCHING_CASES: readonly TextCase[] = [
  {
    file: 'sorting/hash-table',
    kernel: 'count_keys<Murmur>',
    params: { keys: input(u32), n: i32, slots: inout(u64), mask: u32, distinct: inout(i32) },
    launch: { grid: 5, block: 64 },
    given: {
      keys,
      n: keys.length,
      slots: new BigUint64Array(CAPACITY).fill(BigInt(EMPTY)),
      mask: CAPACITY - 1,
      distinct: new Int32Array(1),
    },
    results: { slots: allSlots, distinct: Int32Array.of(counts.size) },
  },
];
