// The same search in plain TypeScript: what it costs without a device, and what the hits are compared with.
import type { Hit } from './vector-index.js';

/** The best `k` rows of `vectors` for the query, the best one first; of equal ones the first. */
export function plainSearch(vectors: Float32Array, query: Float32Array, k: number): readonly Hit[] {
  const size = query.length;
  const best: Hit[] = [];
  for (let row = 0, at = 0; at < vectors.length; row++, at += size) {
    // Four sums, so that an addition need not wait for the one before it.
    let [a, b, c, d] = [0, 0, 0, 0];
    for (let n = 0; n < size; n += 4) {
      a += vectors[at + n]! * query[n]!;
      b += vectors[at + n + 1]! * query[n + 1]!;
      c += vectors[at + n + 2]! * query[n + 2]!;
      d += vectors[at + n + 3]! * query[n + 3]!;
    }
    const score = a + b + c + d;
    if (best.length === k && score <= best[k - 1]!.score) continue;
    const place = best.findIndex((hit) => hit.score < score);
    best.splice(place < 0 ? best.length : place, 0, { row, score });
    if (best.length > k) best.pop();
  }
  return best;
}
