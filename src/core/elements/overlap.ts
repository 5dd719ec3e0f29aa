// Do two views of one storage have an element in common? Their reaches may overlap although they interleave: every
// second element and the ones between, two halves of a matrix's columns.
//
// They share an element when start + sum(i * stride) of one equals that of the other, with each i inside its axis: one
// linear equation in bounded whole numbers. Axes of equal stride count as one, larger strides are settled first, and
// what the smaller ones cannot reach any more, or not divide, is given up at once.
import { type Placed, reachOf } from './strides.js';

/** Steps of the search; beyond it the views count as overlapping. Real views need a few dozen. */
const MAX_STEPS = 10_000;

interface Term {
  /** At least 1. */
  readonly stride: number;
  low: number;
  high: number;
}

/** True only when no element is in both, and that is certain. */
export function areApart(a: Placed, b: Placed): boolean {
  const [lowA, highA] = reachOf(a);
  const [lowB, highB] = reachOf(b);
  if (lowA === highA || lowB === highB) return true;
  if (a.offset + highA <= b.offset + lowB || b.offset + highB <= a.offset + lowA) return true;
  const terms = [...termsOf(a, b)].toSorted((one, other) => other.stride - one.stride);
  return new Search(terms).finds(b.offset - a.offset) === 'none';
}

/** What a's indices add and b's take away. */
function termsOf(a: Placed, b: Placed): Iterable<Term> {
  const terms = new Map<number, Term>();
  for (const [view, sign] of [
    [a, 1],
    [b, -1],
  ] as const) {
    for (const [axis, extent] of view.shape.entries()) {
      const step = sign * (view.strides[axis] as number);
      if (step === 0 || extent === 1) continue;
      const stride = Math.abs(step);
      const term = terms.get(stride) ?? { stride, low: 0, high: 0 };
      if (step > 0) term.high += extent - 1;
      else term.low -= extent - 1;
      terms.set(stride, term);
    }
  }
  return terms.values();
}

class Search {
  readonly #terms: readonly Term[];
  /** Of the terms from each one on: the least and the most they add up to, and what divides every sum. */
  readonly #least: number[];
  readonly #most: number[];
  readonly #divisor: number[];
  #steps = 0;

  constructor(terms: readonly Term[]) {
    this.#terms = terms;
    this.#least = [0];
    this.#most = [0];
    this.#divisor = [0];
    for (const { stride, low, high } of terms.toReversed()) {
      this.#least.unshift((this.#least[0] as number) + stride * low);
      this.#most.unshift((this.#most[0] as number) + stride * high);
      this.#divisor.unshift(divisorOf(stride, this.#divisor[0] as number));
    }
  }

  /** Do the terms add up to this? */
  finds(sum: number, from = 0): 'some' | 'none' | 'unknown' {
    const term = this.#terms[from];
    if (term === undefined) return sum === 0 ? 'some' : 'none';
    if (sum % (this.#divisor[from] as number) !== 0) return 'none';
    const first = Math.max(term.low, Math.ceil((sum - (this.#most[from + 1] as number)) / term.stride));
    const last = Math.min(term.high, Math.floor((sum - (this.#least[from + 1] as number)) / term.stride));
    for (let count = first; count <= last; count++) {
      if (++this.#steps > MAX_STEPS) return 'unknown';
      const rest = this.finds(sum - count * term.stride, from + 1);
      if (rest !== 'none') return rest;
    }
    return 'none';
  }
}

function divisorOf(a: number, b: number): number {
  return b === 0 ? a : divisorOf(b, a % b);
}
