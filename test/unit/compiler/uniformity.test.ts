// Uniform values, and the barriers that all threads of a block reach: one test per rule.
import { describe, expect, test } from 'vitest';
import type { KernelBody } from '../../../src/compiler/language/language.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { analyse } from '../../../src/compiler/analysis/uniformity.js';
import { statementsIn } from '../../../src/compiler/ir/walk.js';
import { i32 } from '../../../src/core/elements/dtype.js';
import { inout, input } from '../../../src/core/kernels/kernel.js';
import { irOf } from './ir-text.js';
import { complaint } from './support.js';

const params = { n: i32, x: input(i32), y: inout(i32) };
type Body = KernelBody<typeof params, Record<never, never>, Record<never, never>>;

/** The names of the variables that differ between the threads of a block. */
function varying(body: Body): string[] {
  const ir = irOf(params, body);
  const { isUniform } = analyse(ir);
  const names: string[] = [];
  for (const stmt of statementsIn(ir.body)) if (stmt.kind === 'declare' && !isUniform(stmt.variable)) names.push(stmt.variable.name);
  return names;
}

/** The cause of divergence for each barrier that some threads may not reach. */
function broken(body: Body): string[] {
  return analyse(irOf(params, body)).brokenBarriers.map(({ parting }) => `${parting.how}: ${parting.cause}`);
}

describe('values', () => {
  test('come from the thread, its index, or neither', () => {
    expect(
      varying(({ n, y }, { i, threadIdx, blockIdx, blockDim, gridDim }) => {
        const a = threadIdx.x + 1;
        const b = i + 1;
        const c = blockIdx.x * blockDim.y + gridDim.z + n;
        const d = c + a;
        const e = c > 3 ? b : 0;
        y[7] = a + b + c + d + e;
      }),
    ).toEqual(['a', 'b', 'd', 'e']);
  });

  test('are loaded from arrays that the kernel writes or only reads, from shared and from local memory', () => {
    expect(
      varying(({ x, y }, { shared, local, blockIdx, threadIdx }) => {
        const s = shared(i32, 4);
        const l = local(i32, 4);
        const a = x[blockIdx.x]!;
        const b = x[threadIdx.x]!;
        const c = y[0]!;
        const d = s[0]!;
        const e = l[0]!;
        const f = x.length + y.length;
        y[1] = a + b + c + d + e + f;
        s[1] = 0;
        l[1] = 0;
      }),
    ).toEqual(['b', 'c', 'd', 'e']);
  });

  test('are results of atomics', () => {
    expect(
      varying(({ y }, { atomicAdd }) => {
        const a = atomicAdd(y, 0, 1);
        y[7] = a;
      }),
    ).toEqual(['a']);
  });

  test('go through helpers of one expression and functions', () => {
    expect(
      varying(({ n, y }, { threadIdx, clamp }) => {
        const twice = (v: number): number => v + v;
        const a = twice(n);
        const b = twice(threadIdx.y);
        const c = clamp(n, 0, 4);
        const d = clamp(n, 0, threadIdx.z);
        y[7] = a + b + c + d;
      }),
    ).toEqual(['b', 'd']);
  });
});

