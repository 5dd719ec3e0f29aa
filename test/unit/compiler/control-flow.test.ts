// Branches, loops and effects: their evaluation order, and the checks before them.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, f64, i32, u32 } from '../../../src/core/elements/dtype.js';
import { inout, input, output } from '../../../src/core/kernels/kernel.js';
import { bodyOf } from './support.js';

const open = { bounds: 'unchecked' } as const;

test('if, else and the conditional operator, whose arms are checked only when taken', () => {
  const made = kernel('branches', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
    if (i > 3 && x[i - 3]! > 0) y[i] = 1;
    else if (i === 0) {
      y[i] = 2;
    } else y[i] = i < x.length ? x[i]! : 0;
  });
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "#ifdef MILLRACE_CPU_DEVICE
    bool mr_is_fast_1 = !mr_are_some_gone;
    if (mr_is_fast_1) {
      mr_is_fast_1 = mr_is_within(mr_difference_i32(mr_above(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), mr_value(3ll)), mr_value(3ll)), x_n0) && mr_is_within(mr_above(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), mr_value(3ll)), y_n0) && mr_is_within(mr_at_most(mr_at_least(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), mr_value(0ll)), mr_value(0ll)), y_n0) && mr_is_within(mr_below(mr_except(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), mr_value(0ll)), mr_value(x_n0)), x_n0) && mr_is_within(mr_except(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), mr_value(0ll)), y_n0);
    }
    if (mr_is_fast_1) {
      MR_EVERY_THREAD(fast_1)
        const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
        if ((mr_i > 3) && (x_[mr_i - 3] > 0.0f)) {
          y_[mr_i] = 1.0f;
        } else {
          if (mr_i == 0) {
            y_[mr_i] = 2.0f;
          } else {
            y_[mr_i] = (mr_i < x_n0) ? x_[mr_i] : 0.0f;
          }
        }
      MR_END(fast_1)
    } else
    #endif
    {
      MR_THREADS(1)
        const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
        bool mr_t2 = mr_i > 3;
        if (mr_t2) {
          const int mr_t1 = (int)((unsigned)mr_i - (unsigned)3);
          if ((unsigned)mr_t1 >= (unsigned)x_n0) { MR_FAULT(0u, 0u, mr_t1, x_n0); MR_FINISH(1) }
          mr_t2 = x_[mr_t1] > 0.0f;
        }
        if (mr_t2) {
          if ((unsigned)mr_i >= (unsigned)y_n0) { MR_FAULT(1u, 0u, mr_i, y_n0); MR_FINISH(1) }
          y_[mr_i] = 1.0f;
        } else {
          if (mr_i == 0) {
            if ((unsigned)mr_i >= (unsigned)y_n0) { MR_FAULT(1u, 0u, mr_i, y_n0); MR_FINISH(1) }
            y_[mr_i] = 2.0f;
          } else {
            if ((unsigned)mr_i >= (unsigned)y_n0) { MR_FAULT(1u, 0u, mr_i, y_n0); MR_FINISH(1) }
            float mr_t3;
            if (mr_i < x_n0) {
              if ((unsigned)mr_i >= (unsigned)x_n0) { MR_FAULT(0u, 0u, mr_i, x_n0); MR_FINISH(1) }
              mr_t3 = x_[mr_i];
            } else {
              mr_t3 = 0.0f;
            }
            y_[mr_i] = mr_t3;
          }
        }
      MR_END(1)
    }"
  `);
});

test("a continue still runs the loop's update and test when these contain index checks", () => {
  const made = kernel('checked', { o: inout(i32) }, ({ o }, { i }) => {
    let k = i;
    while (o[k]! > 0) {
      k--;
      if (k === 5) continue;
    }
    do {
      k++;
    } while (o[k] !== 0);
    for (let z = 0; z < 4; z += o[z]!) {
      if (z === 1) continue;
      o[z] = z;
    }
  });
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "int k_ = mr_i;
    while (true) {
      if ((unsigned)k_ >= (unsigned)o_n0) { MR_FAULT(0u, 0u, k_, o_n0); return; }
      if (!(o_[k_] > 0)) break;
      k_ = (int)((unsigned)k_ - (unsigned)1);
      if (k_ == 5) {
        continue;
      }
    }
    for (bool mr_t1 = false;; mr_t1 = true) {
      if (mr_t1) {
        if ((unsigned)k_ >= (unsigned)o_n0) { MR_FAULT(0u, 0u, k_, o_n0); return; }
        if (!(o_[k_] != 0)) break;
      }
      k_ = (int)((unsigned)k_ + (unsigned)1);
    }
    {
      int z_ = 0;
      for (bool mr_t2 = false;; mr_t2 = true) {
        if (mr_t2) {
          if ((unsigned)z_ >= (unsigned)o_n0) { MR_FAULT(0u, 0u, z_, o_n0); return; }
          z_ = (int)((unsigned)z_ + (unsigned)o_[z_]);
        }
        if (!(z_ < 4)) break;
        if (z_ == 1) {
          continue;
        }
        if ((unsigned)z_ >= (unsigned)o_n0) { MR_FAULT(0u, 0u, z_, o_n0); return; }
        o_[z_] = z_;
      }
    }"
  `);
});

