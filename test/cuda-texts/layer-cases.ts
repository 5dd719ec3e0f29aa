// More idioms of machine learning: positions, selection, numbers of few bits, dropout.
import { bool, f32, f64, i32, inout, input, optional, output, struct, u32, u64, u8 } from 'millrace';
import { floats, ints, type TextCase } from './text-case.js';

const value = (i: number): number => ((i * 7919) % 97) / 24 - 2;
const f = Math.fround;

// ── positions: 7 tokens, 2 heads of 80 dimensions ──
const [TOKENS, HEADS, HEAD_DIM, THETA, SCALE] = [7, 2, 80, 10_000, 0.5];
const states = floats(TOKENS * HEADS * HEAD_DIM, value);
const positions = ints(TOKENS, (i) => 3 * i + 1);
function turned(i: number, isInterleaved: boolean, sign: number): number {
  const at = i % HEAD_DIM;
  const half = HEAD_DIM / 2;
  const [pair, isSecond] = isInterleaved ? [at >> 1, at % 2 === 1] : [at % half, at >= half];
  const [first, second] = isInterleaved ? [i - (at % 2), i - (at % 2) + 1] : [i - at + pair, i - at + pair + half];
  const angle = sign * positions[Math.floor(i / (HEADS * HEAD_DIM))]! * THETA ** ((-2 * pair) / HEAD_DIM) * SCALE;
  const [x, y] = [states[first]!, states[second]!];
  return isSecond ? x * Math.sin(angle) + y * Math.cos(angle) : x * Math.cos(angle) - y * Math.sin(angle);
}
const rotary = {
  file: 'learning/rotary-embedding',
  params: {
    x: inout(f32),
    positions: input(i32),
    config: struct({ heads: i32, head_dim: i32, theta: f32, scale: f32 }),
    tokens: i32,
  },
  launch: { grid: [2, HEADS, TOKENS], block: 32 },
  given: { x: states, positions, config: { heads: HEADS, head_dim: HEAD_DIM, theta: THETA, scale: SCALE }, tokens: TOKENS },
  tolerance: 2e-5,
} as const;

// ── root mean squares ──
function rms(rows: number, dim: number): { x: Float32Array; by: Float32Array; out: (isMultiplied: boolean) => Float32Array } {
  const x = floats(rows * dim, (i) => value(i + dim));
  const by = floats(dim, (i) => 1 + (i % 9) / 8);
  const scales = Array.from({ length: rows }, (_unused, row) => {
    const squares = x.subarray(row * dim, (row + 1) * dim).reduce((sum, v) => sum + v * v, 0);
    return 1 / Math.sqrt(squares / dim + 1e-6);
  });
  return { x, by, out: (isMultiplied) => x.map((v, i) => v * scales[Math.floor(i / dim)]! * (isMultiplied ? by[i % dim]! : 1)) };
}
function rmsCase(rows: number, dim: number, block: number, isMultiplied: boolean): TextCase {
  const { x, by, out } = rms(rows, dim);
  return {
    file: 'learning/rms-norm-groups',
    kernel: `rms_norm_f32<${block}, ${isMultiplied}>`,
    params: { x: input(f32), mul: optional(input(f32)), dst: output(f32), config: struct({ dim: i32, rows: i32, eps: f32 }) },
    launch: { grid: rows, block },
    given: { x, mul: isMultiplied ? by : null, dst: new Float32Array(x.length), config: { dim, rows, eps: f(1e-6) } },
    results: { dst: out(isMultiplied) },
  };
}

// ── the 5 largest of 6 rows; row 2 has finished ──
const [LISTS, ENTRIES, MOST] = [6, 333, 5];
const candidates = floats(LISTS * ENTRIES, (i) => ((i * 7919) % 211) / 16);
const best = Array.from({ length: LISTS }, (_unused, row) =>
  Array.from({ length: ENTRIES }, (_unused_too, i) => i)
    .toSorted((a, b) => candidates[row * ENTRIES + b]! - candidates[row * ENTRIES + a]! || a - b)
    .slice(0, MOST),
);

