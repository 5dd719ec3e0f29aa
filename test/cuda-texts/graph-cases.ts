// Idioms of algorithms on graphs: searches by levels, ranks, shortest paths.
import { f32, f64, i32, inout, input, output, struct, u32, u64 } from 'millrace';
import { doubles, ints, type TextCase } from './text-case.js';

// A graph whose nodes have 0 to 11 outgoing edges.
const NODES = 300;
const degrees = ints(NODES, (node) => (node * node + 3) % 12);
const offsets = ints(NODES + 1, (node) => degrees.subarray(0, node).reduce((sum, degree) => sum + degree, 0));
const EDGES = offsets[NODES]!;
const targets = ints(EDGES, (edge) => (edge * 7919 + (edge >> 2) * 31) % NODES);
const edgesOf = (node: number): Int32Array => targets.subarray(offsets[node], offsets[node + 1]);

// ── breadth first: 2 levels are known ──
const DEPTH = 3;
const levels = new Int32Array(NODES).fill(-1);
const byLevel: number[][] = [[1]];
levels[1] = 0;
for (let depth = 1; depth <= DEPTH; depth++) {
  const next: number[] = [];
  for (const node of byLevel[depth - 1]!)
    for (const to of edgesOf(node))
      if (levels[to] === -1) {
        levels[to] = depth;
        next.push(to);
      }
  byLevel.push(next);
}
const frontier = Int32Array.from(byLevel[DEPTH - 1]!);
const reached = byLevel[DEPTH]!.length;
const before = levels.map((level) => (level === DEPTH ? -1 : level));
const listed = new Int32Array(NODES);
listed.set(byLevel[DEPTH]!);
const csr = struct({ offsets: input(i32), targets: input(i32), nodes: i32 });
const topDown = {
  file: 'graphs/bfs-frontier',
  kernel: 'bfs_top_down',
  params: { graph: csr, frontier: input(i32), frontier_size: i32, levels: inout(i32), next: inout(i32), next_size: inout(i32), depth: i32 },
  launch: { grid: 2, block: 32 },
  given: {
    graph: { offsets, targets, nodes: NODES },
    frontier,
    frontier_size: frontier.length,
    levels: before,
    next: new Int32Array(NODES),
    next_size: new Int32Array(1),
    depth: DEPTH,
  },
} as const;

// The incoming edges: a node joins when one of the edges comes from the frontier.
const incoming = Array.from({ length: NODES }, (): number[] => []);
for (let node = 0; node < NODES; node++) for (const to of edgesOf(node)) incoming[to]!.push(node);
const inOffsets = ints(NODES + 1, (node) => incoming.slice(0, node).reduce((sum, list) => sum + list.length, 0));
const inSources = Int32Array.from(incoming.flat());
const WORDS = Math.ceil(NODES / 32);
const bitsOf = (depth: number): Uint32Array =>
  Uint32Array.from({ length: WORDS }, (_unused, word) =>
    Array.from({ length: 32 }, (_bit, bit) => (levels[32 * word + bit] === depth ? 2 ** bit : 0)).reduce((a, b) => a + b),
  );

// ── ranks ──
const ranks = doubles(NODES, (node) => (1 + (node % 7)) / (4 * NODES));
const [DAMPING, TELEPORT] = [0.85, 0.15 / NODES];
const ranked = ranks.map(
  (_unused, node) => DAMPING * incoming[node]!.reduce((sum, from) => sum + ranks[from]! / degrees[from]!, 0) + TELEPORT,
);
const moved = Math.max(...ranked.map((rank, node) => Math.abs(rank - ranks[node]!)));
const total = ranked.reduce((a, b) => a + b);
const pullGraph = struct({ first: input(i32), source: input(i32), out_degree: input(i32), nodes: i32 });
const pulled = { graph: { first: inOffsets, source: inSources, out_degree: degrees, nodes: NODES }, damping: DAMPING, teleport: TELEPORT };

