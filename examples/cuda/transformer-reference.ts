// The block of transformer.ts in plain TypeScript, for comparison.

/** Channels of a head. */
export const HEAD = 32;

/** The matrices of a block, row by row. */
export type Weights = Readonly<Record<'gain' | 'qkv' | 'out' | 'up' | 'down', Float32Array>>;

function layerNorm(x: Float32Array, gain: Float32Array): Float32Array {
  const width = gain.length;
  const y = new Float32Array(x.length);
  for (let from = 0; from < x.length; from += width) {
    const row = x.subarray(from, from + width);
    const mean = row.reduce((sum, value) => sum + value, 0) / width;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width;
    y.set(
      row.map((value, i) => ((value - mean) / Math.sqrt(variance + 1e-5)) * gain[i]!),
      from,
    );
  }
  return y;
}

function multiply(a: Float32Array, b: Float32Array, inner: number): Float32Array {
  const [rows, columns] = [a.length / inner, b.length / inner];
  const c = new Float32Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    for (let k = 0; k < inner; k++) {
      for (let j = 0; j < columns; j++) c[i * columns + j]! += a[i * inner + k]! * b[k * columns + j]!;
    }
  }
  return c;
}

function causalAttention(qkv: Float32Array, width: number): Float32Array {
  const tokens = qkv.length / (3 * width);
  const part = (token: number, which: 0 | 1 | 2, head: number) => qkv.subarray((3 * token + which) * width + head).subarray(0, HEAD);
  const attended = new Float32Array(tokens * width);
  for (let query = 0; query < tokens; query++) {
    for (let head = 0; head < width; head += HEAD) {
      const q = part(query, 0, head);
      const keys = Array.from({ length: query + 1 }, (_, key) => key);
      const scores = keys.map((key) => part(key, 1, head).reduce((sum, k, i) => sum + k * q[i]!, 0) / Math.sqrt(HEAD));
      const largest = Math.max(...scores);
      const weights = scores.map((score) => Math.exp(score - largest));
      const sum = weights.reduce((all, weight) => all + weight, 0);
      for (const key of keys) part(key, 2, head).forEach((v, i) => (attended[query * width + head + i]! += (weights[key]! / sum) * v));
    }
  }
  return attended;
}

export function referenceBlock(input: Float32Array, { gain, qkv, out, up, down }: Weights): Float32Array {
  const width = gain.length;
  const gelu = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  const attended = causalAttention(multiply(layerNorm(input, gain), qkv, width), width);
  const residual = multiply(attended, out, width).map((value, i) => input[i]! + value);
  const hidden = multiply(layerNorm(residual, gain), up, width).map(gelu);
  return multiply(hidden, down, up.length / width).map((value, i) => residual[i]! + value);
}