describe('variables', () => {
  test('assigned in a divergent branch, deeper than their declaration', () => {
    expect(
      varying(({ n, y }, { threadIdx }) => {
        let a = n;
        let b = n;
        if (threadIdx.x > 3) {
          a = n + 1;
          let c = n;
          c = c + 1;
          y[7] = c;
        }
        if (n > 3) b = n + 2;
        y[7] = a + b;
      }),
    ).toEqual(['a']);
  });

  test('assigned in a loop that threads leave at different iterations, by its condition or by a break', () => {
    expect(
      varying(({ n, y }, { threadIdx }) => {
        let a = 0;
        for (let k = 0; k < threadIdx.x; k++) a = n;
        let b = 0;
        for (let m = 0; m < n; m++) {
          if (m > threadIdx.x) break;
          b = m;
        }
        let c = 0;
        for (let p = 0; p < n; p++) c = c + p;
        y[7] = a + b + c;
      }),
    ).toEqual(['a', 'k', 'b', 'm']);
  });

  test('assigned after a continue that some threads take; the counter of the loop stays', () => {
    expect(
      varying(({ n, y }, { threadIdx }) => {
        let a = 0;
        let b = 0;
        for (let k = 0; k < n; k++) {
          b = k;
          if (threadIdx.x > k) continue;
          a = k;
        }
        y[7] = a + b;
      }),
    ).toEqual(['a']);
  });

  test('computed from other varying variables, also through a loop', () => {
    expect(
      varying(({ n, y }, { threadIdx }) => {
        let a = n;
        let b = n;
        for (let k = 0; k < n; k++) {
          b = a;
          a = threadIdx.x;
        }
        y[7] = b;
      }),
    ).toEqual(['a', 'b']);
  });

  test('threads that returned cause no divergence', () => {
    expect(
      varying(({ n, x, y }, { i }) => {
        let a = 0;
        for (let k = 0; k < n; k++) {
          if (x[i]! > k) return;
          a = k;
        }
        y[7] = a;
      }),
    ).toEqual([]);
  });
});

