// Idioms of machine learning: normalisation, softmax, attention, activations, losses, optimisers.
import { arrayOf, bytes, f32, i32, i64, inout, input, optional, output, struct, u8 } from 'millrace';
import { floats, type TextCase } from './text-case.js';

const value = (i: number): number => ((i * 7919) % 97) / 24 - 2;
const sumOf = (values: ArrayLike<number>): number => Array.from(values).reduce((a, b) => a + b, 0);

// ── layer normalisation, of rows of 140 ──
const [ROWS, WIDTH] = [13, 140];
const tokens = floats(ROWS * WIDTH, value);
const gamma = floats(WIDTH, (i) => 0.5 + (i % 7) / 8);
const beta = floats(WIDTH, (i) => (i % 5) / 4 - 0.5);
const rowOf = (i: number): Float32Array => tokens.subarray(i * WIDTH, (i + 1) * WIDTH);
const means = floats(ROWS, (row) => sumOf(rowOf(row)) / WIDTH);
const deviations = floats(ROWS, (row) => {
  const mean = sumOf(rowOf(row)) / WIDTH;
  return 1 / Math.sqrt(sumOf(rowOf(row).map((x) => (x - mean) ** 2)) / WIDTH + 1e-5);
});
const normed = floats(tokens.length, (i) => {
  const [row, c] = [Math.floor(i / WIDTH), i % WIDTH];
  return (tokens[i]! - means[row]!) * deviations[row]! * gamma[c]! + beta[c]!;
});

// ── softmax, of rows of 301 ──
const [BATCH, CLASSES] = [5, 301];
const scores = floats(BATCH * CLASSES, (i) => 3 * value(i + 5));
function softmax(row: ArrayLike<number>): number[] {
  const top = Math.max(...Array.from(row));
  const powers = Array.from(row, (x) => Math.exp(x - top));
  const total = sumOf(powers);
  return powers.map((p) => p / total);
}
const chances = Float32Array.from({ length: BATCH }, (_unused, row) => row).reduce<number[]>(
  (all, row) => [...all, ...softmax(scores.subarray(row * CLASSES, (row + 1) * CLASSES))],
  [],
);

// ── attention of 3 queries to 150 keys each ──
const [QUERIES, KEYS, DIM] = [3, 150, 16];
const queries = floats(QUERIES * DIM, (i) => value(i * 3 + 1));
const keys = floats(QUERIES * KEYS * DIM, (i) => value(i + 11));
const contents = floats(QUERIES * KEYS * DIM, (i) => value(i * 5 + 2));
const attended = floats(QUERIES * DIM, (i) => {
  const [row, d] = [Math.floor(i / DIM), i % DIM];
  const weights = softmax(
    Array.from({ length: KEYS }, (_unused, j) => {
      let score = 0;
      for (let k = 0; k < DIM; k++) score += queries[row * DIM + k]! * keys[(row * KEYS + j) * DIM + k]!;
      return 0.25 * score;
    }),
  );
  return sumOf(weights.map((weight, j) => weight * contents[(row * KEYS + j) * DIM + d]!));
});

// ── an activation and a residual; 1,110 is no multiple of 4 ──
const [BIASES, INPUTS] = [37, 1110];
const inputs = floats(INPUTS, value);
const biases = floats(BIASES, (i) => value(3 * i) / 4);
const residuals = floats(INPUTS, (i) => value(i + 50));
const biased = (i: number): number => inputs[i]! + biases[i % BIASES]!;
const gelu = (x: number): number => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
const activated = {
  params: { n: i32, input: input(f32), bias: input(f32), residual: input(f32), output: output(f32), columns: i32 },
  launch: { grid: 3, block: 128 },
  given: { n: INPUTS, input: inputs, bias: biases, residual: residuals, output: new Float32Array(INPUTS), columns: BIASES },
} as const;