// ── shortest paths from 3 sources; of equal ones, that over the predecessor with the least number ──
const SOURCES = Int32Array.of(0, 17, 18);
const arcs = Uint32Array.from([...targets].flatMap((to, edge) => [to, 1 + ((edge * 13) % 29)]));
const UNREACHED = 2n ** 64n - 1n;
const paths = BigUint64Array.from(
  [...SOURCES].flatMap((source) => {
    const found = Array.from({ length: NODES }, () => UNREACHED);
    found[source] = BigInt(source);
    for (let isDone = false; !isDone; ) {
      isDone = true;
      for (let from = 0; from < NODES; from++) {
        if (found[from] === UNREACHED) continue;
        for (let edge = offsets[from]!; edge < offsets[from + 1]!; edge++) {
          const offer = (((found[from]! >> 32n) + BigInt(arcs[2 * edge + 1]!)) << 32n) | BigInt(from);
          if (offer >= found[arcs[2 * edge]!]!) continue;
          found[arcs[2 * edge]!] = offer;
          isDone = false;
        }
      }
    }
    return found;
  }),
);

export const GRAPH_CASES: readonly TextCase[] = [
  { ...topDown, results: { levels, next_size: Int32Array.of(reached) } },
  {
    file: 'graphs/bfs-frontier',
    kernel: 'bfs_bottom_up',
    params: { graph: csr, frontier: input(u32), next: output(u32), levels: inout(i32), depth: i32, found: inout(u32) },
    launch: { grid: 5, block: 64 },
    given: {
      graph: { offsets: inOffsets, targets: inSources, nodes: NODES },
      frontier: bitsOf(DEPTH - 1),
      next: new Uint32Array(WORDS),
      levels: before,
      depth: DEPTH,
      found: new Uint32Array(1),
    },
    results: { next: bitsOf(DEPTH), levels, found: Uint32Array.of(reached) },
  },
  {
    file: 'graphs/pagerank-pull',
    kernel: 'pagerank_pull<float, 64>',
    params: { graph: pullGraph, rank: input(f32), next: output(f32), damping: f32, teleport: f32, change: inout(f32), total: inout(f32) },
    launch: { grid: Math.ceil(NODES / 8), block: 64 },
    given: {
      ...pulled,
      rank: Float32Array.from(ranks),
      next: new Float32Array(NODES),
      change: new Float32Array(1),
      total: new Float32Array(1),
    },
    results: { next: Float32Array.from(ranked), change: Float32Array.of(moved), total: Float32Array.of(total) },
    // Ranks are far below 1, where the tolerance is absolute; the total is a sum of 300 of them.
    tolerance: 1e-6,
  },
  {
    file: 'graphs/pagerank-pull',
    kernel: 'pagerank_pull<double, 128>',
    params: { graph: pullGraph, rank: input(f64), next: output(f64), damping: f64, teleport: f64, change: inout(f64), total: inout(f64) },
    launch: { grid: Math.ceil(NODES / 16), block: 128 },
    given: { ...pulled, rank: ranks, next: new Float64Array(NODES), change: new Float64Array(1), total: new Float64Array(1) },
    results: { next: ranked, change: Float64Array.of(moved), total: Float64Array.of(total) },
    tolerance: 1e-14,
  },
  {
    file: 'graphs/sssp-worklist',
    kernel: 'sssp',
    params: {
      g: struct({ row: input(i32), arc: input(u32), nodes: i32 }),
      sources: input(i32),
      all_labels: inout(u64),
      finished: inout(i32),
    },
    launch: { grid: SOURCES.length, block: 64, sharedBytes: 4 * (2 * NODES + WORDS) },
    given: {
      g: { row: offsets, arc: arcs, nodes: NODES },
      sources: SOURCES,
      all_labels: new BigUint64Array(paths.length),
      finished: new Int32Array(1),
    },
    results: { all_labels: paths, finished: Int32Array.of(SOURCES.length) },
  },
];

/** The order in the queue is not fixed. */
export const UNORDERED_GRAPH_CASES: readonly TextCase[] = [{ ...topDown, results: { next: listed } }];