describe('barriers', () => {
  test('that all threads reach: at the top, and in uniform branches and loops of every form', () => {
    expect(
      broken(({ n, x }, { syncthreads, blockIdx, i }) => {
        syncthreads();
        if (n > blockIdx.x) syncthreads();
        else syncthreads();
        for (let k = x[0]!; k < n; k++) {
          if (k === 5) break;
          if (k === 4) continue;
          syncthreads();
        }
        let w = n;
        while (w > 0) {
          syncthreads();
          w = w >> 1;
        }
        do {
          syncthreads();
          w++;
        } while (w < 4);
        if (x[i]! > 3) return;
        syncthreads();
      }),
    ).toEqual([]);
  });

  test('in divergent branches and loops, and after a divergent break or continue', () => {
    expect(
      broken(({ n, y }, { syncthreads, threadIdx }) => {
        if (threadIdx.x < 3) syncthreads();
        for (let k = 0; k < y[0]!; k++) syncthreads();
        for (let k = 0; k < n; k++) {
          syncthreads();
          if (threadIdx.y === k) break;
        }
        for (let k = 0; k < n; k++) {
          syncthreads();
          if (threadIdx.z === k) continue;
          syncthreads();
        }
        y[1] = 0;
      }),
    ).toEqual(['branch: threadIdx.x', "loop: 'y', which the kernel writes", 'break: threadIdx.y', 'continue: threadIdx.z']);
  });

  test('a return in a divergent loop leaves the loop divergent', () => {
    expect(
      broken(({ n }, { syncthreads, i }) => {
        for (let k = i; k < n; k++) {
          if (k > 100) return;
          syncthreads();
        }
      }),
    ).toEqual(["loop: 'k', which depends on the index i"]);
  });

  test('K401 shows the condition and says what it depends on', () => {
    const wrong = (): unknown =>
      kernel('wrong', params, ({ n, y }, { threadIdx, syncthreads, syncwarp }) => {
        const half = threadIdx.x >> 1;
        let turns = 0;
        if (half > 3) turns = n;
        for (let k = 0; k < turns; k++) {
          y[k] = k;
          syncthreads();
        }
        syncwarp();
      });
    expect(complaint(wrong)).toMatchInlineSnapshot(`
      "K401: syncthreads() is in a loop that threads of a block leave at different iterations: its condition differs between them (it depends on 'turns', which depends on 'half', which depends on threadIdx.x).
        Make every thread reach the barrier: put the condition around the work before and after the barrier."
    `);
    expect(wrong).toThrowError(/\| +for \(let k = 0; k < turns; k\+\+\) \{\n +\| +\^/);
    const warp = (): unknown =>
      kernel('warp', params, ({ y }, { threadIdx, syncwarp }) => {
        if (threadIdx.x < 32) {
          y[0] = 1;
          syncwarp();
        }
      });
    expect(complaint(warp)).toMatchInlineSnapshot(`
      "K401: syncwarp() is in a branch whose condition differs between the threads of a block (it depends on threadIdx.x).
        Make every thread reach the barrier: put the condition around the work before and after the barrier. This also applies to a warp barrier, because on the CPU device it is a barrier of the whole block."
    `);
  });

  test('of the whole grid must be uniform across its blocks', () => {
    const branch = (): unknown =>
      kernel('wide', params, ({ y }, { i, blockIdx, gridSync, syncthreads }) => {
        const block = blockIdx.x;
        // Fine for a block.
        if (block > 3) syncthreads();
        if (block > 3) gridSync();
        y[i] = 2;
      });
    expect(complaint(branch)).toMatchInlineSnapshot(`
      "K401: gridSync() is in a branch whose condition differs between the blocks of the grid (it depends on blockIdx.x).
        Make every block reach the barrier: put the condition around the work before and after the barrier."
    `);
    const loop = (): unknown =>
      kernel('wide', params, ({ y }, { i, blockIdx, gridSync }) => {
        for (let turn = 0; turn < blockIdx.y; turn++) gridSync();
        y[i] = 2;
      });
    expect(complaint(loop)).toMatchInlineSnapshot(`
      "K401: gridSync() is in a loop that blocks of the grid leave at different iterations: its condition differs between them (it depends on blockIdx.y).
        Make every block reach the barrier: put the condition around the work before and after the barrier."
    `);
    const left = (): unknown =>
      kernel('wide', params, ({ y }, { i, blockIdx, gridSync }) => {
        for (let turn = 0; turn < 8; turn++) {
          if (blockIdx.z === turn) break;
          gridSync();
        }
        y[i] = 2;
      });
    expect(complaint(left)).toMatchInlineSnapshot(`
      "K401: gridSync() is in a loop that blocks of the grid leave at different iterations: the condition of a break differs between them (it depends on blockIdx.z).
        Make every block reach the barrier: put the condition around the work before and after the barrier."
    `);
    const thread = (): unknown =>
      kernel('wide', params, ({ y }, { i, gridSync }) => {
        if (y[i] === 1) gridSync();
      });
    expect(complaint(thread)).toMatchInlineSnapshot(`
      "K401: gridSync() is in a branch whose condition differs between the threads of a block (it depends on the index i).
        Make every thread reach the barrier: put the condition around the work before and after the barrier."
    `);
  });

  test("of the whole grid need some of the block's shared memory", () => {
    const made = (size: number) =>
      kernel(
        'wide',
        params,
        ({ y }, { i, n, shared, gridSync }) => {
          const part = shared(i32, n);
          part[0] = i;
          gridSync();
          y[i] = part[0]!;
        },
        { constants: { n: size } },
      );
    expect(complaint(() => made(48 * 256 - 3))).toMatchInlineSnapshot(`
      "K404: gridSync() and the shared memory of a block need 49156 bytes (49152 at most).
        Use sharedDynamic(type), and pass its size at the launch: { grid, block, sharedBytes }."
    `);
    expect(made(48 * 256 - 4).build.syncsGrid).toBe(true);
  });

  test('of the whole grid are allowed where all blocks come: after conditions on arguments and sizes, and after blocks returned', () => {
    const fine = kernel('wide', { x: input(i32), y: inout(i32), turns: i32 }, ({ x, y, turns }, { i, blockIdx, gridDim, gridSync }) => {
      if (blockIdx.x === 3 || y[i] === 9) return;
      for (let turn = 0; turn < turns + x[0]!; turn++) {
        if (turn === 5) continue;
        y[i] = turn;
        gridSync();
      }
      if (gridDim.x > 2) gridSync();
    });
    expect(fine.build.syncsGrid).toBe(true);
    expect(fine.source.match(/MR_SYNC_GRID\(\);/g)).toHaveLength(2);
  });
});