// ── 11 rows of 33 blocks, quantised: a scale of 2 bytes, which is a power of two, and 32 numbers ──
const [QUANTISED, BLOCKS] = [11, 33];
const exponentOf = (block: number): number => (block * 5) % 7;
function quantised(blocks: number, bytesOf: number, byteAt: (block: number, i: number) => number): Uint8Array {
  return Uint8Array.from({ length: blocks * (2 + bytesOf) }, (_unused, at) => {
    const [block, i] = [Math.floor(at / (2 + bytesOf)), at % (2 + bytesOf)];
    return i === 0 ? 0 : i === 1 ? (15 - exponentOf(block)) << 2 : byteAt(block, i - 2);
  });
}
const whole = (block: number, i: number): number => ((block * 31 + i * 17) % 255) - 127;
const nibble = (block: number, i: number): number => (block * 7 + i * 5 + (i >> 2)) & 15;
const rowBytes = quantised(QUANTISED * BLOCKS, 32, whole);
const rowNibbles = quantised(QUANTISED * BLOCKS, 16, (block, i) => nibble(block, i) | (nibble(block, i + 16) << 4));
const vectorBytes = quantised(BLOCKS, 32, (block, i) => whole(block + 3, 3 * i));
function products(at: (block: number, i: number) => number): Float32Array {
  return floats(QUANTISED, (row) => {
    let sum = 0;
    for (let block = 0; block < BLOCKS; block++) {
      let part = 0;
      for (let i = 0; i < 32; i++) part += at(row * BLOCKS + block, i) * whole(block + 3, 3 * i);
      sum += part * 2 ** -(exponentOf(row * BLOCKS + block) + exponentOf(block));
    }
    return sum;
  });
}
function quantisedCase(format: string, vx: Uint8Array, dst: Float32Array): TextCase {
  return {
    file: 'learning/int8-matrix-vector',
    kernel: `mul_mat_vec_q<${format}, 2>`,
    params: { vx: input(u8), vy: input(u8), dst: output(f32), ncols: i32, nrows: i32 },
    launch: { grid: QUANTISED, block: [32, 2] },
    given: { vx, vy: vectorBytes, dst: new Float32Array(QUANTISED), ncols: 32 * BLOCKS, nrows: QUANTISED },
    results: { dst },
  };
}

// ── dropout, with Philox 4x32-10 ──
const [DROPPED, SEED, OFFSET, KEPT] = [1111, 0x1234_5678_9abc_def0n, 12n, 0.75];
function philox(subsequence: number, offset: bigint): number[] {
  const low = 0xffff_ffffn;
  let [c0, c1, c2, c3] = [offset & low, offset >> 32n, BigInt(subsequence), 0n];
  let [k0, k1] = [SEED & low, SEED >> 32n];
  for (let round = 0; round < 10; round++) {
    const [a, b] = [0xd251_1f53n * c0, 0xcd9e_8d57n * c2];
    [c0, c1, c2, c3] = [(b >> 32n) ^ c1 ^ k0, b & low, (a >> 32n) ^ c3 ^ k1, a & low];
    [k0, k1] = [(k0 + 0x9e37_79b9n) & low, (k1 + 0xbb67_ae85n) & low];
  }
  return [c0, c1, c2, c3].map((word) => Number(word) / 2 ** 32);
}
const noisy = floats(DROPPED, (i) => value(i) + 3);
const THREADS = 128;
const kept = Uint8Array.from({ length: DROPPED }, (_unused, i) => {
  const [group, pass] = [(i >> 2) % THREADS, Math.floor((i >> 2) / THREADS)];
  // A call moves the counter by one.
  return philox(group, OFFSET / 4n + BigInt(pass))[i % 4]! < KEPT ? 1 : 0;
});

