// Which loops of CUDA C++ wait for another thread.
import { expect, test } from 'vitest';
import { spinEdits } from '../../../src/cuda-cpp/lower/spin-loops.js';
import { applyEdits } from '../../../src/cuda-cpp/read/source-edits.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';

function edited(body: string): string {
  const source = `__device__ void f(int* flag) { ${body} }`;
  const { tokens } = tokenize(source);
  return applyEdits(source, tokens, spinEdits(tokens)).text.slice(31, -2);
}

const SPIN = 'for (mr_spin mr_spins_here; mr_spins_here.once();)';

test.each([
  ['while (atomicCAS(lock, 0, 1) != 0);', `${SPIN} while ((atomicCAS(lock, 0, 1) != 0) && mr_spins_here.again());`],
  ['for (;;) { if (atomicAdd(&n, 0) >= m) break; }', `${SPIN} for (;mr_spins_here.again();) { if (atomicAdd(&n, 0) >= m) break; }`],
  ['do { v = __ldcg(flag + b); } while (v == 0);', `${SPIN} do { v = __ldcg(flag + b); } while ((v == 0) && mr_spins_here.again());`],
])('%s counts its turns', (body, text) => {
  expect(edited(body)).toBe(text);
});

test.each([
  'while (atomicCAS(lock, 0, 1)) { __nanosleep(100); }',
  'while (atomicExch(&mutex, 1));',
  'volatile int* seen = flag; while (seen[0] == 0);',
  'while (*((volatile int*)flag) != 1) {}',
  'while (true) { int v = atomicAdd(&n, 0); if (v == 3) break; __threadfence(); }',
  'unsigned ns = 8; while (atomicCAS(m, 0, 1) == 1) { __nanosleep(ns); if (ns < 256) { ns *= 2; } }',
  'while (ready.load(cuda::std::memory_order_acquire) == 0) ;',
  'if (first) while (atomicAdd(&count, 0) < goal); else x = 1;',
])('%s waits', (body) => {
  expect(edited(body)).toContain(SPIN);
});

test.each([
  ['reads no memory that other threads write', 'while (flag[0] == 0);'],
  ['steps through a list', 'while (p) p = p->next;'],
  ['steps through an array', 'volatile int* x = flag; while (i < n && x[i] != k) i = i + 1;'],
  ['follows what other threads append', 'while (head != atomicAdd(tail, 0)) { head = next[head]; }'],
  ['takes work from a queue', 'while ((i = atomicAdd(&next, 1)) < n) { out[i] = f(i); }'],
  ['computes and exchanges', 'do { assumed = old; old = atomicCAS(p, assumed, assumed > v ? assumed : v); } while (assumed != old);'],
  ['has a critical section', 'while (!done) { if (atomicCAS(l, 0, 1) == 0) { x[1] += 1; atomicExch(l, 0); done = true; } }'],
  ['writes until it reads its value back', 'volatile int* s = flag; do { c = t | (s[d] + 1); s[d] = c; } while (s[d] != c);'],
  ['counts', 'for (int i = 0; i < n; i++) s += atomicAdd(&x[i], 0);'],
  ['never ends', 'while (true) { atomicAdd(&x[0], 0); }'],
  ['calls a function that may do anything', 'while (atomicAdd(&x[0], 0) == 0) step();'],
])('a loop that %s does not', (_, body) => {
  expect(edited(body)).toBe(body);
});

test.each(['while (atomicAdd(x, 0)', 'for (;;', 'do {', 'do ; while', 'while', 'for (a; b', 'do { } while (atomicAdd(x, 0)'])(
  'incomplete source (%s) has no edits and no end of the search',
  (body) => {
    expect(spinEdits(tokenize(body).tokens)).toEqual([]);
  },
);

test.each(['while (a) ', 'if (a) ', 'do ', 'while (a) { ', 'for (;;) '])('20,000 nested statements %s are read in seconds', (open) => {
  const { tokens } = tokenize(`void f() { ${open.repeat(20_000)} ; ${open.includes('{') ? '}'.repeat(20_000) : ''} }`);
  const start = performance.now();
  expect(spinEdits(tokens)).toEqual([]);
  expect(performance.now() - start).toBeLessThan(5000);
});
