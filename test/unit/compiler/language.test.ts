import { expect, test } from 'vitest';
import { func } from '../../../src/compiler/definitions/func.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { bool, f32, f64, i32, u32, u8 } from '../../../src/core/elements/dtype.js';
import { inout, input, output } from '../../../src/core/kernels/kernel.js';
import { writtenOf } from '../../support/written.js';
import { bodyOf, withText } from './support.js';

const open = { bounds: 'unchecked' } as const;

test('a whole unchecked kernel', () => {
  const saxpy = kernel(
    'saxpy',
    { a: f32, x: input(f32), y: inout(f32) },
    ({ a, x, y }, { i }) => {
      y[i] = a * x[i]! + y[i]!;
    },
    open,
  );
  expect(saxpy.source).toMatchInlineSnapshot(`
    "extern "C" __global__ void saxpy_kernel(float a_, const float* x_, int x_n0, float* y_, int y_n0, int mr_n0, int mr_n1, int mr_n2) {
      const int mr_i = int(blockIdx.x * blockDim.x + threadIdx.x);
      if (mr_i >= mr_n0) return;
      y_[mr_i] = (a_ * x_[mr_i]) + y_[mr_i];
    }
    "
  `);
  expect(saxpy).toMatchObject({ abi: 'shaped', indexRank: 1, name: 'saxpy' });
  expect(saxpy.build).toMatchObject({ entry: 'saxpy_kernel', isBounded: true, isChecked: false, fmad: true, options: [] });
});

test('a checked kernel reports parameter, dimension, index and limit, and returns before it accesses memory', () => {
  const copy = kernel('copy', { from: input(f32, 2), to: output(f32, 2) }, ({ from, to }, { i, j }) => {
    to[i]![j] = from[i]![j + 1]!;
  });
  expect(bodyOf(copy)).toMatchInlineSnapshot(`
    "#ifdef MILLRACE_CPU_DEVICE
    bool mr_is_fast_1 = !mr_are_some_gone;
    if (mr_is_fast_1) {
      mr_is_fast_1 = mr_is_within(mr_indices(blockIdx.y, blockDim.y, mr_box_of_block.height), from_n0) && mr_is_within(mr_sum_i32(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), mr_value(1ll)), from_n1) && mr_is_within(mr_indices(blockIdx.y, blockDim.y, mr_box_of_block.height), to_n0) && mr_is_within(mr_indices(blockIdx.x, blockDim.x, mr_box_of_block.width), to_n1);
    }
    if (mr_is_fast_1) {
      MR_EVERY_THREAD(fast_1)
        const int mr_i = int(blockIdx.y * blockDim.y + threadIdx.y);
        const int mr_j = int(blockIdx.x * blockDim.x + threadIdx.x);
        to_[(long long)mr_i * to_n1 + mr_j] = from_[(long long)mr_i * from_n1 + (mr_j + 1)];
      MR_END(fast_1)
    } else
    #endif
    {
      MR_THREADS(1)
        const int mr_i = int(blockIdx.y * blockDim.y + threadIdx.y);
        const int mr_j = int(blockIdx.x * blockDim.x + threadIdx.x);
        if ((unsigned)mr_i >= (unsigned)to_n0) { MR_FAULT(1u, 0u, mr_i, to_n0); MR_FINISH(1) }
        if ((unsigned)mr_j >= (unsigned)to_n1) { MR_FAULT(1u, 1u, mr_j, to_n1); MR_FINISH(1) }
        const int mr_t1 = (int)((unsigned)mr_j + (unsigned)1);
        if ((unsigned)mr_i >= (unsigned)from_n0) { MR_FAULT(0u, 0u, mr_i, from_n0); MR_FINISH(1) }
        if ((unsigned)mr_t1 >= (unsigned)from_n1) { MR_FAULT(0u, 1u, mr_t1, from_n1); MR_FINISH(1) }
        to_[(long long)mr_i * to_n1 + mr_j] = from_[(long long)mr_i * from_n1 + mr_t1];
      MR_END(1)
    }"
  `);
  expect(copy.source).toContain('MrFaultSlot* mr_fault, unsigned* mr_fault_word) {');
  expect(copy.build.isChecked).toBe(true);
});

test('a kernel without launch indices takes a launch of any rank, and guards each axis', () => {
  const set = kernel(
    'set',
    { o: output(i32) },
    ({ o }) => {
      o[0] = 1;
    },
    open,
  );
  expect(set.indexRank).toBe(0);
  expect(set.source).toContain(
    'if (int(blockIdx.x * blockDim.x + threadIdx.x) >= mr_n0 || int(blockIdx.y * blockDim.y + threadIdx.y) >= mr_n1 ||',
  );
});