// ── an LSTM: 4 sequences, 20 inputs, 48 hidden values ──
const [SEQUENCES, INPUTS, HIDDEN] = [4, 20, 48];
const taken = floats(SEQUENCES * INPUTS, value);
const hidden = floats(SEQUENCES * HIDDEN, (i) => value(i + 3) / 2);
const cells = floats(SEQUENCES * HIDDEN, (i) => value(i + 7));
const gateWeights = floats(4 * HIDDEN * (INPUTS + HIDDEN), (i) => value(i) / 16);
const gateBiases = floats(4 * HIDDEN, (i) => value(i + 13) / 4);
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const remembered = Array.from({ length: SEQUENCES * HIDDEN }, (_unused, at) => {
  const [sequence, j] = [Math.floor(at / HIDDEN), at % HIDDEN];
  const [i, forget, cell, out] = [0, 1, 2, 3].map((gate) => {
    const row = gate * HIDDEN + j;
    let sum = gateBiases[row]!;
    for (let k = 0; k < INPUTS; k++) sum += gateWeights[row * (INPUTS + HIDDEN) + k]! * taken[sequence * INPUTS + k]!;
    for (let k = 0; k < HIDDEN; k++) sum += gateWeights[row * (INPUTS + HIDDEN) + INPUTS + k]! * hidden[sequence * HIDDEN + k]!;
    return sum;
  }) as [number, number, number, number];
  const c = sigmoid(forget) * cells[at]! + sigmoid(i) * Math.tanh(cell);
  return { c, h: sigmoid(out) * Math.tanh(c) };
});

// ── a product of 19 x 12 and 12 x 35, with a bias, a factor and a range ──
const [M, K, N] = [19, 12, 35];
const left = floats(M * K, value);
const right = floats(K * N, (i) => value(2 * i + 1));
const bias = floats(N, (i) => value(i + 21));
const dense = floats(M * N, (at) => {
  let sum = 0;
  for (let k = 0; k < K; k++) sum += left[Math.floor(at / N) * K + k]! * right[k * N + (at % N)]!;
  return Math.min(Math.max(0.5 * (sum + bias[at % N]!), -2), 6);
});

// ── numbers of 8 bits, of which 127 is the largest magnitude ──
const magnitudes = floats(4 * 300, (i) => value(i) * (1 + (i % 11)));
const absmax = magnitudes.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
function toEven(x: number): number {
  const floor = Math.floor(x);
  return x - floor === 0.5 ? floor + (floor % 2 === 0 ? 0 : 1) : Math.round(x);
}

// ── sums of squares of 1,000 and 1,024 gradients, by blocks of 128 and 256 threads ──
function squaresCase(type: 'float' | 'double', block: number, blocks: number, n: number): TextCase {
  const [dtype, List] = type === 'float' ? [f32, Float32Array] : ([f64, Float64Array] as const);
  const gradients = List.from(floats(n, value));
  const sums = new List(blocks);
  for (const [i, v] of gradients.entries()) sums[Math.floor(i / (2 * block)) % blocks]! += v * v;
  return {
    file: 'learning/gradient-norm-volatile',
    kernel: `sumOfSquares<${type}, ${block}, ${n === 1024}>`,
    params: { g_idata: input(dtype), g_odata: output(dtype), n: u32 },
    launch: { grid: blocks, block, sharedBytes: block * List.BYTES_PER_ELEMENT },
    given: { g_idata: gradients, g_odata: new List(blocks), n },
    results: { g_odata: sums },
    tolerance: type === 'float' ? 1e-5 : 1e-12,
  };
}

