// The emitted source of kernels with barriers: regions, the code between them, and the storage of variables.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f32, i16, i32, u32, u8 } from '../../../src/core/elements/dtype.js';
import { inout, input, output } from '../../../src/core/kernels/kernel.js';

const open = { bounds: 'unchecked' } as const;

/** The entry's body. */
function body(made: { readonly source: string }): string {
  const lines = made.source.split('\n');
  const entry = lines.findIndex((line) => line.startsWith('extern "C" __global__'));
  return lines
    .slice(entry + 1, lines.lastIndexOf('}'))
    .map((line) => line.slice(2))
    .join('\n');
}

test("variables stay in their region, are written anew, cross, or are the block's", () => {
  const made = kernel(
    'classes',
    { x: input(f32), y: output(f32), n: i32 },
    ({ x, y, n }, { shared, syncthreads, threadIdx, blockIdx, blockDim }) => {
      const tile = shared(f32, 256);
      const at = blockIdx.x * blockDim.x + threadIdx.x;
      const once = n * 2;
      let sum = 0.0;
      const own = x[at]!;
      tile[threadIdx.x] = own * 2;
      syncthreads();
      for (let k = 0; k < once; k++) {
        const left = tile[(threadIdx.x + k) % 256]!;
        sum += left;
        syncthreads();
        tile[threadIdx.x] = sum;
        syncthreads();
      }
      y[at] = sum;
    },
    open,
  );
  expect(body(made)).toMatchInlineSnapshot(`
    "__shared__ float tile_[256];
    MR_BEGIN_BLOCK(mr_n0, mr_n1, mr_n2)
    MR_CROSSING(float, sum_)
    const int once_ = (int)((unsigned)n_ * (unsigned)2);
    MR_THREADS(1)
      MR_OWN(float, sum_)
      const int at_ = (int)(((unsigned)(int)blockIdx.x * (unsigned)(int)blockDim.x) + (unsigned)(int)threadIdx.x);
      sum_ = 0.0f;
      const float own_ = x_[at_];
      tile_[(int)threadIdx.x] = own_ * 2.0f;
    MR_END(1)
    MR_SYNCTHREADS();
    for (int k_ = 0; k_ < once_; k_ = (int)((unsigned)k_ + (unsigned)1)) {
      MR_THREADS(2)
        MR_OWN(float, sum_)
        const float left_ = tile_[(int)((unsigned)(int)threadIdx.x + (unsigned)k_) % 256];
        sum_ = sum_ + left_;
      MR_END(2)
      MR_SYNCTHREADS();
      MR_THREADS(3)
        MR_OWN(float, sum_)
        tile_[(int)threadIdx.x] = sum_;
      MR_END(3)
      MR_SYNCTHREADS();
    }
    MR_THREADS(4)
      MR_OWN(float, sum_)
      const int at_ = (int)(((unsigned)(int)blockIdx.x * (unsigned)(int)blockDim.x) + (unsigned)(int)threadIdx.x);
      y_[at_] = sum_;
    MR_END(4)"
  `);
});