test('arguments follow the order of params, not of the pattern, and no name collides with C++', () => {
  const made = kernel(
    'double',
    { int: i32, float: input(f32), while_: output(f32, 3), flag: bool, small: u8 },
    ({ while_, float, small, flag, int }, { i }) => {
      const mr_i = int;
      while_[0]![0]![0] = flag ? float[i]! : mr_i + small;
    },
    open,
  );
  expect(made.source.split('\n').find((line) => line.startsWith('extern'))).toMatchInlineSnapshot(
    `"extern "C" __global__ void double_kernel(int int_, const float* float_, int float_n0, float* while__, int while__n0, int while__n1, int while__n2, unsigned char flag_, unsigned char small_, int mr_n0, int mr_n1, int mr_n2) {"`,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(
    `"while__[((long long)0 * while__n1 + 0) * while__n2 + 0] = (flag_ != 0) ? float_[mr_i] : (float)(int)((unsigned)int_ + (unsigned)(int)small_);"`,
  );
});

test('names that C++ cannot spell stay distinct', () => {
  const made = kernel(
    '$',
    { x$: output(i32), x_: output(i32) },
    ({ x$, x_ }, { i }) => {
      const é = i;
      x$[i] = é;
      x_[i] = é + x_[i]!;
    },
    open,
  );
  const entry = made.source.split('\n').find((line) => line.startsWith('extern'))!;
  const pointers = [...entry.matchAll(/int\* (\w+)/g)].map((match) => match[1]);
  const extents = [...entry.matchAll(/int (\w+_n0)/g)].map((match) => match[1]);
  expect(new Set(pointers).size).toBe(2);
  expect(new Set(extents).size).toBe(extents.length);
  expect(
    kernel('3 d', { x: output(i32) }, ({ x }) => {
      x[0] = 1;
    }).build.entry,
  ).toBe('k3_20d_kernel');
});

test('at, set, rows, length and shape', () => {
  const made = kernel(
    'shapes',
    { a: input(f32, 3), b: output(f32, 2), v: inout(f32) },
    ({ a, b, v }, { i, j }) => {
      const plane = a[i]!;
      const row = plane[j]!;
      b.set(i, j, row[2]! + a.at(i, j, 0) + plane.at(j, 1));
      v.set(i, v.at(i) + row.length + a.shape[0] * plane.shape[1] + b.shape.length + v.length);
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "b_[(long long)mr_i * b_n1 + mr_j] = (a_[((long long)mr_i * a_n1 + mr_j) * a_n2 + 2] + a_[((long long)mr_i * a_n1 + mr_j) * a_n2 + 0]) + a_[((long long)mr_i * a_n1 + mr_j) * a_n2 + 1];
    v_[mr_i] = (((v_[mr_i] + (float)a_n2) + (float)(int)((unsigned)a_n0 * (unsigned)a_n2)) + 2.0f) + (float)v_n0;"
  `);
});

test('thread indices and shapes can be destructured', () => {
  const made = kernel(
    'parts',
    { a: input(f32, 3), b: inout(i32) },
    ({ a, b }, { threadIdx, blockDim, globalIdx, shared }) => {
      const tile = shared(i32, [4, 8]);
      const { x, y: row } = threadIdx;
      const { x: across } = blockDim;
      const { z: deep } = globalIdx;
      const [first, , third] = a.shape;
      const [second] = a[x]!.shape;
      const [rows, columns] = tile.shape;
      b[x] = row * across + deep + first * third + second + rows * columns;
    },
    open,
  );
  const named = kernel(
    'parts',
    { a: input(f32, 3), b: inout(i32) },
    ({ a, b }, { threadIdx, blockDim, globalIdx }) => {
      const deep = globalIdx.z;
      b[threadIdx.x] = threadIdx.y * blockDim.x + deep + a.shape[0] * a.shape[2] + a.shape[1] + 4 * 8;
    },
    open,
  );
  expect(bodyOf(made)).toBe(bodyOf(named));
});

test('a row keeps the index of its declaration', () => {
  const made = kernel(
    'rows',
    { a: inout(f32, 2) },
    ({ a }, { i }) => {
      let k = i;
      const row = a[k]!;
      k++;
      row[0] = a[k]![0]!;
    },
    open,
  );
  expect(bodyOf(made)).toMatchInlineSnapshot(`
    "int k_ = mr_i;
    const int row_at0_ = k_;
    k_ = (int)((unsigned)k_ + (unsigned)1);
    a_[(long long)row_at0_ * a_n1 + 0] = a_[(long long)k_ * a_n1 + 0];"
  `);
});

test('a body may be a function expression or a method, and its parameters need no destructuring', () => {
  const methods = {
    body(p: { y: { [i: number]: number } }, t: { readonly i: number }): void {
      p.y[t.i] = 1;
    },
  };
  const plain = kernel('forms', { y: output(f32) }, ({ y }, { i }) => {
    y[i] = 1;
  });
  const method = kernel('forms', { y: output(f32) }, methods.body);
  const expression = kernel('forms', { y: output(f32) }, function (p, t) {
    const { y } = p;
    const { i } = t;
    y[i] = 1;
  });
  expect(method.source).toBe(plain.source);
  expect(expression.source).toBe(plain.source);
});

test('lines of the emitted source map to the lines of this file', () => {
  const made = kernel('mapped', { y: output(f32) }, ({ y }, { i }) => {
    y[i] = 1;
  });
  const { file, lines } = writtenOf(made, 'off').mapping;
  expect(file).toMatch(/language\.test\.ts$/);
  const source = made.source.split('\n');
  expect(lines).toHaveLength(source.length - 1);
  const head = source.findIndex((line) => line.startsWith('extern'));
  expect(lines[head]).toBe(0);
  expect(lines[source.findIndex((line) => line.includes('= 1.0f'))]).toBe(Math.max(...lines));
});

/** A body as a build tool may produce it. */
function bodyOfText(text: string): string {
  const own = { d: inout(f64), x: input(f32), n: i32, u: inout(u32) } as const;
  return bodyOf(kernel('k', own, withText(text), { bounds: 'unchecked' }));
}

test('a let that is never reassigned is a const, and a literal in it takes the type of the other operand', () => {
  const written = bodyOfText('({ d, x }, { i }) => { const tenth = 0.1; const v = x[i]; d[i] = d[i] * tenth + v; }');
  expect(bodyOfText('({ d, x }, { i }) => { let tenth = 0.1; let v = x[i]; d[i] = d[i] * tenth + v; }')).toBe(written);
  expect(bodyOfText('({ d, x }, { i }) => { let v = x[i]; d[i] = d[i] * 0.1 + v; }')).toBe(written);
  expect(written).toContain('* 0.1)');
  // Assigned, even where it is never reached: a variable, of the type that decides.
  expect(bodyOfText('({ d }, { i }) => { let tenth = 0.1; if (i > 3) tenth = 0.2; d[i] = tenth; }')).toContain('float tenth_ = 0.1f;');
});

test('a named choice between literals takes the type of the other operand; its condition is computed once', () => {
  const written = bodyOfText('({ d, x }, { i }) => { const v = x[i] > 1 ? 0.1 : -(0.2); d[i] *= v; }');
  expect(written).toMatchInlineSnapshot(`
    "const bool v_ = x_[mr_i] > 1.0f;
    d_[mr_i] = d_[mr_i] * (v_ ? 0.1 : (-0.2));"
  `);
  expect(bodyOfText('({ u, n }, { i }) => { const step = n > 1 ? 1 : 2; u[i] += step; }')).toMatchInlineSnapshot(`
    "const bool step_ = n_ > 1;
    u_[mr_i] = u_[mr_i] + (step_ ? 1u : 2u);"
  `);
});

test('each arm of a choice converts separately, as in an if', () => {
  const merged = bodyOfText('({ d, x, n }, { i }) => { d[i] = n > 3 ? 0.1 : n > 2 ? x[i] : n; d[i] += n > 3 ? 0.1 : x[i]; }');
  expect(merged).toMatchInlineSnapshot(`
    "d_[mr_i] = (n_ > 3) ? 0.1 : ((n_ > 2) ? (double)x_[mr_i] : (double)n_);
    d_[mr_i] = d_[mr_i] + ((n_ > 3) ? 0.1 : (double)x_[mr_i]);"
  `);
  const helper = func([f64], f64, withText('(v) => v > 0 ? 0.1 : Math.fround(v)'));
  const made = kernel(
    'k',
    { d: inout(f64), x: input(f32), n: i32 },
    withText('({ d, x, n }, { i, h }) => { d[i] = h(n > 3 ? 0.1 : x[i]); }'),
    {
      functions: { h: helper },
      bounds: 'unchecked',
    },
  );
  expect(made.source).toContain('(v_ > 0.0) ? 0.1 : (double)');
  expect(bodyOf(made)).toMatchInlineSnapshot(`"d_[mr_i] = mr_fn_h((n_ > 3) ? 0.1 : (double)x_[mr_i]);"`);
  expect(bodyOfText('({ d, n }, { i }) => { d.set(i, n > 3 ? 0.1 : 2); }')).toContain('0.1 : 2.0');
});