export const LAYER_CASES: readonly TextCase[] = [
  {
    ...rotary,
    kernel: 'llm::rope::apply<llm::rope::Layout::Interleaved>',
    results: { x: states.map((_unused, i) => turned(i, true, 1)) },
  },
  {
    ...rotary,
    kernel: 'llm::rope::apply<llm::rope::Layout::Halves, true>',
    results: { x: states.map((_unused, i) => turned(i, false, -1)) },
  },
  rmsCase(5, 300, 128, true),
  rmsCase(9, 100, 32, false),
  {
    file: 'learning/top-k-rows',
    kernel: 'topk_rows<float, 5, 64>',
    params: { log_probs: input(f32), ids: output(i32), vals: output(f32), finished: optional(input(bool)), vocab_size: i32 },
    launch: { grid: LISTS, block: 64, sharedBytes: 64 * 8 * MOST + 4 },
    given: {
      log_probs: candidates,
      ids: new Int32Array(LISTS * MOST),
      vals: new Float32Array(LISTS * MOST),
      finished: Uint8Array.of(0, 0, 1, 0, 0, 0),
      vocab_size: ENTRIES,
    },
    results: {
      ids: ints(LISTS * MOST, (i) => (Math.floor(i / MOST) === 2 ? -1 : best[Math.floor(i / MOST)]![i % MOST]!)),
      vals: floats(LISTS * MOST, (i) => {
        const row = Math.floor(i / MOST);
        return row === 2 ? 0 : 2 * candidates[row * ENTRIES + best[row]![i % MOST]!]!;
      }),
    },
  },
  quantisedCase('TYPE_Q8_0', rowBytes, products(whole)),
  quantisedCase(
    'TYPE_Q4_0',
    rowNibbles,
    products((block, i) => nibble(block, i) - 8),
  ),
  {
    file: 'learning/dropout-philox',
    kernel: 'fused_dropout',
    params: { a: input(f32), b: output(f32), c: output(u8), totalElements: u32, p: f32, seeds: struct({ first: u64, second: u64 }) },
    launch: { grid: 2, block: THREADS / 2 },
    given: {
      a: noisy,
      b: new Float32Array(DROPPED),
      c: new Uint8Array(DROPPED),
      totalElements: DROPPED,
      p: KEPT,
      seeds: { first: SEED, second: OFFSET },
    },
    results: { b: noisy.map((v, i) => (kept[i] === 1 ? v / KEPT : 0)), c: kept },
  },
  {
    file: 'learning/lstm-cell-lambdas',
    kernel: 'lstm_cell',
    params: { x: input(f32), h: inout(f32), c: inout(f32), weights: input(f32), bias: input(f32), inputs: i32, hidden: i32 },
    launch: { grid: SEQUENCES, block: 64, sharedBytes: 4 * (INPUTS + 5 * HIDDEN) },
    given: { x: taken, h: hidden, c: cells, weights: gateWeights, bias: gateBiases, inputs: INPUTS, hidden: HIDDEN },
    results: { c: Float32Array.from(remembered, ({ c }) => c), h: Float32Array.from(remembered, ({ h }) => h) },
    tolerance: 1e-5,
  },
  {
    file: 'learning/fused-epilogue',
    kernel: 'product_with<12, Dense>',
    params: {
      a: input(f32),
      b: input(f32),
      out: output(f32),
      // The base class of the last step comes first.
      steps: struct({ clamp: u8, by: f32, bias: input(f32) }),
      rows: i32,
      columns: i32,
    },
    launch: { grid: [3, 3], block: [16, 8] },
    given: { a: left, b: right, out: new Float32Array(M * N), steps: { clamp: 0, by: 0.5, bias }, rows: M, columns: N },
    results: { out: dense },
    tolerance: 1e-5,
  },
  {
    file: 'learning/absmax-quantise',
    kernel: 'absmax_quantise',
    params: { x: input(f32), q: output(u32), scale: output(f32), n4: i32 },
    launch: { grid: 3, block: 64 },
    given: { x: magnitudes, q: new Uint32Array(300), scale: new Float32Array(1), n4: 300 },
    results: {
      q: Uint32Array.from({ length: 300 }, (_unused, i) =>
        [3, 2, 1, 0].reduce((word, byte) => word * 256 + (toEven(f(magnitudes[4 * i + byte]! * f(127 / absmax))) & 255), 0),
      ),
      scale: floats(1, () => absmax / 127),
    },
  },
  squaresCase('float', 128, 3, 1000),
  squaresCase('double', 256, 2, 1024),
];