test('branches and loops around a barrier are decided once; later regions skip threads that returned', () => {
  const made = kernel(
    'control',
    { y: inout(i32), n: i32 },
    ({ y, n }, { i, syncthreads, threadIdx }) => {
      if (n < 0) return;
      if (y[i]! < 0) return;
      let w = n;
      while (true) {
        if (w > 100) break;
        if (threadIdx.x > w) y[i] = w;
        syncthreads();
        w = w * 2;
        if (w === 8) {
          w++;
          continue;
        }
        y[i] = y[i]! + 1;
        if (threadIdx.x === w) continue;
        y[i] = y[i]! + 2;
      }
    },
    open,
  );
  expect(body(made)).toMatchInlineSnapshot(`
    "MR_BEGIN_BLOCK_OF_LEAVING(mr_n0, mr_n1, mr_n2)
    if (n_ < 0) {
      return;
    }
    int w_ = n_;
    MR_THREADS(1)
      const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
      if (y_[mr_i] < 0) {
        MR_LEAVE(1)
      }
    MR_END(1)
    MR_SOME_LEFT
    while (true) {
      if (w_ > 100) {
        break;
      }
      #ifdef MILLRACE_CPU_DEVICE
      bool mr_is_fast_2 = !mr_are_some_gone;
      if (mr_is_fast_2) {
        MR_EVERY_THREAD(fast_2)
          const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
          if ((int)threadIdx.x > w_) {
            y_[mr_i] = w_;
          }
        MR_END(fast_2)
      } else
      #endif
      {
        MR_THREADS(2)
          const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
          if ((int)threadIdx.x > w_) {
            y_[mr_i] = w_;
          }
        MR_END(2)
      }
      MR_SYNCTHREADS();
      w_ = (int)((unsigned)w_ * (unsigned)2);
      if (w_ == 8) {
        w_ = (int)((unsigned)w_ + (unsigned)1);
        continue;
      }
      #ifdef MILLRACE_CPU_DEVICE
      bool mr_is_fast_3 = !mr_are_some_gone;
      if (mr_is_fast_3) {
        MR_EVERY_THREAD(fast_3)
          const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
          y_[mr_i] = (int)((unsigned)y_[mr_i] + (unsigned)1);
          if ((int)threadIdx.x == w_) {
            continue;
          }
          y_[mr_i] = (int)((unsigned)y_[mr_i] + (unsigned)2);
        MR_END(fast_3)
      } else
      #endif
      {
        MR_THREADS(3)
          const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
          y_[mr_i] = (int)((unsigned)y_[mr_i] + (unsigned)1);
          if ((int)threadIdx.x == w_) {
            continue;
          }
          y_[mr_i] = (int)((unsigned)y_[mr_i] + (unsigned)2);
        MR_END(3)
      }
    }"
  `);
});

test('a checked region also has a loop without checks, for blocks whose ranges are in bounds', () => {
  const made = kernel('tree', { x: input(f32), y: output(f32) }, ({ x, y }, { i, shared, syncthreads, threadIdx, blockDim, blockIdx }) => {
    const s = shared(f32, 256);
    s[threadIdx.x] = x[i]!;
    syncthreads();
    for (let h = blockDim.x >> 1; h > 0; h >>= 1) {
      if (threadIdx.x < h) s[threadIdx.x]! += s[threadIdx.x + h]!;
      syncthreads();
    }
    if (threadIdx.x === 0) y[blockIdx.x] = s[0]!;
  });
  expect(body(made)).toMatchInlineSnapshot(`
    "__shared__ float s_[256];
    MR_BEGIN_BLOCK_OF_LEAVING(mr_n0, mr_n1, mr_n2)
    #ifdef MILLRACE_CPU_DEVICE
    bool mr_is_fast_1 = !mr_are_some_gone;
    if (mr_is_fast_1) {
      mr_is_fast_1 = mr_is_within(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), x_n0) && mr_is_within(mr_threads(mr_box_of_block.width), 256);
    }
    if (mr_is_fast_1) {
      MR_EVERY_THREAD(fast_1)
        const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
        s_[(int)threadIdx.x] = x_[mr_i];
      MR_END(fast_1)
    } else
    #endif
    {
      MR_THREADS(1)
        const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
        if ((unsigned)(int)threadIdx.x >= (unsigned)256) { MR_FAULT(2u, 0u, (int)threadIdx.x, 256); MR_LEAVE(1) }
        if ((unsigned)mr_i >= (unsigned)x_n0) { MR_FAULT(0u, 0u, mr_i, x_n0); MR_LEAVE(1) }
        s_[(int)threadIdx.x] = x_[mr_i];
      MR_END(1)
      MR_SOME_LEFT
    }
    MR_SYNCTHREADS();
    for (int h_ = (int)blockDim.x >> 1; h_ > 0; h_ = h_ >> 1) {
      #ifdef MILLRACE_CPU_DEVICE
      bool mr_is_fast_2 = !mr_are_some_gone;
      if (mr_is_fast_2) {
        mr_is_fast_2 = mr_is_within(mr_below(mr_threads(mr_box_of_block.width), mr_value(h_)), 256) && mr_is_within(mr_sum_i32(mr_below(mr_threads(mr_box_of_block.width), mr_value(h_)), mr_value(h_)), 256);
      }
      if (mr_is_fast_2) {
        MR_EVERY_THREAD(fast_2)
          if ((int)threadIdx.x < h_) {
            s_[(int)threadIdx.x] = s_[(int)threadIdx.x] + s_[(int)threadIdx.x + h_];
          }
        MR_END(fast_2)
      } else
      #endif
      {
        MR_THREADS(2)
          if ((int)threadIdx.x < h_) {
            if ((unsigned)(int)threadIdx.x >= (unsigned)256) { MR_FAULT(2u, 0u, (int)threadIdx.x, 256); MR_LEAVE(2) }
            const int mr_t1 = (int)((unsigned)(int)threadIdx.x + (unsigned)h_);
            if ((unsigned)mr_t1 >= (unsigned)256) { MR_FAULT(2u, 0u, mr_t1, 256); MR_LEAVE(2) }
            s_[(int)threadIdx.x] = s_[(int)threadIdx.x] + s_[mr_t1];
          }
        MR_END(2)
        MR_SOME_LEFT
      }
      MR_SYNCTHREADS();
    }
    #ifdef MILLRACE_CPU_DEVICE
    bool mr_is_fast_3 = !mr_are_some_gone;
    if (mr_is_fast_3) {
      mr_is_fast_3 = mr_is_within(mr_value(0ll), 256) && mr_is_within(mr_value((int)blockIdx.x), y_n0);
    }
    if (mr_is_fast_3) {
      MR_EVERY_THREAD(fast_3)
        if ((int)threadIdx.x == 0) {
          y_[(int)blockIdx.x] = s_[0];
        }
      MR_END(fast_3)
    } else
    #endif
    {
      MR_THREADS(3)
        if ((int)threadIdx.x == 0) {
          if ((unsigned)(int)blockIdx.x >= (unsigned)y_n0) { MR_FAULT(1u, 0u, (int)blockIdx.x, y_n0); MR_FINISH(3) }
          y_[(int)blockIdx.x] = s_[0];
        }
      MR_END(3)
    }"
  `);
});