test('compound assignment and ++ evaluate an index once', () => {
  const made = kernel(
    'compound',
    { c: inout(i32), o: inout(i32) },
    ({ c, o }, { i, atomicAdd }) => {
      o[atomicAdd(c, 0, 1)]! += 2;
      o[c[i]!]!++;
      o[i]! <<= 3;
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "const int mr_t1 = atomicAdd(&c_[0], 1);
    const int at_ = mr_t1;
    o_[at_] = (int)((unsigned)o_[at_] + (unsigned)2);
    const int at_2_ = c_[mr_i];
    o_[at_2_] = (int)((unsigned)o_[at_2_] + (unsigned)1);
    o_[mr_i] = (int)((unsigned)o_[mr_i] << 3);"
  `);
});

test('an index is loaded before the atomic whose result is stored there', () => {
  const made = kernel(
    'indices',
    { c: inout(i32), o: inout(i32) },
    ({ c, o }, { i, atomicAdd }) => {
      o[c[i]!] = atomicAdd(c, i, 1);
      atomicAdd(o, c[i]!, atomicAdd(c, i, 1));
    },
    { bounds: 'unchecked' },
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "const int mr_t1 = c_[mr_i];
    const int mr_t2 = atomicAdd(&c_[mr_i], 1);
    o_[mr_t1] = mr_t2;
    const int mr_t3 = c_[mr_i];
    const int mr_t4 = atomicAdd(&c_[mr_i], 1);
    atomicAdd(&o_[mr_t3], mr_t4);"
  `);
});

test('atomics, and loads beside them, run in source order', () => {
  const made = kernel(
    'atomics',
    { c: inout(i32), u: inout(u32), f: inout(f32), d: inout(f64), rows: inout(i32, 2) },
    ({ c, u, f, d, rows }, t) => {
      const old = c[1]! + t.atomicAdd(c, 1, 1);
      t.atomicMin(u, 0, old > 2 ? 1 : 0);
      t.atomicMax(u, 0, 7);
      t.atomicAdd(f, 0, old * 0.5);
      t.atomicAdd(d, 0, f[0]!);
      t.atomicAdd(rows[t.i]!, 2, 1);
      if (t.atomicCAS(c, 0, 0, 1) === 0) t.threadfence();
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "const int mr_t1 = c_[1];
    const int mr_t2 = atomicAdd(&c_[1], 1);
    const int old_ = (int)((unsigned)mr_t1 + (unsigned)mr_t2);
    atomicMin(&u_[0], (old_ > 2) ? 1u : 0u);
    atomicMax(&u_[0], 7u);
    atomicAdd(&f_[0], (float)old_ * 0.5f);
    atomicAdd(&d_[0], (double)f_[0]);
    atomicAdd(&rows_[(long long)mr_i * rows_n1 + 2], 1);
    const int mr_t3 = atomicCAS(&c_[0], 0, 1);
    if (mr_t3 == 0) {
      __threadfence();
    }"
  `);
});