// ── Adam, of three tensors in chunks of 256 ──
const LENGTHS = [300, 1, 600];
const chunks = LENGTHS.flatMap((length, tensor) => Array.from({ length: Math.ceil(length / 256) }, (_unused, chunk) => [tensor, chunk]));
const tensor = (t: number, scale: number): Float32Array => floats(LENGTHS[t]!, (i) => scale * value(i * (t + 2)));
const squares = (t: number): Float32Array => floats(LENGTHS[t]!, (i) => ((i * (t + 1)) % 13) / 8);
const padded = (list: readonly number[]): number[] => Array.from({ length: 16 }, (_unused, i) => list[i] ?? 0);
const stepped = [0, 1, 2].map((t) => {
  const [g, p, m, v] = [tensor(t, 1), tensor(t, 0.5), tensor(t, 0.25), squares(t)];
  const first = m.map((x, i) => 0.9 * x + 0.1 * g[i]!);
  const second = v.map((x, i) => 0.99 * x + 0.01 * g[i]! ** 2);
  return { first, second, weights: p.map((x, i) => x - 0.05 * (first[i]! / (Math.sqrt(second[i]!) + 1e-3) + 0.01 * x)) };
});
const Tensors = struct({
  addresses: arrayOf(arrayOf(inout(f32), 3), 4),
  sizes: arrayOf(i64, 3),
  block_to_tensor: arrayOf(u8, 16),
  block_to_chunk: arrayOf(i32, 16),
});

export const LEARNING_CASES: readonly TextCase[] = [
  {
    file: 'learning/layer-norm-packed',
    kernel: 'layernorm_forward',
    params: {
      out: output(f32),
      mean: optional(output(f32)),
      rstd: optional(output(f32)),
      inp: input(f32),
      weight: input(f32),
      bias: input(f32),
      N: i32,
      C: i32,
    },
    launch: { grid: 4, block: 128 },
    given: {
      out: new Float32Array(tokens.length),
      mean: new Float32Array(ROWS),
      rstd: null,
      inp: tokens,
      weight: gamma,
      bias: beta,
      N: ROWS,
      C: WIDTH,
    },
    results: { out: normed, mean: means },
    tolerance: 1e-5,
  },
  {
    file: 'learning/online-softmax',
    kernel: 'online_softmax<128>',
    params: { x: input(f32), y: output(f32), V: i32 },
    launch: { grid: BATCH, block: 128 },
    given: { x: scores, y: new Float32Array(scores.length), V: CLASSES },
    results: { y: Float32Array.from(chances) },
  },
  {
    file: 'learning/attention-operator',
    kernel: 'attn::Kernel<attn::DecodeAttention<16, 64>>',
    params: {
      params: struct({ q: input(f32), k: input(f32), v: input(f32), out: output(f32), keys: i32, scale: f32 }),
    },
    launch: { grid: QUERIES, block: 64, sharedBytes: 4 * 64 * (2 + DIM + 1) },
    given: { params: { q: queries, k: keys, v: contents, out: new Float32Array(QUERIES * DIM), keys: KEYS, scale: 0.25 } },
    results: { 'params.out': attended },
    tolerance: 1e-5,
  },
  {
    ...activated,
    file: 'learning/gelu-residual',
    kernel: 'bias_activation_residual<GeluTanh, float>',
    results: { output: inputs.map((_unused, i) => gelu(biased(i)) + residuals[i]!) },
  },
  {
    ...activated,
    file: 'learning/gelu-residual',
    kernel: 'bias_activation_residual<Silu, float, 2>',
    launch: { grid: 5, block: 128 },
    results: { output: inputs.map((_unused, i) => biased(i) / (1 + Math.exp(-biased(i))) + residuals[i]!) },
  },
  {
    file: 'learning/adam-multi-tensor',
    kernel: 'multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float>, float, float, float, float, adamMode_t, float>',
    params: {
      chunk_size: i32,
      noop_flag: inout(i32),
      tl: Tensors,
      callable: bytes(1),
      beta1: f32,
      beta2: f32,
      epsilon: f32,
      lr: f32,
      mode: i32,
      decay: f32,
    },
    launch: { grid: chunks.length, block: 32 },
    given: {
      chunk_size: 256,
      noop_flag: new Int32Array(1),
      tl: {
        addresses: [1, 0.5, 0.25].map((scale) => [0, 1, 2].map((t) => tensor(t, scale))).concat([[0, 1, 2].map(squares)]),
        sizes: LENGTHS.map(BigInt),
        block_to_tensor: padded(chunks.map(([t]) => t!)),
        block_to_chunk: padded(chunks.map(([, chunk]) => chunk!)),
      },
      callable: new Uint8Array(1),
      beta1: 0.9,
      beta2: 0.99,
      epsilon: 1e-3,
      lr: 0.05,
      mode: 1,
      decay: 0.01,
    },
    results: Object.fromEntries(
      stepped.flatMap(({ first, second, weights }, t) => [
        [`tl.addresses.1.${t}`, weights],
        [`tl.addresses.2.${t}`, first],
        [`tl.addresses.3.${t}`, second],
      ]),
    ),
    tolerance: 1e-5,
  },
];