test('dynamic shared memory is sized by the launch; local memory crosses as a whole', () => {
  const made = kernel(
    'memory',
    { y: output(i32) },
    ({ y }, { i, sharedDynamic, local, syncthreads, threadIdx, atomicAdd }) => {
      const words = sharedDynamic(i32);
      const halves = sharedDynamic(f32);
      const mine = local(i32, 3);
      const here = local(f32, 2);
      mine[0] = words.length;
      here[1] = 2;
      halves[threadIdx.x] = here[1]!;
      syncthreads();
      atomicAdd(words, 0, mine[0]!);
      syncthreads();
      y[i] = words[0]!;
    },
    open,
  );
  expect(body(made)).toMatchInlineSnapshot(`
    "extern __shared__ __align__(16) unsigned char mr_dynamic[];
    int* const words_ = reinterpret_cast<int*>(mr_dynamic);
    const int words_n0 = (int)(mr_dynamic_bytes() / sizeof(int));
    float* const halves_ = reinterpret_cast<float*>(mr_dynamic);
    const int halves_n0 = (int)(mr_dynamic_bytes() / sizeof(float));
    MR_BEGIN_BLOCK(mr_n0, mr_n1, mr_n2)
    MR_CROSSING_ARRAY(int, mine_, 3)
    MR_THREADS(1)
      float here_[2];
      MR_OWN_ARRAY(int, mine_, 3)
      mine_[0] = words_n0;
      here_[1] = 2.0f;
      halves_[(int)threadIdx.x] = here_[1];
    MR_END(1)
    MR_SYNCTHREADS();
    MR_THREADS(2)
      MR_OWN_ARRAY(int, mine_, 3)
      atomicAdd_block(&words_[0], mine_[0]);
    MR_END(2)
    MR_SYNCTHREADS();
    MR_THREADS(3)
      const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
      y_[mr_i] = words_[0];
    MR_END(3)"
  `);
});

