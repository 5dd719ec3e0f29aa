// Whether two views of one storage have an element in common. The ranges of their offsets may overlap although the views share
// none: even and odd elements, or two halves of a matrix's columns.
//
// They share an element if start + sum(i * stride) of one equals that of the other, with each i inside its axis: one linear
// equation in bounded integers. Axes of equal stride count as one, and larger strides are tried first. A branch ends when the
// remaining terms cannot add up to the rest: it is out of their range, or not divisible by their greatest common divisor.
import { type Placed, reachOf } from './strides.js';

/** The most steps of the search; after that the views count as overlapping. Usual views need a few dozen. */
const MAX_STEPS = 10_000;

interface Term {
  /** At least 1. */
  readonly stride: number;
  low: number;
  high: number;
}

/** True only if the views certainly have no element in common. */
export function areApart(a: Placed, b: Placed): boolean {
  const [lowA, highA] = reachOf(a);
  const [lowB, highB] = reachOf(b);
  if (lowA === highA || lowB === highB) return true;
  if (a.offset + highA <= b.offset + lowB || b.offset + highB <= a.offset + lowA) return true;
  const terms = [...termsOf(a, b)].toSorted((one, other) => other.stride - one.stride);
  return new Search(terms).finds(b.offset - a.offset) === 'none';
}

/** The terms of the equation: the axes of a with positive sign, those of b with negative sign. */
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
  /** For the terms from each index on: their least and greatest sum, and the greatest common divisor of all sums. */
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

  /** Whether the terms from `from` on can add up to `sum`. */
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
