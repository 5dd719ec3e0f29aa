// Which shifts get the operators of the shim's shifts.h. The text wide-shifts.cu has their results.
import { describe, expect, it } from 'vitest';
import { applyEdits } from '../../../src/cuda-cpp/read/source-edits.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { mayShift, shiftEdits } from '../../../src/cuda-cpp/lower/shift-amounts.js';

/** The source with `#(...)` for the amounts that are marked. */
function marked(source: string): string {
  const { tokens } = tokenize(source);
  return applyEdits(source, tokens, shiftEdits(tokens)).text.replaceAll(' ::mr_shift', '#');
}

describe('amounts of shifts', () => {
  it.each([
    ['y = x <<n;', 'y = x <<#(n);'],
    ['y = dw <<32-bit;', 'y = dw <<#(32-bit);'],
    ['y = a[i] >>-s->n[2].low + (int)f(x, 1) * 2 & 1;', 'y = a[i] >>#(-s->n[2].low + (int)f(x, 1) * 2) & 1;'],
    ['y = 1 <<a<<b;', 'y = 1 <<#(a)<<#(b);'],
    ['y = (x >>::w) ^ x >>(u) | (x <<std::z);', 'y = (x >>#(::w)) ^ x >>#((u)) | (x <<#(std::z));'],
    ['x <<=n; a[0] >>=n + 1;', 'x <<=#(n); a[0] >>=#(n + 1);'],
    ['f<(a >>b)>(c < d, x);', 'f<(a >>#(b))>(c < d, x);'],
    ['if (a < (b >>c)) y = x <<4;', 'if (a < (b >>#(c))) y = x <<4;'],
  ])('of %s are marked', (source, expected) => {
    expect(mayShift(source)).toBe(true);
    expect(marked(source)).toBe(expected);
  });

  it.each([
    ['the ends of template arguments', 'A<B<C>> x; map<set<int>> f(A<B<C>> y, int z = 4);'],
    ['launches', 'kernel<<<grid, block>>>(x);'],
    ['bit-fields', 's.f <<= n; s->f >>= n;'],
    ['amounts that may be templates', 'y = x << f<int>(n);'],
    ['amounts that change', 'y = x << n++;'],
    ['sources with operators of their own', 'int operator<<(A a, int n) { return a.v << n; }'],
  ])('not %s', (_what, source) => {
    expect(marked(source)).toBe(source);
  });

  it('sources with shifts by literals alone are not read', () => {
    expect(mayShift('y = x << 4; y >>= 1; k<<<1, 2>>>(y);')).toBe(false);
  });
});