test('print is one call, strings and values in order; assert reports and returns', () => {
  const made = kernel(
    'told',
    { y: inout(f32), n: i32 },
    ({ y, n }, { i, print, assert }) => {
      print('100% "of"', n, y[i]!, n > 3, '\u00fc\n');
      assert(n > 0 && i < n);
      y[i] = 1;
    },
    open,
  );
  expect(body(made)).toMatchInlineSnapshot(`
    "const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (mr_i >= mr_n0) return;
    printf("100%% \\042of\\042 %d %g %s \\303\\274\\012\\n", n_, y_[mr_i], (n_ > 3) ? "true" : "false");
    if (!((n_ > 0) && (mr_i < n_))) { MR_FAILED(0u); return; }
    y_[mr_i] = 1.0f;"
  `);
  expect(made.build.assertions).toEqual(['n > 0 && i < n']);
  expect(made.build.isChecked).toBe(true);
});

test('a kernel without barriers is one region, with local or shared memory', () => {
  const made = kernel('threads', { y: output(i32) }, ({ y }, { i, shared, local, atomicAdd }) => {
    const s = shared(i32, [2, 3]);
    const l = local(i32, 4);
    l[i & 3] = 1;
    atomicAdd(s[1]!, 2, l[i & 3]!);
    y[i] = s.at(1, i);
  });
  expect(body(made)).toMatchInlineSnapshot(`
    "__shared__ int s_[6];
    MR_BEGIN_BLOCK(mr_n0, mr_n1, mr_n2)
    #ifdef MILLRACE_CPU_DEVICE
    bool mr_is_fast_1 = !mr_are_some_gone;
    if (mr_is_fast_1) {
      mr_is_fast_1 = mr_is_within(mr_masked(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), mr_value(3ll)), 4) && mr_is_within(mr_value(1ll), 2) && mr_is_within(mr_value(2ll), 3) && mr_is_within(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), 3) && mr_is_within(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), y_n0);
    }
    if (mr_is_fast_1) {
      MR_EVERY_THREAD(fast_1)
        const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
        int l_[4];
        l_[mr_i & 3] = 1;
        atomicAdd_block(&s_[1 * 3 + 2], l_[mr_i & 3]);
        y_[mr_i] = s_[1 * 3 + mr_i];
      MR_END(fast_1)
    } else
    #endif
    {
      MR_THREADS(1)
        const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
        int l_[4];
        const int mr_t1 = mr_i & 3;
        if ((unsigned)mr_t1 >= (unsigned)4) { MR_FAULT(2u, 0u, mr_t1, 4); MR_FINISH(1) }
        l_[mr_t1] = 1;
        const int mr_t2 = mr_i & 3;
        if ((unsigned)mr_t2 >= (unsigned)4) { MR_FAULT(2u, 0u, mr_t2, 4); MR_FINISH(1) }
        atomicAdd_block(&s_[1 * 3 + 2], l_[mr_t2]);
        if ((unsigned)mr_i >= (unsigned)y_n0) { MR_FAULT(0u, 0u, mr_i, y_n0); MR_FINISH(1) }
        if ((unsigned)mr_i >= (unsigned)3) { MR_FAULT(1u, 1u, mr_i, 3); MR_FINISH(1) }
        y_[mr_i] = s_[1 * 3 + mr_i];
      MR_END(1)
    }"
  `);
});

test('loads of 8 and 16 bits have a range, those of 32 bits none', () => {
  const counting = (type: typeof u8 | typeof i16 | typeof i32) =>
    kernel('counting', { data: input(type), bins: inout(u32) }, ({ data, bins }, { i, atomicAdd }) => {
      atomicAdd(bins, data[i]! + 5, 1);
    }).source;
  expect(counting(u8)).toContain('mr_is_within(mr_sum_i32(mr_between(0, 255), mr_value(5ll)), bins_n0)');
  expect(counting(i16)).toContain('mr_is_within(mr_sum_i32(mr_between(-32768, 32767), mr_value(5ll)), bins_n0)');
  expect(counting(i32)).not.toContain('MR_EVERY_THREAD');
});
